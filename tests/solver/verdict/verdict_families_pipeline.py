"""Families of the rules of stages and of the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verdict_bases import (
    Case,
    groups_of,
    set_layers,
    set_micro_batches,
)
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
_FIRST = "num_layers_in_first_pipeline_stage"
_LAST = "num_layers_in_last_pipeline_stage"
_VIRTUAL = {"arch": ("dense-32", "dense-80", "moe-48", "bias-24"), "vpp": (2, 4)}


def _layers(fits: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        config = case["config"]
        unit = config["pp"] * (config["vpp"] or 1)
        off = 0 if fits else rng.randrange(1, unit)
        set_layers(case, unit * rng.randrange(2, 9) + off)

    return then


def _sizes(
    rng: random.Random, case: Case, *, first: int | None, last: int | None, middle: int
) -> None:
    """Give the ends and take as many layers as the middle needs."""
    del rng
    given = [n for n in (first, last) if n is not None]
    case["config"] |= {_FIRST: first, _LAST: last}
    stages = case["config"]["pp"] - len(given)
    set_layers(case, sum(given) + middle * max(stages, 0))


def _ends(kind: str) -> Any:
    """Return a change that gives one or both ends a size, legal but for ``kind``."""

    def then(rng: random.Random, case: Case) -> None:
        unit = case["config"]["vpp"] or 1
        ends = [unit * rng.randrange(1, 6), unit * rng.randrange(1, 6)]
        middle = unit * rng.randrange(1, 6)
        given = rng.choice(((True, True), (True, False), (False, True)))
        if kind == "positive":
            at = rng.randrange(2)
            given = (True, True) if given[at] else tuple(i == at for i in range(2))
            ends[at] = 0 if rng.random() < 0.7 else -unit
        if kind == "vpp":
            at = rng.choice([i for i in range(2) if given[i]])
            ends[at] += rng.randrange(1, unit)
        first, last = (n if g else None for n, g in zip(ends, given, strict=True))
        _sizes(rng, case, first=first, last=last, middle=middle)
        if kind == "middle":
            stages = case["config"]["pp"] - sum(given)
            more = rng.choice([n for n in range(1, 9) if n % (stages * unit)])
            set_layers(case, case["arch"]["num_layers"] + more)

    return then


def _no_middle(rng: random.Random, case: Case) -> None:
    unit = case["config"]["vpp"] or 1
    first, last = (unit * rng.randrange(1, 8) for _ in range(2))
    _sizes(rng, case, first=first, last=last, middle=0)


def _emptied(rng: random.Random, case: Case) -> None:
    """Leave stages between the ends without a layer to share."""
    first, last = rng.randrange(1, 9), rng.randrange(1, 9)
    _sizes(rng, case, first=first, last=last, middle=0)


def _overwritten(rng: random.Random, case: Case) -> None:
    layers = case["arch"]["num_layers"]
    first, last = rng.randrange(1, layers), rng.randrange(1, layers)
    last -= first + last == layers
    case["config"] |= {_FIRST: first, _LAST: max(last, 1)}


def _overdrawn(rng: random.Random, case: Case) -> None:
    layers, pp = case["arch"]["num_layers"], case["config"]["pp"]
    name = rng.choice((_FIRST, _LAST))
    case["config"][name] = layers + (pp - 1) * rng.randrange(1, 4)


def _whole_model(rng: random.Random, case: Case) -> None:
    layers = case["arch"]["num_layers"]
    name = rng.choice((_FIRST, _LAST))
    case["config"][name] = layers
    if name == _LAST and rng.random() < 0.5:
        case["config"][_FIRST] = rng.randrange(1, layers)


def _accounted(fits: bool) -> Any:
    def then(rng: random.Random, case: Case) -> None:
        config = case["config"]
        counted = rng.choice(((True, True), (True, False), (False, True)))
        config["account_for_embedding_in_pipeline_split"] = counted[0]
        config["account_for_loss_in_pipeline_split"] = counted[1]
        unit = config["pp"] * (config["vpp"] or 1)
        off = 0 if fits else rng.randrange(1, unit)
        set_layers(case, unit * rng.randrange(3, 9) + off - sum(counted))

    return then


def _account_too(rng: random.Random, case: Case) -> None:
    _ends("")(rng, case)
    name = rng.choice(("embedding", "loss"))
    case["config"][f"account_for_{name}_in_pipeline_split"] = True


def _group(kind: str) -> Any:
    """Return a change of the group of micro-batches and of their number."""

    def then(rng: random.Random, case: Case) -> None:
        pp = case["config"]["pp"]
        group = pp + rng.randrange(0, 4)
        rest = rng.randrange(pp, group) if group > pp and rng.random() < 0.5 else 0
        number = group * rng.randrange(1, 5) + rest
        if kind == "remainder":
            number = group * rng.randrange(1, 5) + rng.randrange(1, pp)
        if kind == "large":
            number = pp + rng.randrange(0, 6)
            group = number + rng.randrange(1, 5)
        if kind == "small":
            group = rng.randrange(1, pp)
            number = group * rng.randrange(pp, 3 * pp)
        unset = group == pp and rng.random() < 0.5
        case["config"]["microbatch_group_size_per_vp_stage"] = None if unset else group
        set_micro_batches(case, number)

    return then


_STAGED = {"pp": (2, 3, 4), "arch": ("dense-32", "dense-80", "moe-48", "bias-24")}
_WIDE = {"pp": (3, 4, 5), "arch": ("dense-80", "dense-30", "moe-48", "dense-32")}
FAMILIES = [
    Family(
        "layers-pp",
        any_of(
            made({"pp": (2, 3, 4, 6)}, then=_layers(False)),
            made(_VIRTUAL | {"pp": (2, 4)}, then=_layers(False)),
        ),
        any_of(
            made({"pp": (2, 3, 4, 6)}, then=_layers(True)),
            made(_VIRTUAL | {"pp": (2, 4)}, then=_layers(True)),
        ),
    ),
    Family(
        "size-positive",
        made(_WIDE, then=_ends("positive")),
        made(_WIDE, then=_ends("")),
    ),
    Family(
        "size-vpp",
        made(_VIRTUAL | {"pp": (4, 5)}, then=_ends("vpp")),
        made(_VIRTUAL | {"pp": (4, 5)}, then=_ends("")),
    ),
    Family(
        "size-middle",
        any_of(
            made(_WIDE | {"pp": (4, 5)}, then=_ends("middle")),
            made(_WIDE, then=_emptied),
        ),
        any_of(made(_WIDE, then=_ends("")), made({"pp": 2}, then=_no_middle)),
    ),
    Family(
        "size-division",
        made(_VIRTUAL | {"pp": 2}, then=_no_middle),
        any_of(
            made({"pp": 2, "arch": ("dense-32", "moe-48")}, then=_no_middle),
            made(_VIRTUAL | {"pp": (4, 5)}, then=_ends("")),
        ),
    ),
    Family(
        "size-lost",
        any_of(
            made({"pp": 1, "arch": (*DENSE, "moe-32")}, then=_overwritten),
            made({"pp": (3, 4, 5), "arch": DENSE}, then=_overdrawn),
        ),
        any_of(made({"pp": 1}, then=_whole_model), made(_WIDE, then=_ends(""))),
    ),
    Family(
        "size-account",
        made(_WIDE, then=_account_too),
        any_of(made(_WIDE, then=_ends("")), made(_WIDE, then=_accounted(True))),
    ),
    Family(
        "layers-account",
        any_of(
            made({"pp": (2, 3, 4)}, then=_accounted(False)),
            made(_VIRTUAL | {"pp": (2, 4)}, then=_accounted(False)),
        ),
        any_of(
            made({"pp": (1, 2, 3, 4)}, then=_accounted(True)),
            made(_VIRTUAL | {"pp": (2, 4)}, then=_accounted(True)),
        ),
    ),
    Family(
        "vpp-pp",
        any_of(
            made({"pp": 1, "arch": ("dense-32", "moe-48")}, vpp=1),
            made(
                {"pp": 1, "arch": ("dense-32", "moe-48")},
                vpp=(2, 4),
                overlap_p2p_comm=True,
            ),
        ),
        any_of(
            made({"pp": (2, 4), "vpp": 2, "arch": ("dense-32", "moe-48")}),
            made({"pp": 1}),
        ),
    ),
    Family(
        "vpp-p2p",
        made(_VIRTUAL | {"pp": 2}, overlap_p2p_comm=False),
        any_of(
            made(_VIRTUAL | {"pp": 2}),
            made(_VIRTUAL | {"pp": (4, 5)}, overlap_p2p_comm=False),
        ),
    ),
    Family(
        "p2p-overlap",
        made({"pp": (2, 3, 4, 5)}, overlap_p2p_comm=True),
        any_of(
            made({"pp": (2, 3, 4, 5)}),
            made({"pp": 1}, overlap_p2p_comm=True),
            made(_VIRTUAL | {"pp": (2, 4)}),
        ),
    ),
    Family(
        "p2p-flush",
        any_of(
            made({"pp": (1, 2, 3)}, overlap_p2p_comm_warmup_flush=True),
            made(
                _VIRTUAL | {"pp": 4},
                overlap_p2p_comm=False,
                overlap_p2p_comm_warmup_flush=True,
            ),
        ),
        made(_VIRTUAL | {"pp": (2, 4)}, overlap_p2p_comm_warmup_flush=True),
    ),
    Family(
        "vpp-microbatches",
        made(_VIRTUAL | {"pp": (2, 4, 5)}, then=_group("remainder")),
        made(_VIRTUAL | {"pp": (2, 4, 5)}, then=_group("")),
    ),
    Family(
        "m-ge-pp",
        made(_VIRTUAL | {"pp": (2, 4, 5)}, then=_group("large")),
        made(_VIRTUAL | {"pp": (2, 4, 5)}, then=_group("")),
    ),
    Family(
        "group-pp",
        made(_VIRTUAL | {"pp": (2, 4, 5)}, then=_group("small")),
        made(_VIRTUAL | {"pp": (2, 4, 5)}, then=_group("")),
    ),
]
