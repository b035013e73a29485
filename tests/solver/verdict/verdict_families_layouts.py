"""Families of the rules of explicit layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verdict_bases import (
    Case,
    groups_of,
    layout,
    set_micro_batches,
)
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
_FIRST = "num_layers_in_first_pipeline_stage"
_LAST = "num_layers_in_last_pipeline_stage"
_VIRTUAL = {"arch": ("dense-32", "dense-80", "moe-48", "bias-24"), "vpp": (2, 4)}


def _written(kind: str = "", mtp: int = 0) -> Any:
    """Return a change that writes an explicit layout, legal but for ``kind``."""

    def then(rng: random.Random, case: Case) -> None:
        config, layers = case["config"], case["arch"]["num_layers"]
        pp = config["pp"]
        chunks = rng.randrange(2 if kind.startswith("vpp") else 1, 4)
        chunks = 1 if kind == "single" else chunks
        number = layers + (rng.choice((-1, 1)) if kind == "count" else 0)
        stages = layout(rng, number, pp * chunks, mtp)
        if kind == "stages":
            stages.insert(1, "")
        _spoil(rng, kind, stages)
        if mtp and not kind.startswith("mtp"):
            config["mtp_num_layers"] = mtp
        _spoil_mtp(rng, kind, stages, config)
        config["pipeline_model_parallel_layout"] = "|".join(stages)
        config["overlap_p2p_comm"] = len(stages) > pp and len(stages) % pp == 0
        if kind == "vpp lost":
            config |= {"vpp_from_layout": False, "overlap_p2p_comm": False}
        if kind == "vpp other":
            config["vpp"] = chunks + rng.choice((1, 2))
        if kind in ("vpp same", "vpp twice"):
            config["vpp"] = chunks
            config["vpp_from_layout"] = kind == "vpp same"
        set_micro_batches(case, pp * rng.randrange(1, 4))

    return then


def _spoil(rng: random.Random, kind: str, stages: list[str]) -> None:
    at = rng.randrange(len(stages))
    if kind == "letters":
        text, unknown = stages[at], rng.choice("xTd1-e")
        first, last = int(at == 0), len(text) - (at == len(stages) - 1)
        where = rng.randrange(first, last + 1)
        stages[at] = text[:where] + unknown + text[where:]
    if kind == "ends":
        change = rng.randrange(4)
        if change == 0:
            stages[0] = stages[0].replace("E", "")
        elif change == 1:
            stages[-1] = stages[-1].replace("L", "")
        elif change == 2:
            stages[at] += "E"
        else:
            _take_layer(stages)
            stages[-1] += "t"


def _take_layer(stages: list[str]) -> None:
    at = next(i for i, stage in enumerate(stages) if "t" in stage)
    stages[at] = stages[at].replace("t", "", 1)


def _spoil_mtp(rng: random.Random, kind: str, stages: list[str], config: Case) -> None:
    def without() -> None:
        stages[:] = [s.replace("m", "") for s in stages]

    if kind == "mtp missing":
        without()
        config["mtp_num_layers"] = 1
    if kind == "mtp more":
        config["mtp_num_layers"] = rng.choice((None, 2, 3))
    if kind == "mtp early":  # a prediction layer before a decoder layer
        config["mtp_num_layers"] = 1
        without()
        stages[0] = stages[0].replace("E", "Em")
    if kind == "mtp apart":
        config["mtp_num_layers"] = 2
        without()
        stages[-2] += "t" * stages[-1].count("t") + "m"
        stages[-1] = "mL"


def _standalone(rng: random.Random, case: Case) -> None:
    """Give the prediction layer a stage before the loss, behind all decoders."""
    config, layers = case["config"], case["arch"]["num_layers"]
    pp, chunks = config["pp"], rng.randrange(1, 3)
    stages = [*layout(rng, layers, pp * chunks - 1), "L"]
    stages[-2] = stages[-2].replace("L", "") + "m"
    config |= {
        "pipeline_model_parallel_layout": "|".join(stages),
        "mtp_num_layers": 1,
        "overlap_p2p_comm": chunks > 1,
    }
    set_micro_batches(case, pp * rng.randrange(1, 4))


_STAGED = {"pp": (2, 3, 4), "arch": ("dense-32", "dense-80", "moe-48", "bias-24")}
_WIDE = {"pp": (3, 4, 5), "arch": ("dense-80", "dense-30", "moe-48", "dense-32")}
FAMILIES = [
    Family(
        "layout-alone",
        any_of(
            made(
                _STAGED, then=_written(), account_for_embedding_in_pipeline_split=True
            ),
            made(_STAGED, then=_written(), account_for_loss_in_pipeline_split=True),
            made(
                {"pp": 2, "arch": "dense-32"},
                then=_written("single"),
                num_layers_in_first_pipeline_stage=(8, 12, 16),
            ),
        ),
        made(_STAGED, then=_written()),
    ),
    Family(
        "layout-letters",
        made(_STAGED, then=_written("letters")),
        made(_STAGED, then=_written()),
    ),
    Family(
        "layout-stages",
        made(_STAGED, then=_written("stages")),
        made(_STAGED, then=_written()),
    ),
    Family(
        "layout", made(_STAGED, then=_written("ends")), made(_STAGED, then=_written())
    ),
    Family(
        "layout-layers",
        made(_STAGED, then=_written("count")),
        made(_STAGED, then=_written()),
    ),
    Family(
        "layout-mtp-count",
        any_of(
            made(_STAGED, then=_written("mtp missing", 1)),
            made(_STAGED, then=_written("mtp more", 1)),
        ),
        any_of(
            made(_STAGED, then=_written("", 1)), made(_STAGED, then=_written("", 2))
        ),
    ),
    Family(
        "layout-mtp",
        any_of(
            made(_STAGED, then=_written("mtp early", 1)),
            made(_STAGED, then=_written("mtp apart", 2)),
        ),
        any_of(made(_STAGED, then=_written("", 2)), made(_STAGED, then=_standalone)),
    ),
    Family(
        "layout-vpp",
        made(_STAGED, then=_written("vpp other")),
        made(_STAGED, then=_written("vpp same")),
    ),
    Family(
        "layout-vpp-twice",
        made(_STAGED, then=_written("vpp twice")),
        made(_STAGED, then=_written("vpp same")),
    ),
    Family(
        "layout-lost",
        made(_STAGED, then=_written("vpp lost")),
        any_of(made(_STAGED, then=_written("vpp ")), made(_STAGED, then=_written())),
    ),
]
