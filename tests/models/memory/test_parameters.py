"""Totals against the published ones, and the laws of sharding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardproof.models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from shardproof.models.expr import total, value
from shardproof.models.layout import DECIDED, DERIVED, Dims
from shardproof.models.parameters import (
    embedding_tensors,
    head_tensors,
    layer_tensors,
    local_counts,
    mtp_tensors,
    parameter_count,
    vocab_rows,
)


def llama(hidden, heads, kv, ffn, layers, vocab, **facts):
    layer = Layer(
        attention=Attention(heads=heads, kv_heads=kv, head_dim=hidden // heads),
        feed_forward=DenseFFN(ffn=ffn, gated=True),
    )
    return Architecture(
        name="x", hidden=hidden, vocab=vocab, layers=(layer,) * layers, **facts
    )


def mixtral(hidden, heads, ffn, layers, vocab):
    layer = Layer(
        attention=Attention(heads=heads, kv_heads=8, head_dim=hidden // heads),
        feed_forward=MoE(experts=8, topk=2, ffn=ffn, gated=True),
    )
    return Architecture(name="x", hidden=hidden, vocab=vocab, layers=(layer,) * layers)


def deepseek_v3():
    attention = LatentAttention(
        heads=128, q_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128
    )
    dense = Layer(attention=attention, feed_forward=DenseFFN(ffn=18432, gated=True))
    sparse = Layer(
        attention=attention,
        feed_forward=MoE(
            experts=256, topk=8, ffn=2048, gated=True, shared_ffn=2048, score_bias=True
        ),
    )
    return Architecture(
        name="x",
        hidden=7168,
        vocab=129280,
        layers=(dense,) * 3 + (sparse,) * 58,
        mtp_layers=1,
    )


# Totals: safetensors metadata of the models' Hugging Face pages (meta-llama/Llama-3.1
# -8B, -70B, -405B, Llama-3.2-1B with tied embeddings, mistralai/Mixtral-8x7B-v0.1,
# Qwen/Qwen2.5-7B with biases of queries, keys and values).
PUBLISHED = [
    (llama(4096, 32, 8, 14336, 32, 128256), 8_030_261_248),
    (llama(8192, 64, 8, 28672, 80, 128256), 70_553_706_496),
    (llama(16384, 128, 8, 53248, 126, 128256), 405_853_388_800),
    (llama(2048, 32, 8, 8192, 16, 128256, tied=True), 1_235_814_400),
    (mixtral(4096, 32, 14336, 32, 32000), 46_702_792_704),
    (mixtral(6144, 48, 16384, 56, 32768), 140_630_071_296),
]


@pytest.mark.parametrize(("architecture", "published"), PUBLISHED)
def test_published_total(architecture, published):
    assert parameter_count(architecture) == published


def test_deepseek_v3_total_without_its_selection_biases():
    # The checkpoint's 671,026,419,200 count 58 * 256 selection biases as parameters.
    assert parameter_count(deepseek_v3()) == 671_026_419_200 - 58 * 256


def test_mtp_adds_one_layer_two_norms_projection_and_final_norm():
    arch = deepseek_v3()
    layer = sum(t.count for t in layer_tensors(arch, arch.layers[-1]))
    with_mtp = parameter_count(arch, mtp=True)
    assert with_mtp - parameter_count(arch) == layer + 3 * 7168 + 2 * 7168**2


def whole_dims(**chosen):
    values = {name: (1,) for name in (*DECIDED, *DERIVED)}
    values.update({"sp": (0,), "recompute": (0,), "sharding": (0,)})
    return Dims.of({**values, **chosen})


@given(
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    ep=st.sampled_from([1, 2, 4, 8]),
    etp=st.sampled_from([1, 2]),
)
def test_ranks_hold_the_whole_and_copies_of_what_is_replicated(tp, ep, etp):
    arch = mixtral(4096, 32, 14336, 2, 32000)
    dims = whole_dims(tp=(1, tp), ep=(1, ep), etp=(1, etp))
    point = {"tp": tp, "ep": ep, "etp": etp}
    tensors = layer_tensors(arch, arch.layers[0])
    dense, expert = local_counts(tensors, dims, vocab_rows(arch, dims))
    by_shard = dict.fromkeys(("column", "row", "replicated", "expert"), 0)
    for tensor in tensors:
        by_shard[tensor.shard] += tensor.count
    whole = by_shard["column"] + by_shard["row"] + tp * by_shard["replicated"]
    assert value(dense, point) * tp == whole
    assert value(expert, point) * ep * etp == by_shard["expert"]


@given(tp=st.integers(1, 64), vocab=st.integers(1, 300_000))
def test_padding_is_the_least_multiple(tp, vocab):
    arch = llama(64, 1, 1, 64, 1, vocab)
    rows = value(vocab_rows(arch, whole_dims(tp=(tp,))), {})
    assert rows * tp >= vocab
    assert (rows * tp) % (128 * tp) == 0
    assert rows * tp - vocab < 128 * tp


def test_query_projection_is_divided_where_tp_exceeds_the_kv_heads():
    arch = llama(4096, 32, 8, 14336, 1, 128256)
    tensors = [t for t in layer_tensors(arch, arch.layers[0]) if "qkv" in t.name]
    dims = whole_dims(tp=(16,))
    dense, _ = local_counts(tensors, dims, vocab_rows(arch, dims))
    assert value(dense, {}) == (32 + 2 * 8) * 128 * 4096 // 16


def test_every_part_has_a_positive_count():
    arch = deepseek_v3()
    for tensors in (embedding_tensors(arch), head_tensors(arch), mtp_tensors(arch)):
        assert value(total(t.count for t in tensors), {}) > 0
