#!/usr/bin/env bash
# A real Slurm of four nodes on this machine, for tests of job arrays: `up` or `down`.
# Needs root and Debian's slurm-wlm and munge; there is no systemd to start them.
set -euo pipefail
nodes=4
host="$(hostname -s)"

up() {
  mkdir -p /run/munge /var/spool/slurmctld-shardproof /etc/slurm
  chown munge: /run/munge
  pgrep -x munged >/dev/null || su -s /bin/sh munge -c /usr/sbin/munged
  cat >/etc/slurm/slurm.conf <<CONF
ClusterName=shardproof
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdSpoolDir=/var/spool/slurmd/%n
StateSaveLocation=/var/spool/slurmctld-shardproof
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd-%n.log
SwitchType=switch/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-$((17000 + nodes))] CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  slurmctld
  for i in $(seq "$nodes"); do
    mkdir -p "/var/spool/slurmd/n$i"
    slurmd -N "n$i"
  done
  for _ in $(seq 60); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$nodes" ] && return
    sleep 0.5
  done
  echo "slurm did not come up" >&2
  return 1
}

down() {
  pkill -x slurmd || true
  pkill -x slurmctld || true
  pkill -x munged || true
}

"$@"
