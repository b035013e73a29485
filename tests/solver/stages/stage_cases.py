"""Small skeletons with little memory: every stage plan of them can be listed."""

from __future__ import annotations

import random
from dataclasses import replace

from shardproof.models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from shardproof.models.catalogue import cluster
from shardproof.models.layout import RECOMPUTE_FULL, Layout, recompute_code
from shardproof.models.problem import Problem, Training
from shardproof.models.units import Bytes
from shardproof.solver.single import complete_layout

DENSE = Layer(
    attention=Attention(heads=16, kv_heads=4, head_dim=128),
    feed_forward=DenseFFN(ffn=6144, gated=True),
)
WIDE = replace(DENSE, feed_forward=DenseFFN(ffn=9216, gated=True))
LATENT = LatentAttention(
    heads=16, q_rank=768, kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128
)
NARROW = replace(DENSE, attention=LATENT)
EXPERTS = Layer(
    attention=LATENT,
    feed_forward=MoE(experts=8, topk=2, ffn=2048, gated=True, shared_ffn=2048),
)
#: Levels of the small cases: nothing, something, everything.
CODES = (0, recompute_code("mlp"), recompute_code("moe_act"), RECOMPUTE_FULL)


def small_case(
    seed: int, vpp: int, *, pp: int = 2, layers: int = 5
) -> tuple[Problem, Layout]:
    """Return a skeleton; the seed draws its layers, batch, ends and memory."""
    draw = random.Random(seed)
    kinds = draw.choice([(DENSE,), (DENSE, WIDE), (NARROW, EXPERTS)])
    first = draw.randint(1, layers - 1)
    sequence = (kinds[0],) * first + (kinds[-1],) * (layers - first)
    architecture = Architecture(
        name="small",
        hidden=2048,
        vocab=draw.choice([8_000, 64_000]),
        layers=sequence,
        mtp_layers=draw.choice([0, 0, 1]),
    )
    machine = cluster("1x8:h100")
    device = replace(machine.device, hbm_bytes=Bytes(int(draw.uniform(5, 16) * 2**30)))
    machine = replace(machine, gpus_per_node=8, device=device)
    problem = Problem(
        architecture=architecture,
        cluster=machine,
        training=Training(seq_len=4096, global_batch=8 // pp * pp * draw.randint(1, 3)),
    )
    return problem, complete_layout(problem, {"pp": pp, "vpp": vpp})
