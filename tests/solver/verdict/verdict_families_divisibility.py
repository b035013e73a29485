"""Families of the rules of divisibility."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verdict_bases import Case, data_parallel, groups_of
from verdict_makers import Family, any_of, made

if TYPE_CHECKING:
    import random

MOE, DENSE = groups_of(moe=True), groups_of(moe=False)
_ANY = DENSE + MOE


def _heads(fits: bool) -> object:
    def then(rng: random.Random, case: Case) -> None:
        arch, tp = case["arch"], case["config"]["tp"]
        number = tp * rng.randrange(2, 9) + (0 if fits else rng.randrange(1, tp))
        arch |= {
            "num_attention_heads": number,
            "num_query_groups": 1,
            "kv_channels": 128,
        }

    return then


def _kv(fits: bool) -> object:
    def then(rng: random.Random, case: Case) -> None:
        arch, tp = case["arch"], case["config"]["tp"]
        found = [kv for kv in range(1, 25) if (kv % tp == 0 or tp % kv == 0) == fits]
        kv = rng.choice(found)
        arch |= {
            "num_attention_heads": kv * tp * rng.randrange(1, 4),
            "num_query_groups": kv,
            "kv_channels": 128,
        }

    return then


def _width(name: str, axis: str, fits: bool) -> object:
    def width(rng: random.Random, case: Case) -> int:
        config = case["config"]
        parts = config["etp"] if axis == "etp" else None
        parts = config["tp"] if parts is None else parts
        return int(
            parts * rng.randrange(500, 3000) + (0 if fits else rng.randrange(1, parts))
        )

    return {name: width}


def _vocabulary(fits: bool) -> object:
    def width(rng: random.Random, case: Case) -> int:
        tp = case["config"]["tp"]
        return int(
            tp * rng.randrange(9000, 20000) + (0 if fits else rng.randrange(1, tp))
        )

    return {"vocab_size": width}


def _length(per_cp: int, odd: bool, times_tp: bool) -> object:
    """Return a length that has, or has not, one more factor than it needs."""

    def length(rng: random.Random, case: Case) -> int:
        config = case["config"]
        unit = config["cp"] * per_cp
        if times_tp:
            unit *= config["tp"]
        base = unit * rng.randrange(40, 400)
        return int(base + rng.randrange(1, unit)) if odd else int(base)

    return {"seq": length}


def _uneven_batch(rng: random.Random, case: Case) -> None:
    part = case["micro_batch"] * data_parallel(case)
    kind = rng.randrange(4)
    if kind == 0 or part == 1:
        case["global_batch"] = 0
    elif kind == 1:
        case["global_batch"] = rng.randrange(1, part)
    else:
        case["global_batch"] += rng.randrange(1, part)


def _half_length(rng: random.Random, case: Case) -> None:
    """Give each context rank a length that tp does not divide, and 2 * cp does."""
    config = case["config"]
    tp, cp = config["tp"], config["cp"]
    step = 2 * cp if cp > 1 else 1
    while True:
        length = step * rng.randrange(100, 4000)
        if length % (cp * tp):
            case["seq"] = length
            return


_LATENT_FREE = tuple(a for a in _ANY if not a.startswith("latent"))
FAMILIES = [
    Family(
        "heads-tp",
        made({"arch": _LATENT_FREE, "tp": (2, 3, 4, 8)}, then=_heads(False)),
        made({"arch": _LATENT_FREE, "tp": (2, 3, 4, 8)}, then=_heads(True)),
    ),
    Family(
        "kv-tp",
        made({"arch": _LATENT_FREE, "tp": (2, 3, 4, 8)}, then=_kv(False)),
        made({"arch": _LATENT_FREE, "tp": (2, 3, 4, 8)}, then=_kv(True)),
    ),
    Family(
        "hidden-heads",
        made(
            {"arch": ("dense-32", "dense-80", "moe-32")},
            arch={"hidden_size": lambda rng, _: 128 * rng.randrange(9, 40) + 4},
        ),
        any_of(
            made({"arch": ("dense-32", "dense-80", "moe-32")}),
            made(
                {"arch": ("dense-32", "dense-80", "moe-32")},
                arch={
                    "hidden_size": lambda rng, _: 128 * rng.randrange(9, 40) + 4,
                    "kv_channels": 128,
                },
            ),
        ),
    ),
    Family(
        "ffn-tp",
        made(
            {"arch": (*DENSE, "moe-every-2"), "tp": (2, 3, 4, 8)},
            arch=_width("ffn_hidden_size", "tp", False),
        ),
        made(
            {"arch": (*DENSE, "moe-every-2"), "tp": (2, 3, 4, 8)},
            arch=_width("ffn_hidden_size", "tp", True),
        ),
    ),
    Family(
        "moe-ffn-etp",
        made(
            {"arch": ("moe-32", "moe-48", "moe-every-2"), "tp": (2, 4), "etp": None},
            arch=_width("moe_ffn_hidden_size", "etp", False),
        ),
        any_of(
            made(
                {"arch": ("moe-32", "moe-48"), "tp": (2, 4), "etp": None},
                arch=_width("moe_ffn_hidden_size", "etp", True),
            ),
            made(
                {"arch": ("moe-32", "moe-48"), "tp": (2, 4), "etp": 1},
                arch={"moe_ffn_hidden_size": (767, 1001, 1409)},
            ),
        ),
    ),
    Family(
        "shared-ffn-tp",
        made(
            {"arch": groups_of(shared=True), "tp": (2, 4, 8)},
            arch=_width("moe_shared_expert_intermediate_size", "tp", False),
        ),
        made(
            {"arch": groups_of(shared=True), "tp": (2, 4, 8)},
            arch=_width("moe_shared_expert_intermediate_size", "tp", True),
        ),
    ),
    Family(
        "vocab-pad",
        made({"tp": (2, 3, 4, 8)}, arch=_vocabulary(False), pad_vocab=False),
        any_of(
            made({"tp": (2, 3, 4, 8)}, arch=_vocabulary(True), pad_vocab=False),
            made({"tp": (2, 3, 4, 8)}, arch=_vocabulary(False)),
        ),
    ),
    Family(
        "seq-cp",
        made({"cp": (2, 3, 4), "tp": 1}, case=_length(2, True, False)),
        any_of(
            made({"cp": (2, 3, 4), "tp": 1}, case=_length(2, False, False)),
            made({"cp": 1, "tp": 1}, case={"seq": (4097, 2049, 5001)}),
        ),
    ),
    Family(
        "seq-sp",
        made({"tp": (3, 4, 8), "sp": True}, then=_half_length),
        any_of(
            made({"tp": (2, 4, 8), "sp": True}, case=_length(2, False, True)),
            made(
                {"arch": DENSE, "tp": (2, 4, 8), "sp": False, "cp": 1},
                case={"seq": (4097, 2049, 5001)},
            ),
        ),
    ),
    Family(
        "batch",
        any_of(
            made({"dp": (2, 3, 4)}, then=_uneven_batch),
            made(case={"micro_batch": (0, -1)}),
        ),
        made({"dp": (2, 3, 4), "m": (1, 2, 3, 5)}),
    ),
    Family(
        "sp-tp",
        made({"tp": 1}, sequence_parallel=True),
        any_of(made({"tp": 2, "sp": True}), made({"tp": 1})),
    ),
    Family(
        "moe-sp",
        made({"arch": MOE, "tp": (2, 4, 8)}, sequence_parallel=False),
        any_of(
            made({"arch": MOE, "tp": (2, 4, 8)}),
            made({"arch": MOE, "tp": 1}),
            made({"arch": DENSE, "tp": (2, 4)}, sequence_parallel=False),
        ),
    ),
]
