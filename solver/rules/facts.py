"""What a rule's body may use: sizes, axes and options.

Letters of the sentences: W world size, N nodes, S sequence length, L layers,
H attention heads, KV key/value heads, E experts, B global batch, m micro-batches
of one data-parallel rank, n = tp * cp, D devices of a scale-up domain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ...models.dialects.option import UNSET
from ...models.dialects.options import ALL_OPTIONS as OPTIONS
from ...models.dialects.sizes import Sizes
from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    as_expr,
    at_least,
    both,
    either,
    equals,
    floor_div,
    less,
    modulo,
    negate,
    one_of,
    table,
    where,
)
from ...models.layout import (
    RECOMPUTE_FULL,
    RECOMPUTE_MODULES,
    SCHEDULES,
    SHARDINGS,
)
from .dialects import PRESETS, parse_dialect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...models.dialects.pipeline_layout import PipelineLayout
    from ...models.layout import Dims
    from ...models.problem import Problem

#: Schedules whose two chunks of a rank form a V; none of them is interleaved.
_V_SHAPED = [SCHEDULES.index(n) for n in ("zbv", "v-half", "v-min", "dualpipev")]
_FSDP2 = SHARDINGS.index("fsdp2")
PLAIN_ORDER = "tp-cp-ep-dp-pp"


@dataclass(frozen=True, kw_only=True)
class Structures:
    """Options that are no number: parsed once, the same at every point.

    Attributes
    ----------
    layout
        The explicit pipeline layout, if there is one.
    cp_sizes
        Sizes of the levels of hierarchical context parallelism, if given.
    cp_styles
        Styles of context parallelism by layer, if given as a list.
    order
        The order of ranks, fastest first.
    planned
        Whether this planner writes what is left open, such as the levels of
        hierarchical context parallelism.
    """

    layout: PipelineLayout | None = None
    cp_sizes: tuple[int, ...] | None = None
    cp_styles: tuple[str, ...] | None = None
    order: str = PLAIN_ORDER
    planned: bool = False


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a rule's body may use.

    Attributes
    ----------
    dims
        The axes.
    problem, sizes_given
        Where the sizes come from; one of them is needed.
    options
        Options that differ from their default, by name.
    structures
        Options that are no number.
    """

    dims: Dims
    problem: Problem | None = None
    sizes_given: Sizes | None = None
    options: Mapping[str, Expr | int] = field(default_factory=dict)
    structures: Structures = field(default_factory=Structures)

    @cached_property
    def sizes(self) -> Sizes:
        """The numbers of the model and the run."""
        if self.sizes_given is not None:
            return self.sizes_given
        assert self.problem is not None
        return Sizes.of(self.problem)

    @cached_property
    def _coded(self) -> dict[str, Expr]:
        return {}

    @cached_property
    def _preset(self) -> Mapping[str, int]:
        dialect = parse_dialect(self.problem.dialect)[0] if self.problem else ""
        return PRESETS.get(dialect, {})

    def option(self, name: str) -> Expr:
        """Return the code of an option; a constant unless somebody set it."""
        found = self._coded.get(name)
        if found is None:
            code = self.options.get(name)
            if code is None:
                code = self._preset.get(name, OPTIONS[name].default)
            found = self._coded[name] = as_expr(code)
        return found

    def on(self, name: str) -> Expr:
        """Whether a flag is on."""
        code = self.option(name)
        if code.constant is not None:
            return TRUE if code.constant == 1 else FALSE
        return equals(code, 1)

    def says(self, name: str, *labels: str) -> Expr:
        """Whether a choice is one of some labels."""
        known, code = OPTIONS[name].labels, self.option(name)
        codes = [known.index(label) for label in labels]
        if code.constant is not None:
            return TRUE if code.constant in codes else FALSE
        return one_of(code, codes)

    def has(self, name: str, label: str) -> Expr:
        """Whether a set holds a label."""
        bit = 1 << OPTIONS[name].labels.index(label)
        return equals(modulo(floor_div(self.option(name), bit), 2), 1)

    def known(self, name: str) -> Expr:
        """Whether the framework knows what a choice or a set says."""
        return less(self.option(name), OPTIONS[name].unknown)

    def given(self, name: str) -> Expr:
        """Whether a whole-number option has a value."""
        return negate(equals(self.option(name), UNSET))

    @property
    def interleaved(self) -> Expr:
        """Whether the interleaved schedule runs; core does so for a given vpp of 1."""
        chunks = both(at_least(self.dims.vpp, 2), negate(self._v_shaped))
        return either(chunks, self.on("vpp_given"))

    @property
    def _v_shaped(self) -> Expr:
        return one_of(self.dims.schedule, _V_SHAPED)

    @property
    def selective(self) -> Expr:
        """Whether modules are recomputed."""
        axis = self.dims.recompute
        by_axis = both(at_least(axis, 1), less(axis, RECOMPUTE_FULL))
        return self._granularity("selective", by_axis)

    @property
    def full(self) -> Expr:
        """Whether whole layers are recomputed."""
        return self._granularity("full", at_least(self.dims.recompute, RECOMPUTE_FULL))

    @property
    def recomputes(self) -> Expr:
        """Whether any recomputation is asked for, be it one nobody knows."""
        name = "recompute_granularity"
        by_axis = both(self.says(name, "auto"), at_least(self.dims.recompute, 1))
        return either(negate(self.says(name, "auto", "none")), by_axis)

    def _granularity(self, label: str, by_axis: Expr) -> Expr:
        name = "recompute_granularity"
        return either(self.says(name, label), both(self.says(name, "auto"), by_axis))

    def module(self, name: str) -> Expr:
        """Whether a module is in the set that is recomputed."""
        bit = RECOMPUTE_MODULES.index(name)
        codes = range(self.dims.recompute.hi + 1)
        found = [int(c < RECOMPUTE_FULL and c >> bit & 1) for c in codes]
        return both(self.selective, equals(table(self.dims.recompute, found), 1))

    @property
    def distributed_optimizer(self) -> Expr:
        """Whether Megatron's own optimizer is sharded over data-parallel ranks."""
        axis = self.dims.sharding
        return both(at_least(axis, 1), negate(equals(axis, _FSDP2)))

    @property
    def batch(self) -> Expr:
        """Sequences of a step."""
        axis = self.dims.gbs
        return as_expr(self.sizes.global_batch) if axis.constant == 0 else axis

    @property
    def p2p_overlap(self) -> Expr:
        """Whether sends and receives overlap; left alone, where it is possible."""
        auto = both(self.says("overlap_p2p_comm", "auto"), self.interleaved)
        return either(self.says("overlap_p2p_comm", "on"), auto)

    @property
    def by_family(self) -> Expr:
        """Whether stages follow the split axis, not sizes, accounting or letters."""
        if self.structures.layout is not None:
            return as_expr(0)
        return negate(either(self.sized, self.accounted))

    @property
    def sized(self) -> Expr:
        """Whether the first or the last stage's layers are given."""
        return either(
            self.given("num_layers_in_first_pipeline_stage"),
            self.given("num_layers_in_last_pipeline_stage"),
        )

    @property
    def accounted(self) -> Expr:
        """Whether embedding or loss count as a layer of the split."""
        return either(
            self.on("account_for_embedding_in_pipeline_split"),
            self.on("account_for_loss_in_pipeline_split"),
        )

    @property
    def group(self) -> Expr:
        """Micro-batches that pass a chunk in a row, pp unless given."""
        name = "microbatch_group_size_per_vp_stage"
        return where(self.given(name), self.option(name), self.dims.pp)

    @cached_property
    def constants(self) -> dict[str, object]:
        """The letters of the sentences and their values."""
        sizes = self.sizes
        return {
            "W": sizes.world,
            "S": sizes.seq_len,
            "B": sizes.global_batch,
            "L": sizes.layers,
            "H": "/".join(map(str, sizes.heads)),
            "KV": "/".join(map(str, sizes.kv_heads)) or "-",
            "E": "/".join(map(str, sizes.experts)) or 0,
            "D": sizes.domain,
        }
