"""The predicted peak of one row: its kind decides who reads it, and which figure.

Rows of Megatron's CI and of SimuMax state torch's allocated bytes, torchtitan's the
reserved ones. Rows of no known kind are read by the rules of ``truth`` and predicted
like Megatron runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..models.errors import InputError
from ..models.memory.library_device import (
    device_bytes,
    generation,
    largest_temporary,
    reserved,
)
from ..models.memory.library_experts import UNEVEN
from ..models.memory.library_nanotron import NanotronRun, nanotron_peaks
from ..models.memory.library_run import groups_of, run_of
from ..models.memory.library_torchtitan import TorchtitanRun, torchtitan_peaks
from ..models.memory.phases import peaks
from . import memory_peaks_mcore as mcore
from . import memory_peaks_megatron as megatron
from .truth.architecture import architecture_of
from .truth.machine import device_of
from .truth.rules import Unstated
from .truth.setting import setting

if TYPE_CHECKING:
    from ..models.memory.library_torchtitan import Checkpoint
    from ..models.memory.phases import RankPeak, Run
    from .truth.row import Row

#: Sizes above which a row is a slip of the pen, and would take hours to list.
_MOST = {"layers": 4096, "pp": 1024, "vpp": 256, "micro_batch": 2**20}
_OFFLOAD = re.compile(r"optimizer_offload_(?P<percent>\d{1,3})pct")
ALLOCATED, RESERVED = "allocated", "reserved"


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What is predicted of a row.

    Attributes
    ----------
    kind
        The band it belongs to, such as ``megatron-dense``.
    allocated, reserved
        Bytes of the fullest rank (of the last rank in Megatron's CI).
    temporary
        Bytes of the largest tensor that comes and goes there, 0 if it is not known.
    uneven
        Bytes there of rows beyond balanced routing.
    device, device_reserved
        Bytes of the device's total with what is allocated, and with what is reserved.
    limit
        Bytes that the device has, None where it is not stated.
    statistic
        Which of allocated and reserved the row measures.
    rank
        The rank that is predicted.
    """

    kind: str
    allocated: int
    reserved: int
    temporary: int
    uneven: int
    device: int
    device_reserved: int
    limit: int | None
    statistic: str
    rank: int

    @property
    def peak(self) -> int:
        """Bytes of the row's own statistic."""
        return self.reserved if self.statistic == RESERVED else self.allocated


def predict(row: Row, remade: frozenset[str] = frozenset()) -> Prediction:
    """Return what is predicted of a row.

    Parameters
    ----------
    row
        The row; its measurements are not looked at.
    remade
        Tests whose goldens were made again, see ``memory_peaks_mcore``.

    Raises
    ------
    InputError
        If the row lacks something that the peak depends on.
    Unstated
        The same, by a named rule.
    """
    for column, most in _MOST.items():
        if (row.whole(column) or 0) > most:
            raise InputError(
                f"{column} of a row is at most {most}, got {row.text(column)[:20]}"
            )
    name = row.id.partition("-")[0]
    if name == "mcore":
        run = mcore.run_of(row, generation(row.text("gpu")), remade)
        return _of_run(row, run, run.pp - 1)
    if name in ("simumax", "mbridge") and row.whole("layers"):
        try:
            return _of_run(row, megatron.run_of(row, generation(row.text("gpu"))))
        except InputError:
            # Layers that do not divide, for one: the planner's own split is taken.
            found = setting(row)
            return _of_run(row, run_of(found.problem, found.layout))
    if name == "playbook":
        return _nanotron(row)
    if name == "torchtitan":
        return _torchtitan(row)
    found = setting(row)
    return _of_run(row, run_of(found.problem, found.layout))


def _of_run(row: Row, run: Run, rank: int | None = None) -> Prediction:
    ranks = peaks(run)
    peak = ranks[rank] if rank is not None else max(ranks, key=lambda p: p.bytes)
    peak = _offloaded(row, peak)
    temporary = largest_temporary(run.model, run.stages[peak.rank])
    held = reserved(peak.bytes, temporary, expandable=_expandable(row))
    moe = run.model.architecture.is_moe
    dims = run.model.dims
    point = {n: _int(getattr(dims, n)) for n in ("tp", "pp", "cp", "dp", "ep")}
    kind = "megatron-moe" if moe else "megatron-dense"
    return _prediction(row, kind, peak, held, point, temporary)


