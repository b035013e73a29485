"""Cases written by hand for rules, or sides of rules, that no recorded verdict shows.

Each says whether the rule holds, and where that stands. Cases of Megatron are whole
configurations; the others are a small model on eight devices with some axes changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from megatron_cases import Case, change

from shardproof.models.dialects.pipeline_layout import PipelineLayout
from shardproof.models.dialects.sizes import Sizes
from shardproof.models.layout import SCHEDULES, Dims
from shardproof.solver.rules import Facts, Structures

PLAIN = {
    "tp": 1,
    "pp": 4,
    "vpp": 1,
    "cp": 1,
    "ep": 1,
    "etp": 1,
    "mbs": 1,
    "sp": 0,
    "schedule": SCHEDULES.index("1f1b"),
    "split": 0,
    "recompute": 0,
    "sharding": 1,
    "dp": 2,
    "edp": 2,
    "m": 8,
}
SIZES = Sizes(
    world=8,
    domain=8,
    seq_len=512,
    global_batch=16,
    layers=16,
    hidden=512,
    heads=(8,),
    kv_heads=(4,),
    vocab=32000,
    dense_ffn=(1536,),
)
OWN = "this planner: one writing of each configuration"
MOE = replace(SIZES, moe=True, experts=(8,), expert_ffn=(256,))


@dataclass(frozen=True)
class Hand:
    """A case, whether a rule holds in it, and the source of that.

    One that is ``read`` stands for a configuration that somebody wrote: the planner's
    own rules have no say in it.
    """

    holds: bool
    source: str
    case: Case | None = None
    sizes: Sizes = SIZES
    axes: Mapping[str, Any] = field(default_factory=dict)
    domains: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    options: Mapping[str, int] = field(default_factory=dict)
    layout: str | None = None
    dialect: str = ""
    read: bool = False

    def point(self) -> dict[str, int]:
        """Return the axes; derived ones are rounded down where they are not given."""
        known = set(Dims.__dataclass_fields__)
        p = PLAIN | {n: v for n, v in self.axes.items() if n in known}
        world, batch = self.sizes.world, self.sizes.global_batch
        p["dp"] = self.axes.get("dp", world // (p["tp"] * p["pp"] * p["cp"]) or 1)
        p["edp"] = self.axes.get("edp", world // (p["etp"] * p["ep"] * p["pp"]) or 1)
        p["m"] = self.axes.get("m", batch // (p["mbs"] * p["dp"]) or 1)
        return p

    def facts(self) -> Facts:
        """Return the axes and options of a case that is no configuration."""
        known, point = set(Dims.__dataclass_fields__), self.point()
        options = {n: v for n, v in self.axes.items() if n not in known}
        options |= self.options
        layout = None if self.layout is None else PipelineLayout.parse(self.layout)
        return Facts(
            dims=Dims.of({n: (c,) for n, c in point.items()} | dict(self.domains)),
            sizes_given=self.sizes,
            options=options,
            structures=Structures(layout=layout),
        )


def yes(source: str, base: Case, **changes: Any) -> Hand:
    """A configuration in which the rule holds."""
    return Hand(True, source, change(base, **changes))


def no(source: str, base: Case, **changes: Any) -> Hand:
    """A configuration that breaks the rule."""
    return Hand(False, source, change(base, **changes))


def both_sides(
    source: str, good: dict[str, Any], bad: dict[str, Any], sizes: Sizes = SIZES
) -> list[Hand]:
    """Axes with which the rule holds, and with which it does not."""
    return [
        Hand(True, source, sizes=sizes, axes=good),
        Hand(False, source, sizes=sizes, axes=bad),
    ]


def at(schedule: str, **axes: int) -> dict[str, int]:
    """Axes with a schedule by name."""
    return {"schedule": SCHEDULES.index(schedule), **axes}
