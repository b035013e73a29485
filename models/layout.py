"""The layout of a run: its axes, their names, and one choice of all of them.

Axes of whole numbers stand for themselves. Axes of names are coded: the code is
the position in ``SCHEDULES``, ``SPLITS`` and ``SHARDINGS``, and a set of bits over
``RECOMPUTE_MODULES`` for ``recompute``.

Letters: W world size, m micro-batches of one data-parallel rank.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from .errors import InputError, unknown_name
from .expr import Axis, Expr, as_expr, axis

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEDULES = (
    "1f1b",
    "interleaved",
    "gpipe",
    "zb-h1",
    "zb-h2",
    "zbv",
    "v-half",
    "v-min",
    "dualpipe",
    "dualpipev",
)
SPLITS = ("even", "balanced", "first-last")
SHARDINGS = ("none", "zero-1", "zero-2", "zero-3")
RECOMPUTE_MODULES = (
    "core_attn",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "moe_act",
    "shared_experts",
)
RECOMPUTE_FULL = 1 << len(RECOMPUTE_MODULES)

#: Axes that a space lists, in the order they are shown.
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
#: Axes that follow from the decided ones: dp = W / (tp pp cp),
#: edp = W / (etp ep pp), m = global batch / (mbs dp).
DERIVED = ("dp", "edp", "m")


def recompute_label(code: int) -> str:
    """Name a recompute choice: none, full, or modules joined by ``+``."""
    if code == RECOMPUTE_FULL:
        return "full"
    names = [n for i, n in enumerate(RECOMPUTE_MODULES) if code >> i & 1]
    return "+".join(names) or "none"


def recompute_code(label: str) -> int:
    """Read a recompute choice: none, full, or modules joined by ``+``."""
    if label in ("none", "full"):
        return RECOMPUTE_FULL if label == "full" else 0
    code = 0
    for name in label.split("+"):
        if name not in RECOMPUTE_MODULES:
            known = ("none", "full", *RECOMPUTE_MODULES)
            raise unknown_name("recompute choice", name, known)
        code |= 1 << RECOMPUTE_MODULES.index(name)
    return code


#: Axes whose values are names rather than whole numbers.
NAMED_AXES = ("sp", "schedule", "split", "recompute", "sharding")
_NAMED = {"schedule": SCHEDULES, "split": SPLITS, "sharding": SHARDINGS}


def axis_label(name: str, code: int) -> str:
    """Write one value of an axis as a user does."""
    if name == "recompute":
        return recompute_label(code)
    if name == "sp":
        return "on" if code else "off"
    return _NAMED[name][code] if name in _NAMED else str(code)


def axis_code(name: str, text: str) -> int:
    """Read one value of an axis as a user writes it.

    Raises
    ------
    InputError
        If the axis or the value is unknown, or a size is below 1.
    """
    if name not in DECIDED:
        raise unknown_name("axis", name, DECIDED)
    text = text.strip().lower()
    if name == "recompute":
        return recompute_code(text)
    if name == "sp":
        if text not in ("on", "off", "true", "false", "1", "0"):
            raise InputError(f"sp is on or off, got {text!r}")
        return int(text in ("on", "true", "1"))
    if name in _NAMED:
        if text not in _NAMED[name]:
            raise unknown_name(name, text, _NAMED[name])
        return _NAMED[name].index(text)
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise InputError(
            f"{name} must be a whole number of at least 1, got {text[:40]!r}"
        )
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One configuration: how a run is cut over the devices.

    Codes of named axes are those of this module; ``dp``, ``edp`` and ``m`` follow
    from the rest and the problem, and are kept so that a layout can be read alone.
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
    dp: int
    edp: int
    m: int

    @staticmethod
    def from_point(point: Mapping[str, int]) -> Layout:
        """Take the axes of a point, ignoring other entries."""
        return Layout(**{n: int(point[n]) for n in (*DECIDED, *DERIVED)})

    def point(self) -> dict[str, int]:
        """Return all axes by name, coded."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def labels(self) -> dict[str, int | bool | str]:
        """Return all axes by name, as a user reads them."""
        named = ("schedule", "split", "recompute", "sharding")
        shown: dict[str, int | bool | str] = dict(self.point())
        shown.update({n: axis_label(n, getattr(self, n)) for n in named})
        shown["sp"] = bool(self.sp)
        return shown


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
    dp: Expr
    edp: Expr
    m: Expr

    @staticmethod
    def of(values: Mapping[str, tuple[int, ...]]) -> Dims:
        """Build the nodes from each axis's values; all axes must be given."""
        nodes = {}
        for name in (*DECIDED, *DERIVED):
            codes = tuple(sorted(set(values[name])))
            nodes[name] = axis(Axis(name, codes)) if len(codes) > 1 else codes[0]
        return Dims(**{k: as_expr(v) for k, v in nodes.items()})
