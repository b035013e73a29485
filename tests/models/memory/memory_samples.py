"""Architectures and axes for tests of memory."""

from shardproof.models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from shardproof.models.layout import DECIDED, DERIVED, RECOMPUTE_FULL, Dims
from shardproof.models.memory import MemoryModel
from shardproof.models.problem import Training

GQA = Attention(heads=32, kv_heads=8, head_dim=128)
MLA = LatentAttention(
    heads=32, q_rank=768, kv_rank=256, nope_dim=128, rope_dim=64, v_dim=128
)
DENSE = DenseFFN(ffn=14336, gated=True)
EXPERTS = MoE(experts=64, topk=4, ffn=1024, gated=True, shared_ffn=2048)


def model_of(*layers, **facts):
    given = {"hidden": 4096, "vocab": 128256} | facts
    return Architecture(name="x", layers=layers, **given)


ARCHITECTURES = {
    "dense": model_of(*[Layer(attention=GQA, feed_forward=DENSE)] * 8),
    "tied": model_of(*[Layer(attention=GQA, feed_forward=DENSE)] * 8, tied=True),
    "moe": model_of(*[Layer(attention=GQA, feed_forward=EXPERTS)] * 8),
    "latent": model_of(
        *[Layer(attention=MLA, feed_forward=DENSE)] * 2,
        *[Layer(attention=MLA, feed_forward=EXPERTS)] * 6,
        mtp_layers=1,
    ),
}

VALUES = {
    "tp": (1, 2, 4, 8),
    "pp": (1, 2, 4),
    "vpp": (1, 2),
    "cp": (1, 2, 4),
    "ep": (1, 2, 4, 8),
    "etp": (1, 2),
    "mbs": (1, 2, 4),
    "sp": (0, 1),
    "schedule": (0, 1),
    "split": (0,),
    "recompute": (0, 1, 3, 24, RECOMPUTE_FULL),
    "sharding": (0, 1),
    "dp": (1, 2, 3, 8, 64),
    "edp": (1, 2, 3, 8, 64),
    "m": (1, 2, 8, 64),
}


def dims_of(**chosen):
    given = {k: v if isinstance(v, tuple) else (v,) for k, v in chosen.items()}
    return Dims.of({n: given.get(n, VALUES[n]) for n in (*DECIDED, *DERIVED)})


def training_of(**facts):
    return Training(**({"seq_len": 4096, "global_batch": 64} | facts))


def memory_of(name, training=None, **chosen):
    architecture = ARCHITECTURES[name]
    return MemoryModel(architecture, training or training_of(), dims_of(**chosen))


def point_of(**chosen):
    ones = dict.fromkeys((*DECIDED, *DERIVED), 1)
    return ones | {"sp": 0, "schedule": 0, "split": 0, "recompute": 0} | chosen
