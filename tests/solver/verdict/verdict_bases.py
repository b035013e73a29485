"""Legal configurations to start from: models, skeletons, plain options.

Written from the arithmetic of parallel sizes alone; nothing of the product is used.
A case has the form ``{"arch", "config", "world", "global_batch", "micro_batch",
"seq"}``, with the names of ``TransformerConfig`` and of Megatron's launcher.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from verdict_models import ARCHITECTURES, PLAIN, Case

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

#: What a skeleton may be if nobody says otherwise.
_CHOICES: dict[str, tuple[Any, ...]] = {
    "arch": tuple(ARCHITECTURES),
    "tp": (1, 1, 2, 2, 3, 4, 5, 8),
    "pp": (1, 1, 2, 2, 3, 4, 5, 6, 7, 8),
    "vpp": (None,),
    "cp": (1, 1, 1, 2, 3, 4),
    "dp": (1, 1, 2, 2, 3, 4),
    "ep": (1, 1, 2, 3, 4, 6, 8),
    "etp": (None, None, 1, 2),
    "mbs": (1, 1, 2, 4),
    "m": (1, 2, 3, 4, 6, 8, 12),
}


def groups_of(*, moe: bool | None = None, **has: bool) -> tuple[str, ...]:
    """Return the architectures with or without experts, shared ones, biases, ..."""
    keys = {
        "shared": "moe_shared_expert_intermediate_size",
        "latent": "mla",
        "bias": "bias",
        "dense_layers": "moe_layer_freq",
    }
    found = []
    for name, arch in ARCHITECTURES.items():
        if moe is not None and moe != ("num_moe_experts" in arch):
            continue
        if all(bool(arch.get(keys[k])) == wanted for k, wanted in has.items()):
            found.append(name)
    return tuple(found)


def divisors(number: int, up_to: int = 64) -> list[int]:
    """Return the divisors of a number, small ones only."""
    return [d for d in range(1, min(number, up_to) + 1) if number % d == 0]


def _tensor_fits(arch: Case, tp: int, etp: int) -> bool:
    heads, kv = arch["num_attention_heads"], arch.get("num_query_groups")
    kv = kv or heads
    widths = [arch["ffn_hidden_size"]]
    widths.append(arch.get("moe_shared_expert_intermediate_size") or tp)
    whole = all(n % tp == 0 for n in (heads, *widths))
    replicas = kv % tp == 0 or tp % kv == 0
    return whole and replicas and (arch.get("moe_ffn_hidden_size") or etp) % etp == 0


def _try(rng: random.Random, wants: dict[str, Any]) -> Case | None:
    def pick(name: str) -> Any:
        chosen = wants.get(name, _CHOICES[name])
        return rng.choice(chosen) if isinstance(chosen, tuple) else chosen

    name = pick("arch")
    arch = copy.deepcopy(ARCHITECTURES[name])
    moe = "num_moe_experts" in arch
    tp, pp, vpp, cp, dp = (pick(k) for k in ("tp", "pp", "vpp", "cp", "dp"))
    ep, etp = (
        (pick("ep"), pick("etp"))
        if moe
        else (1, pick("etp") if "etp" in wants else None)
    )
    if moe and arch.get("bias"):
        etp = 1
    world, over = tp * pp * cp * dp, tp if etp is None else etp
    if not _tensor_fits(arch, tp, over) or arch["num_layers"] % (pp * (vpp or 1)):
        return None
    if world % (over * ep * pp) or (moe and arch["num_moe_experts"] % ep):
        return None
    if vpp is not None and pp < 2:
        return None
    mbs, m = pick("mbs"), pick("m")
    if vpp is not None and "m" not in wants:
        m *= pp
    lengths = [s for s in (2048, 3840, 4096, 6144, 7680) if s % (2 * cp * tp) == 0]
    if not lengths:
        return None
    sp = tp > 1 and (moe or rng.random() < 0.5)
    config = copy.deepcopy(PLAIN) | {
        "tp": tp,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "ep": ep,
        "etp": etp,
        "sequence_parallel": wants.get("sp", sp) and tp > 1,
        "overlap_p2p_comm": vpp is not None,
    }
    return {
        "arch": arch | {"name": name},
        "config": config,
        "world": world,
        "global_batch": mbs * dp * m,
        "micro_batch": mbs,
        "seq": rng.choice(lengths),
    }


def draw_base(rng: random.Random, **wants: Any) -> Case:
    """Draw a legal case; ``wants`` fixes a part, or gives the values it may have."""
    for _ in range(100_000):
        found = _try(rng, wants)
        if found is not None:
            return found
    raise ValueError(f"no legal skeleton with {wants}")


def data_parallel(case: Case) -> int:
    """Return the data-parallel size of a case."""
    config = case["config"]
    return int(case["world"] // (config["tp"] * config["pp"] * config["cp"]))


def micro_batches(case: Case) -> int:
    """Return the micro-batches of one rank."""
    return int(case["global_batch"] // (case["micro_batch"] * data_parallel(case)))


def set_micro_batches(case: Case, number: int) -> None:
    """Change the global batch so that a rank has so many micro-batches."""
    case["global_batch"] = case["micro_batch"] * data_parallel(case) * number


def set_layers(case: Case, number: int) -> None:
    """Change the number of layers, and the list of sparse ones with it."""
    arch = case["arch"]
    arch["num_layers"] = number
    if isinstance(arch.get("moe_layer_freq"), list):
        arch["moe_layer_freq"] = [0, 0] + [1] * (number - 2)


def split_randomly(rng: random.Random, layers: int, stages: int) -> Iterator[int]:
    """Deal layers to stages; a stage may stay empty."""
    cuts = sorted(rng.randrange(layers + 1) for _ in range(stages - 1))
    for low, high in zip([0, *cuts], [*cuts, layers], strict=True):
        yield high - low


def layout(rng: random.Random, layers: int, stages: int, mtp: int = 0) -> list[str]:
    """Write an explicit pipeline layout, stage by stage."""
    written = ["t" * n for n in split_randomly(rng, layers, stages)]
    written[0] = "E" + written[0]
    written[-1] += "m" * mtp + "L"
    return written
