"""What a micro-batch keeps in a layer and at the ends, tensor by tensor.

Written from docs/memory.md, one function a paragraph. Everything is listed as if
nothing were recomputed; ``kept`` then takes away what its sentences say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....models.architecture import Attention, DenseFFN, LatentAttention, MoE
from .run import exact

if TYPE_CHECKING:
    from ....models.architecture import Layer
    from .run import Run

#: Bytes by name of tensor.
Tensors = dict[str, int]


def whole_layer(run: Run, layer: Layer) -> Tensors:
    """All that a layer keeps where nothing is recomputed."""
    tensors = norms(run, layer)
    if isinstance(layer.attention, Attention):
        tensors |= attention(run, layer.attention)
    else:
        tensors |= latent(run, layer.attention)
    block = layer.feed_forward
    if isinstance(block, DenseFFN):
        tensors |= network(run, block.ffn, block.gated, "mlp")
    else:
        tensors |= router(run, block) | experts(run, block) | shared(run, block)
    if run.training.dropout:
        tensors["dropout masks"] = 2 * run.T * run.h
    return tensors


def norms(run: Run, layer: Layer) -> Tensors:
    """Return what the norms of a layer keep, in bytes."""
    wide, tensors = run.e * run.T * run.h, {}
    for name in ("norm 1", "norm 2")[: layer.norms]:
        tensors[f"{name} input"] = tensors[f"{name} output"] = wide
        tensors[f"{name} statistics"] = run.statistics(run.T)
    if layer.norms == 4:
        for name in ("norm behind attention", "norm behind the network"):
            tensors[f"{name} input"] = wide
            tensors[f"{name} statistics"] = run.statistics(run.T)
    return tensors


def softmax(run: Run, heads: int) -> Tensors:
    """Return the statistics and the random state of fused attention, in bytes."""
    statistics = exact(4 * run.n * heads, run.config.tp)
    return {"softmax statistics": statistics, "random state": 16 * run.config.cp}


def packed(run: Run, att: Attention) -> int:
    """The output of the projection; gathered where ranks outnumber key heads."""
    tp = run.config.tp
    wide = run.e * run.n * (att.heads + 2 * att.kv_heads) * att.head_dim
    return wide if tp > att.kv_heads else exact(wide, tp)


def attention(run: Run, att: Attention) -> Tensors:
    """Return what grouped-query attention keeps, in bytes."""
    tp, d, per_number = run.config.tp, att.head_dim, run.e * run.n
    queries = exact(per_number * att.heads * d, tp)
    keys = exact(per_number * max(att.kv_heads, tp) * d, tp)
    tensors = softmax(run, att.heads) | {"attention output": queries}
    if unchanged(run, att) and att.heads == att.kv_heads:
        tensors["packed"] = packed(run, att)
    else:
        tensors |= {"queries": queries, "keys": keys, "values": keys}
    if att.qk_norm != "none":
        tensors |= {"query norm input": queries, "key norm input": keys}
    if att.qk_norm == "head":
        vectors = exact(run.n * att.heads, tp)
        tensors["query norm statistics"] = run.statistics(vectors)
        vectors = exact(run.n * max(att.kv_heads, tp), tp)
        tensors["key norm statistics"] = run.statistics(vectors)
    elif att.qk_norm == "full":
        tensors["query norm statistics"] = run.statistics(run.n)
        tensors["key norm statistics"] = run.statistics(run.n)
    return tensors


def unchanged(run: Run, att: Attention) -> bool:
    """Whether queries and keys go into attention as they were projected."""
    return run.model.position != "rope" and att.qk_norm == "none"


def latent(run: Run, att: LatentAttention) -> Tensors:
    """Return what latent attention keeps, in bytes."""
    tp, T, heads = run.config.tp, run.T, run.e * run.n * att.heads
    tensors = softmax(run, att.heads)
    ranks = {"keys and values": att.kv_rank}
    if att.q_rank is not None:
        ranks["queries"] = att.q_rank
    for name, rank in ranks.items():
        tensors[f"compressed {name}"] = run.e * T * rank
        tensors[f"normed compressed {name}"] = run.e * T * rank
        tensors[f"compressed {name} norm statistics"] = run.statistics(T)
    tensors["queries"] = exact(heads * (att.nope_dim + att.rope_dim), tp)
    tensors["keys"] = tensors["queries"]
    tensors["values"] = exact(heads * att.v_dim, tp)
    tensors["attention output"] = tensors["values"]
    return tensors


def network(run: Run, ffn: int, gated: bool, prefix: str) -> Tensors:
    """Return what a feed-forward network keeps, in bytes."""
    width = exact(run.e * run.n * ffn, run.config.tp)
    return {
        f"{prefix} first projection": width * (2 if gated else 1),
        f"{prefix} activation": width,
    }


def rows_of_the_fullest_rank(run: Run, moe: MoE) -> int:
    """R: every rank sends k T rows, spread evenly over all experts.

    What does not divide goes to the first experts, one row each; the first rank
    holds these.
    """
    ep, etp = run.config.ep, run.config.etp
    each, more = divmod(moe.topk * run.T, moe.experts)
    local = exact(moe.experts, ep)
    from_one_rank = sum(each + (expert < more) for expert in range(local))
    return from_one_rank * ep * etp


def router(run: Run, moe: MoE) -> Tensors:
    """Return what the router and the permutation keep, in bytes."""
    T, k, E, r = run.T, moe.topk, moe.experts, run.e
    tensors = {"moe chosen experts": 8 * k * T}
    if moe.scoring == "softmax":
        tensors["moe softmax"] = 4 * k * T
    else:
        tensors["moe sigmoid"] = 4 * E * T
        if k > 1:
            tensors["moe chosen scores"] = r * k * T
            tensors["moe sum of scores"] = r * T
        if moe.score_bias:
            tensors["moe cast scores"] = r * E * T
    tensors["moe permutation weights"] = r * E * T
    tensors["moe permutation map"] = E * T
    tensors["moe permutation indices"] = 8 * k * T
    return tensors


def experts(run: Run, moe: MoE) -> Tensors:
    """Return what the experts keep, in bytes."""
    R, e, etp = rows_of_the_fullest_rank(run, moe), run.e, run.config.etp
    return {
        "moe rows": e * R * run.h,
        "moe weights of rows": e * R,
        "moe first projection": exact(e * R * first_width(moe), etp),
        "moe activation": exact(e * R * moe.ffn, etp),
    }


def first_width(block: DenseFFN | MoE) -> int:
    """Return the width of the first projection, gate included."""
    return block.ffn * (2 if block.gated else 1)


def shared(run: Run, moe: MoE) -> Tensors:
    """Return what the shared experts keep, in bytes."""
    if not moe.shared_ffn:
        return {}
    tensors = network(run, moe.shared_ffn, moe.gated, "moe shared")
    if moe.shared_gate:
        tensors["moe shared gate"] = run.e * run.T * (run.h + 1)
    return tensors


def kept(run: Run, layer: Layer) -> Tensors:
    """What a layer keeps of ``whole_layer``, given the layout's recomputation."""
    tensors, chosen = whole_layer(run, layer), run.config.recompute
    if "full" in chosen:
        return {"norm 1 input": tensors["norm 1 input"]}
    is_moe, is_latent = layer.is_moe, isinstance(layer.attention, LatentAttention)
    if "core_attn" in chosen:
        recompute_core_attention(run, layer, tensors)
    if "layernorm" in chosen:
        drop(tensors, *(["norm 1 output", "norm 1 statistics"] * is_latent))
        drop(tensors, *(["norm 2 output", "norm 2 statistics"] * is_moe))
    if "mlp" in chosen and not is_moe:
        drop(tensors, "mlp first projection", "mlp activation")
        drop(tensors, "norm 2 output", "norm 2 statistics")
    if "moe" in chosen and is_moe:
        drop(tensors, *[name for name in tensors if name.startswith("moe ")])
    if "moe_act" in chosen and is_moe:
        drop(tensors, "moe activation")
    if "shared_experts" in chosen and is_moe:
        drop(tensors, *[name for name in tensors if name.startswith("moe shared")])
    if "mla_up_proj" in chosen and isinstance(layer.attention, LatentAttention):
        recompute_projections_up(run, layer.attention, tensors)
    return tensors


