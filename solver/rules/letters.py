"""Rules of the explicit pipeline layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.expr import (
    FALSE,
    TRUE,
    Expr,
    both,
    divides,
    either,
    equals,
    implies,
    negate,
    table,
)
from .rule import Rule
from .sources import CONFIG, LAUNCHER, LAYOUT, STAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...models.dialects.pipeline_layout import PipelineLayout
    from .facts import Facts

_VALID = f"{LAYOUT}, PipelineParallelLayerLayout.validate_layer_layout"
_PARSED = f"{LAYOUT}, PipelineParallelLayerLayout.parse_str_to_list"


def _law(check: Callable[[PipelineLayout, Facts], Expr]) -> Callable[[Facts], Expr]:
    """Hold a law over the layout; TRUE where there is none."""

    def body(facts: Facts) -> Expr:
        layout = facts.structures.layout
        return TRUE if layout is None else check(layout, facts)

    return body


def _truth(holds: bool) -> Expr:
    return TRUE if holds else FALSE


def _by_pp(facts: Facts, holds: Callable[[int], bool]) -> Expr:
    """Look up by pp what holds once the stages are dealt to the ranks."""
    found = [int(pp > 0 and holds(pp)) for pp in range(facts.dims.pp.hi + 1)]
    return equals(table(facts.dims.pp, found), 1)


def _ends(layout: PipelineLayout, facts: Facts) -> Expr:
    del facts
    text = layout.letters
    once = text.count("E") == 1 and text.count("L") == 1
    return _truth(once and text.startswith("E") and text.endswith("L"))


def _predictions(layout: PipelineLayout, facts: Facts) -> Expr:
    return _truth(layout.letters.count("m") == (facts.sizes.mtp_layers or 0))


def _mtp_place(layout: PipelineLayout, facts: Facts) -> Expr:
    first, last = layout.letters.find("m"), layout.letters.rfind("t")
    if first < 0:
        return TRUE
    in_order = last < first and layout.mtp_together
    return both(_truth(in_order), _by_pp(facts, layout.mtp_in_last_chunks))


def _follows(facts: Facts) -> Expr:
    """Whether the virtual size is the one the launcher takes from the layout."""
    return facts.on("vpp_from_layout")


def _same_vpp(layout: PipelineLayout, facts: Facts) -> Expr:
    d = facts.dims
    same = equals(d.vpp * d.pp, len(layout.stages))
    return implies(facts.on("vpp_given"), same)


def _all_chunks(layout: PipelineLayout, facts: Facts) -> Expr:
    single = _by_pp(facts, lambda pp: layout.chunks(pp) == 1)
    return either(_follows(facts), single, facts.on("vpp_given"))


LETTERS = (
    Rule(
        id="layout-alone",
        sentence="an explicit layout excludes first and last sizes and counting "
        "embedding or loss as a layer",
        source=f"{CONFIG}: pipeline_model_parallel_layout",
        body=_law(lambda _, f: negate(either(f.sized, f.accounted))),
        where="config",
    ),
    Rule(
        id="layout-letters",
        sentence="an explicit layout is written with E, t, m, L and |",
        source=_PARSED,
        body=_law(lambda layout, _: _truth(not layout.unknown)),
        where="config",
    ),
    Rule(
        id="layout-stages",
        sentence="an explicit layout has a multiple of pp stages",
        source=f"{LAYOUT}, PipelineParallelLayerLayout",
        body=_law(lambda layout, f: divides(f.dims.pp, len(layout.stages))),
        where="config",
    ),
    Rule(
        id="layout",
        sentence="an explicit layout starts with the one embedding and ends with the "
        "one loss",
        source=_VALID,
        body=_law(_ends),
        where="config",
    ),
    Rule(
        id="layout-layers",
        sentence="an explicit layout places each of the L decoder layers once (L = "
        "{L})",
        source=_VALID,
        body=_law(lambda p, f: _truth(p.letters.count("t") == f.sizes.layers)),
        where="config",
    ),
    Rule(
        id="layout-mtp-count",
        sentence="an explicit layout places each prediction layer once",
        source=_VALID,
        body=_law(_predictions),
        where="config",
    ),
    Rule(
        id="layout-mtp",
        sentence="prediction layers of an explicit layout lie together in one stage, "
        "behind all decoder layers, in the last chunk of their rank",
        source=_VALID,
        body=_law(_mtp_place),
        where="config",
    ),
    Rule(
        id="layout-vpp",
        sentence="a vpp given beside an explicit layout is the layout's own",
        source=f"{CONFIG}: virtual_pipeline_model_parallel_size",
        body=_law(_same_vpp),
        where="config",
    ),
    Rule(
        id="layout-vpp-twice",
        sentence="an explicit layout and a number of virtual stages are not both given "
        "to the launcher, be they equal",
        source=f"{LAUNCHER}: num_virtual_stages_per_pipeline_rank",
        body=_law(lambda _, f: either(negate(f.on("vpp_given")), _follows(f))),
        where="launcher only",
        checker="launcher",
    ),
    Rule(
        id="layout-lost",
        sentence="every layer is built once: groups that are not told the layout's "
        "vpp build the first chunk of each rank alone",
        source=f"{STAGES}: vp_stage 0 without a virtual size",
        body=_law(_all_chunks),
        where="never",
        checker="layers",
    ),
)
