"""Which configurations are legal, written from the rules' sentences alone.

Imports nothing of the solver and nothing of the expression core: plain loops over
plain numbers, one check a sentence. Slow and obvious on purpose.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from . import brute_force_axes


@dataclass(frozen=True)
class Facts:
    """The constants of a problem; sizes per kind of layer as sets."""

    world: int
    domain: int
    seq_len: int
    global_batch: int
    layers: int
    heads: frozenset[int]
    kv_heads: frozenset[int]
    dense_ffn: frozenset[int]
    expert_ffn: frozenset[int]
    shared_ffn: frozenset[int]
    experts: int
    latent: bool
    tp_in_node: bool
    more: brute_force_axes.More | None = None

    @property
    def sizes(self) -> brute_force_axes.Sizes:
        """What the sentences on optional axes ask of the model."""
        return brute_force_axes.Sizes(
            heads=self.heads,
            kv_heads=self.kv_heads,
            dense_ffn=self.dense_ffn,
            expert_ffn=self.expert_ffn,
            shared_ffn=self.shared_ffn,
            experts=self.experts,
        )


def legal(axes: dict[str, list[object]], facts: Facts) -> Iterator[dict[str, object]]:
    """Yield every legal combination of axis values, with dp, edp and m.

    ``recompute`` is a frozenset of module names, ``"full"``, ``"full-uniform-n"`` or
    ``"full-block-n"``. Optional axes count where ``facts.more`` is given.
    """
    names = list(axes)
    for values in product(*axes.values()):
        point = dict(zip(names, values, strict=True))
        yield from _complete(point, facts)


def _complete(p: dict[str, object], f: Facts) -> Iterator[dict[str, object]]:
    """Try every dp, edp and m that could satisfy the products."""
    n = {k: v for k, v in p.items() if isinstance(v, int)}
    dp, rest = divmod(f.world, n["tp"] * n["pp"] * n["cp"])
    if rest or dp < 1:
        return
    edp, rest = divmod(f.world, n["etp"] * n["ep"] * n["pp"])
    if rest or edp < 1:
        return
    m, rest = divmod(n.get("gbs", f.global_batch), n["mbs"] * dp)
    if rest or m < 1:
        return
    whole = {**p, "dp": dp, "edp": edp, "m": m}
    if skeleton_fits(n, p, f, m) and _rest(p, f) and _optional(whole, f):
        yield whole


def skeleton_fits(n: dict[str, int], p: dict[str, object], f: Facts, m: int) -> bool:
    """Whether everything but recomputation, sharding and optional axes is legal."""
    return _groups(n, f) and _divisible(n, p, f) and _pipeline(n, p, f, m)


def _optional(whole: dict[str, object], f: Facts) -> bool:
    if f.more is None:
        return True
    n = {k: v for k, v in whole.items() if isinstance(v, int)}
    chunks = sizes(str(whole["split"]), f.layers, n["pp"], n["vpp"])
    assert chunks is not None
    return brute_force_axes.fits(whole, f.sizes, f.more, chunks)


def _groups(n: dict[str, int], f: Facts) -> bool:
    if f.experts == 0:
        return n["ep"] == 1 and n["etp"] == 1
    return f.experts % n["ep"] == 0


def _divisible(n: dict[str, int], p: dict[str, object], f: Facts) -> bool:
    tp, cp, etp = n["tp"], n["cp"], n["etp"]
    if any(h % tp for h in f.heads):
        return False
    if any(k % tp and tp % k for k in f.kv_heads):
        return False
    if any(w % tp for w in f.dense_ffn | f.shared_ffn):
        return False
    if any(w % etp for w in f.expert_ffn):
        return False
    if cp > 1 and f.seq_len % (2 * cp):
        return False
    if p["sp"]:
        if tp == 1 or (f.seq_len % cp) or (f.seq_len // cp) % tp:
            return False
    elif f.experts and tp > 1:
        return False
    return not f.tp_in_node or (f.domain % tp == 0 and f.domain % etp == 0)


def _pipeline(n: dict[str, int], p: dict[str, object], f: Facts, m: int) -> bool:
    pp, vpp = n["pp"], n["vpp"]
    if vpp > 1 and (pp == 1 or m % pp or m < pp):
        return False
    if p["schedule"] != ("interleaved" if vpp > 1 else "1f1b"):
        return False
    members = {name: sizes(name, f.layers, pp, vpp) for name in SPLITS}
    mine = members[str(p["split"])]
    if mine is None:
        return False
    earlier = SPLITS[: SPLITS.index(str(p["split"]))]
    return all(members[name] != mine for name in earlier)


SPLITS = ("even", "balanced", "first-last")


def sizes(split: str, layers: int, pp: int, vpp: int) -> list[int] | None:
    """Layers of every chunk along the model, or None where the family has none."""
    chunks = pp * vpp
    if split == "even":
        return [layers // chunks] * chunks if layers % chunks == 0 else None
    if split == "balanced":
        if layers < chunks or layers % chunks == 0:
            return None
        result = [layers // chunks + 1] * chunks
        left, front, back = sum(result) - layers, 0, chunks - 1
        at_back = True
        while left:
            if at_back:
                result[back] -= 1
                back -= 1
            else:
                result[front] -= 1
                front += 1
            at_back, left = not at_back, left - 1
        return result
    if pp < 3 or layers % vpp:
        return None
    per_depth = layers // vpp
    for middle in range(1, per_depth + 1):
        ends = per_depth - (pp - 2) * middle
        last, first = ends // 2, ends - ends // 2
        if first <= middle and last <= middle:
            return [first, *[middle] * (pp - 2), last] * vpp if last >= 1 else None
    return None


def _rest(p: dict[str, object], f: Facts) -> bool:
    if f.more is None and p["sharding"] not in ("none", "zero-1"):
        return False
    return modules_present(p["recompute"], f)


def modules_present(chosen: object, f: Facts) -> bool:
    """Whether the model has every module that is recomputed."""
    if isinstance(chosen, str):
        return True
    assert isinstance(chosen, frozenset)
    if "mla_up_proj" in chosen and not f.latent:
        return False
    if "layernorm" in chosen and not (f.latent or f.experts):
        return False
    if "mlp" in chosen and not f.dense_ffn:
        return False
    if chosen & {"moe", "moe_act"} and not f.experts:
        return False
    return not ("shared_experts" in chosen and not f.shared_ffn)