def drop(tensors: Tensors, *names: str) -> None:
    """Take tensors away, those that are there."""
    for name in names:
        tensors.pop(name, None)


def recompute_core_attention(run: Run, layer: Layer, tensors: Tensors) -> None:
    """Change what a layer keeps where its attention is recomputed."""
    drop(tensors, "softmax statistics", "random state")
    tensors["mask type"] = 4
    att = layer.attention
    if isinstance(att, LatentAttention):
        return
    tensors["packed"] = packed(run, att)
    drop(tensors, "values")
    if unchanged(run, att):
        drop(tensors, "keys")
        if att.heads == att.kv_heads or att.kv_heads <= run.config.tp:
            drop(tensors, "queries")


def recompute_projections_up(run: Run, att: LatentAttention, tensors: Tensors) -> None:
    """Change what latent attention keeps without its up-projections."""
    drop(tensors, "queries", "keys", "values")
    for name in ("queries", "keys and values"):
        drop(tensors, f"normed compressed {name}")
        drop(tensors, f"compressed {name} norm statistics")
    rank = att.kv_rank + att.rope_dim
    tensors["compressed keys and values"] = run.e * run.T * rank
    if run.config.sp:
        tensors["gathered rotary keys"] = run.e * run.n * att.rope_dim
    if run.config.cp > 1 and "core_attn" not in run.config.recompute:
        wide = att.heads * (att.nope_dim + att.rope_dim + att.v_dim)
        sent = exact(run.e * run.n * wide, run.config.tp)
        tensors["keys and values sent round"] = sent