def _offloaded(row: Row, peak: RankPeak) -> RankPeak:
    """Take off the part of the optimizer's states that a row keeps on the host."""
    share = _OFFLOAD.search(row.text("extras"))
    if share is None:
        return peak
    states = sum(i.bytes for i in peak.items if i.name.startswith("optimizer states"))
    return replace(peak, bytes=peak.bytes - states * int(share["percent"]) // 100)


def _int(node: object) -> int:
    found = getattr(node, "constant", None)
    assert isinstance(found, int)
    return found


def _prediction(
    row: Row,
    kind: str,
    peak: RankPeak,
    held: int,
    point: dict[str, int],
    temporary: int = 0,
) -> Prediction:
    try:
        limit: int | None = device_of(row)[0].hbm_bytes
    except Unstated:
        limit = None
    return Prediction(
        kind=kind,
        allocated=peak.bytes,
        reserved=held,
        temporary=temporary,
        uneven=sum(i.bytes for i in peak.items if i.name == UNEVEN),
        device=device_bytes(peak.bytes, groups_of(point)),
        device_reserved=device_bytes(held, groups_of(point)),
        limit=limit,
        statistic=RESERVED if kind == "torchtitan" else ALLOCATED,
        rank=peak.rank,
    )


def _expandable(row: Row) -> bool:
    return "expandable" in row.words("extras", "recompute")


def _degrees(row: Row) -> dict[str, int]:
    point = {n: row.whole(n) or 1 for n in ("tp", "pp", "cp", "ep")}
    ranks = point["tp"] * point["pp"] * point["cp"]
    stated = row.whole("dp")
    return {**point, "dp": stated or max(1, (row.whole("num_gpus") or ranks) // ranks)}


def _nanotron(row: Row) -> Prediction:
    """Predict a row of the playbook: nanotron, as its scaling scripts ran it."""
    point, mbs = _degrees(row), row.whole("micro_batch") or 1
    batch = row.whole("global_batch") or mbs * point["dp"] * 4
    m = row.whole("grad_accum") or max(1, batch // (mbs * point["dp"]))
    arch = architecture_of(row)[0]
    seq_len, sharded = row.whole("seq_len") or 4096, row.text("zero_stage") == "1"
    tp, pp, dp = point["tp"], point["pp"], point["dp"]
    sp = row.flag("sp") is not False
    run = NanotronRun(arch, seq_len, tp, pp, dp, mbs, m, sharded, sp)
    peak = max(nanotron_peaks(run), key=lambda p: p.bytes)
    kind = "nanotron-tp1" if tp == 1 else "nanotron-tp"
    logits = 2 * mbs * seq_len * arch.vocab // tp
    return _prediction(row, kind, peak, reserved(peak.bytes, logits), point, logits)


def _torchtitan(row: Row) -> Prediction:
    """Predict a row of torchtitan.

    A micro-batch that is not stated is the local batch over the pipeline ranks, as
    many micro-batches as ranks being the default then.
    """
    point = _degrees(row)
    pp, dp = point["pp"], point["dp"]
    local = max(1, (row.whole("global_batch") or dp) // dp)
    mbs = row.whole("micro_batch") or max(1, local // pp)
    text = row.words("recompute")
    op = "op" if "selective" in text else "none"
    checkpoint: Checkpoint = "full" if text.startswith("full") else op  # type: ignore[assignment]
    run = TorchtitanRun(
        architecture=architecture_of(row)[0],
        seq_len=row.whole("seq_len") or 8192,
        tp=point["tp"],
        pp=pp,
        cp=point["cp"],
        dp=dp * point["cp"],
        mbs=mbs,
        flight=max(1, local // mbs),
        checkpoint=checkpoint,
        compiled="compile" in row.words("extras"),
    )
    peak = max(torchtitan_peaks(run), key=lambda p: p.bytes)
    return _prediction(
        row, "torchtitan", peak, reserved(peak.bytes, 0, expandable=True), point
    )
