"""The layout of a run: its axes, and one choice of all of them.

What the codes of named axes mean is said in ``axis_values``.

Letters: W world size, m micro-batches of one data-parallel rank.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from .axis_values import CP_STYLES as CP_STYLES
from .axis_values import CROSS_ENTROPIES as CROSS_ENTROPIES
from .axis_values import DISPATCHERS as DISPATCHERS
from .axis_values import NAMES, SWITCHES, value_code, value_label
from .axis_values import OFFLOADS as OFFLOADS
from .axis_values import OVERLAPS as OVERLAPS
from .axis_values import PRECISIONS as PRECISIONS
from .axis_values import RECOMPUTE_BLOCK as RECOMPUTE_BLOCK
from .axis_values import RECOMPUTE_FULL as RECOMPUTE_FULL
from .axis_values import RECOMPUTE_MODULES as RECOMPUTE_MODULES
from .axis_values import SCHEDULES as SCHEDULES
from .axis_values import SHARDINGS as SHARDINGS
from .axis_values import SPLITS as SPLITS
from .axis_values import recompute_code as recompute_code
from .axis_values import recompute_label as recompute_label
from .axis_values import recompute_layers as recompute_layers
from .errors import unknown_name
from .expr import Axis, Expr, as_expr, axis

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Axes that every space lists, in the order they are shown.
DECIDED = (
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "etp",
    "mbs",
    "sp",
    "schedule",
    "split",
    "recompute",
    "sharding",
)
#: Axes that a space may list, and the code they have where it does not. The
#: training's own precision and loss kernel take the place of the first value.
#: ``gbs``, the global batch, is 0 where the training alone says it.
OPTIONAL: dict[str, int] = {
    "gbs": 0,
    "cp_style": CP_STYLES.index("auto"),
    "precision": PRECISIONS.index("bf16"),
    "cross_entropy": CROSS_ENTROPIES.index("unfused"),
    "offload": OFFLOADS.index("none"),
    "dispatcher": DISPATCHERS.index("alltoall"),
    "instances": 1,
    **dict.fromkeys(OVERLAPS, 0),
}
#: Every axis that a user may give.
AXES = (*DECIDED, *OPTIONAL)
#: Axes that follow from the decided ones: dp = W / (tp pp cp),
#: edp = W / (etp ep pp), m = global batch / (mbs dp).
DERIVED = ("dp", "edp", "m")
#: Axes whose values are names rather than whole numbers.
NAMED_AXES = (*SWITCHES, "recompute", *NAMES)


def axis_label(name: str, code: int) -> str:
    """Write one value of an axis as a user does."""
    return value_label(name, code)


def axis_code(name: str, text: str) -> int:
    """Read one value of an axis as a user writes it.

    Raises
    ------
    InputError
        If the axis or the value is unknown, or a size is below 1.
    """
    if name not in AXES:
        raise unknown_name("axis", name, AXES)
    return value_code(name, text)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One configuration: how a run is cut over the devices.

    Codes of named axes are those of ``axis_values``; ``dp``, ``edp`` and ``m``
    follow from the rest and the problem, and are kept so that a layout can be read
    alone. ``instances`` counts the replicas in which a sharded state is kept.
    """

    tp: int
    pp: int
    vpp: int
    cp: int
    ep: int
    etp: int
    mbs: int
    sp: int
    schedule: int
    split: int
    recompute: int
    sharding: int
    cp_style: int = OPTIONAL["cp_style"]
    precision: int = OPTIONAL["precision"]
    cross_entropy: int = OPTIONAL["cross_entropy"]
    offload: int = OPTIONAL["offload"]
    dispatcher: int = OPTIONAL["dispatcher"]
    instances: int = OPTIONAL["instances"]
    overlap_grads: int = OPTIONAL["overlap_grads"]
    overlap_params: int = OPTIONAL["overlap_params"]
    overlap_tp: int = OPTIONAL["overlap_tp"]
    overlap_ep: int = OPTIONAL["overlap_ep"]
    overlap_shared: int = OPTIONAL["overlap_shared"]
    dp: int
    edp: int
    m: int

    @property
    def gbs(self) -> int:
        """Sequences of one step over all devices."""
        return self.mbs * self.dp * self.m

    @staticmethod
    def from_point(point: Mapping[str, int]) -> Layout:
        """Take the axes of a point, ignoring other entries."""
        names = (f.name for f in fields(Layout))
        return Layout(**{n: int(point[n]) for n in names if n in point})

    def point(self) -> dict[str, int]:
        """Return all axes by name, coded."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"gbs": self.gbs}

    def written(self) -> dict[str, int]:
        """Return the axes that a person reads: optional ones where not the default."""
        point = self.point()
        del point["gbs"]
        return {n: c for n, c in point.items() if OPTIONAL.get(n) != c}

    def labels(self) -> dict[str, int | bool | str]:
        """Return ``written`` as a user reads it."""
        shown: dict[str, int | bool | str] = {}
        for name, code in self.written().items():
            named = name in NAMES or name == "recompute"
            shown[name] = axis_label(name, code) if named else code
            if name in SWITCHES:
                shown[name] = bool(code)
        return shown


_DEFAULT = {name: as_expr(code) for name, code in OPTIONAL.items()}


@dataclass(frozen=True, kw_only=True)
class Dims:
    """The axes as expressions: what rules and memory are written in.

    A value is an axis node, or a constant once the pipeline shape is fixed.
    """

    tp: Expr
    pp: Expr
    vpp: Expr
    cp: Expr
    ep: Expr
    etp: Expr
    mbs: Expr
    sp: Expr
    schedule: Expr
    split: Expr
    recompute: Expr
    sharding: Expr
    gbs: Expr = _DEFAULT["gbs"]
    cp_style: Expr = _DEFAULT["cp_style"]
    precision: Expr = _DEFAULT["precision"]
    cross_entropy: Expr = _DEFAULT["cross_entropy"]
    offload: Expr = _DEFAULT["offload"]
    dispatcher: Expr = _DEFAULT["dispatcher"]
    instances: Expr = _DEFAULT["instances"]
    overlap_grads: Expr = _DEFAULT["overlap_grads"]
    overlap_params: Expr = _DEFAULT["overlap_params"]
    overlap_tp: Expr = _DEFAULT["overlap_tp"]
    overlap_ep: Expr = _DEFAULT["overlap_ep"]
    overlap_shared: Expr = _DEFAULT["overlap_shared"]
    dp: Expr
    edp: Expr
    m: Expr

    @staticmethod
    def of(values: Mapping[str, tuple[int, ...]]) -> Dims:
        """Build the nodes from each axis's values; optional axes may be left out."""
        nodes = {}
        for name in (*AXES, *DERIVED):
            if name in OPTIONAL and name not in values:
                continue
            codes = tuple(sorted(set(values[name])))
            nodes[name] = axis(Axis(name, codes)) if len(codes) > 1 else codes[0]
        return Dims(**{k: as_expr(v) for k, v in nodes.items()})