def layer_moment(run: Run, layer: Layer) -> int:
    """Alive while a layer runs backward, beside what is kept."""
    remaining = kept(run, layer)
    again = {k: v for k, v in whole_layer(run, layer).items() if k not in remaining}
    wide, block = run.e * run.h, layer.feed_forward
    gradients = wide * run.T + (wide * run.n if run.config.sp else 0)
    if isinstance(block, MoE):
        R = rows_of_the_fullest_rank(run, block)
        first = exact(run.e * R * first_width(block), run.config.etp)
        gradients += 2 * wide * R + first
    else:
        gradients += exact(run.e * run.n * first_width(block), run.config.tp)
    return sum(again.values()) + gradients


def embedding(run: Run) -> int:
    """Return what one micro-batch keeps of the embedding, in bytes."""
    total = (8 + 1) * run.n if run.config.tp > 1 else 0
    if run.model.embedding_norm:
        total += run.e * run.n * run.h + run.statistics(run.n)
    return total + (run.T * run.h if run.training.dropout else 0)


def final_norm(run: Run) -> int:
    """Return what one micro-batch keeps of the last norm, in bytes."""
    wide = run.e * run.T * run.h
    return wide + run.statistics(run.T) if run.model.final_norm else 0


def loss(run: Run) -> int:
    """One output projection and its cross-entropy."""
    wide, several = run.e * run.T * run.h, run.config.mbs > 1
    if run.training.cross_entropy == "te-fused":
        targets = 8 * run.n if several else 0
        return wide + run.e * run.n * run.rows + 8 * run.n + targets
    return wide + 4 * run.n * run.rows + (8 + 1) * run.n


def mtp(run: Run) -> int:
    """One multi-token-prediction layer, its output projection apart."""
    wide = run.e * run.h
    total = embedding(run) + (8 * run.n if run.config.tp == 1 else 0)
    total += 2 * wide * run.T + 8 * run.n + 4
    if run.model.position == "learned":
        total += 8 * run.n
    if run.training.cross_entropy == "te-fused" and run.config.mbs == 1:
        total += 8 * run.n
    if "full" in run.config.recompute:
        return total
    total += 2 * run.statistics(run.T) + 2 * wide * run.T + wide * (run.n - run.T)
    layer = sum(kept(run, run.model.layers[-1]).values())
    return total + layer + final_norm(run)


def once(run: Run) -> int:
    """Kept once however many micro-batches are held."""
    total, config = 0, run.config
    if not config.recompute & {"full", "core_attn"}:
        total += 4 * (config.mbs + 1) * (2 if config.cp > 1 else 1)
    if run.model.position == "rope":
        plain = [layer.attention for layer in run.model.layers]
        widths = {a.head_dim for a in plain if isinstance(a, Attention)}
        total += sum(4 * exact(run.training.seq_len, config.cp) * w for w in widths)
    return total


def loss_moment(run: Run) -> int:
    """Alive while the loss runs, beside what is kept."""
    logits = 2 * run.n * run.rows
    copies = {"unfused": logits, "native-fused": 3 * logits}
    head = 2 * run.rows * run.h
    extra = copies.get(run.training.cross_entropy, head)
    gathered = run.n if run.config.sp else 0
    return extra + run.e * run.h * (run.n + gathered)


def embedding_moment(run: Run) -> int:
    """Alive while the embedding runs backward, beside what is kept."""
    return 2 * run.h * run.rows + run.e * run.n * run.h
