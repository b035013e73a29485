"""Each model plans on a cluster that can hold it, each device on a model it can hold.

A part of the default space is enough: one sequence a micro-batch, no interleaving, no
context parallelism.
"""

import pytest

from shardproof.models.catalogue import architecture, cluster, device, names
from shardproof.models.parameters import parameter_count
from shardproof.models.problem import Problem, Training
from shardproof.solver.answer import Answer
from shardproof.solver.plan import plan

#: Weights, gradients and moments of 16-bit training with an unsharded optimizer.
BYTES_PER_PARAMETER = 18


def nodes_for(arch, gpus, memory):
    """Return a power of two of nodes that hold twice the model's state."""
    state = 2 * BYTES_PER_PARAMETER * parameter_count(arch)
    nodes = 1
    while nodes * gpus * memory < state:
        nodes *= 2
    return nodes


def planned(arch, machine):
    problem = Problem(
        architecture=arch,
        cluster=machine,
        training=Training(
            seq_len=2048,
            global_batch=4 * machine.world_size,
            precision="bf16" if "bf16" in machine.device.formats else "fp16",
        ),
        pins={"mbs": (1,), "vpp": (1,), "cp": (1,)},
    )
    return plan(problem, top=1)


@pytest.mark.parametrize("name", names("models"))
def test_a_model_plans(name):
    arch = architecture(name)
    nodes = nodes_for(arch, 8, device("h200").hbm_bytes)
    found = planned(arch, cluster(f"{nodes}x8:h200"))
    assert isinstance(found, Answer)
    assert found.answers[0].memory.peak_bytes <= device("h200").hbm_bytes


@pytest.mark.parametrize("name", names("devices"))
def test_a_device_plans(name):
    chosen = device(name)
    arch = architecture("llama-3.1-8b")
    gpus = 4 if "nvl72" in chosen.fabric else 8
    nodes = nodes_for(arch, gpus, chosen.hbm_bytes)
    assert isinstance(planned(arch, cluster(f"{nodes}x{gpus}:{name}")), Answer)


def test_volta_alone_has_no_bf16():
    without = [n for n in names("devices") if "bf16" not in device(n).formats]
    assert without == ["v100-16", "v100-32"]
