"""Golden cases, in Megatron's settings, translated into the product's terms.

A case is a dictionary: h hidden, a heads, g key/value groups, f width of the
feed-forward network, s sequence, b micro-batch, parallel sizes, and so on. Absent
settings take the defaults of the harness that made the goldens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from ..models.layout import PRECISIONS, Dims, recompute_code
from ..models.memory import Kernels

if TYPE_CHECKING:
    from ..models.memory.kernels import ContextParallel
    from ..models.problem import CrossEntropy

Case = dict[str, Any]
_EXCHANGES: dict[str, ContextParallel] = {
    "p2p": "p2p",
    "a2a": "a2a",
    "all_gather": "all-gather",
}


def _attention(case: Case) -> Attention | LatentAttention:
    if latent := case.get("mla"):
        return LatentAttention(
            heads=case["a"],
            q_rank=latent["q_lora_rank"],
            kv_rank=latent["kv_lora_rank"],
            nope_dim=latent["qk_head_dim"],
            rope_dim=latent["qk_pos_emb_head_dim"],
            v_dim=latent["v_head_dim"],
        )
    return Attention(
        heads=case["a"],
        kv_heads=case.get("g") or case["a"],
        head_dim=case.get("d") or case["h"] // case["a"],
        qkv_bias=case.get("qkv_bias", False) or case.get("bias", False),
        out_bias=case.get("bias", False),
        qk_norm="head" if case.get("qk_ln") else "none",
    )


def _feed_forward(case: Case, *, moe: bool) -> DenseFFN | MoE:
    gated, bias = case.get("glu", True), case.get("bias", False)
    ffn = case.get("f", 4 * case["h"])
    if not moe:
        return DenseFFN(ffn=ffn, gated=gated, bias=bias)
    extra = case.get("extra", {})
    return MoE(
        experts=case["experts"],
        topk=case.get("topk", 2),
        ffn=case.get("moe_f", ffn),
        gated=gated,
        bias=bias,
        shared_ffn=case.get("shared_f") or 0,
        shared_gate=extra.get("moe_shared_expert_gate", False),
        score_bias=extra.get("moe_router_enable_expert_bias", False),
        scoring=case.get("score", "softmax"),
    )


def _is_moe(case: Case, index: int) -> bool:
    """Whether a layer is a mixture of experts: one in ``moe_freq``, or a pattern.

    A pattern shorter than the model repeats.
    """
    if not case.get("experts"):
        return False
    frequency = case.get("moe_freq", 1)
    if isinstance(frequency, int):
        return index % frequency == 0
    return bool(frequency[index % len(frequency)])


def architecture_of(case: Case) -> Architecture:
    """Return the model of a case, with the layers of all pipeline ranks."""
    attention = _attention(case)
    layers = tuple(
        Layer(
            attention=attention,
            feed_forward=_feed_forward(case, moe=_is_moe(case, index)),
        )
        for index in range(case["layers"])
    )
    position = case.get("pos", "rope")
    learned = position == "learned_absolute"
    return Architecture(
        name="case",
        hidden=case["h"],
        vocab=case.get("vocab", 32000),
        layers=layers,
        norm="layer" if case.get("norm", "RMSNorm") == "LayerNorm" else "rms",
        norm_bias=case.get("norm", "RMSNorm") == "LayerNorm",
        position="learned" if learned else ("rope" if position == "rope" else "none"),
        max_positions=case["s"] if learned else 0,
        tied=case.get("tied", False),
        mtp_layers=case.get("mtp") or 0,
    )


def kernels_of(case: Case) -> Kernels:
    """Return the kernels of a case; the oracle's defaults, not a launcher's."""
    local = case.get("impl", "local") != "te"
    capacity = case.get("cap")
    extra = case.get("extra", {})
    loss = {"aux_loss": "aux", "seq_aux_loss": "seq-aux"}.get(case.get("lb", "none"))
    exchange: str = extra.get("cp_comm_type", "p2p")
    return Kernels(
        implementation="local" if local else "te",
        flash=case.get("attn", "unfused") == "flash",
        softmax_fp32=case.get("softmax32", False),
        activation_fusion=case.get("act_fusion", True),
        rope_fusion=extra.get("apply_rope_fusion", False),
        permute_fusion=case.get("permute_fusion", False),
        router_fp32=case.get("router_dtype") == "fp32",
        pre_softmax=case.get("pre_softmax", False),
        dispatcher=case.get("dispatcher", "alltoall"),
        context_parallel=_EXCHANGES[exchange],
        aux_loss="none" if loss is None else ("aux" if loss == "aux" else "seq-aux"),
        z_loss=bool(extra.get("moe_z_loss_coeff")),
        capacity=float(capacity).as_integer_ratio() if capacity else None,
        distributed_inputs=bool(case.get("rc_dist", False)),
        latent_norm=bool(case.get("qk_ln", False)),
        latent_bias=bool(case.get("bias", False)),
        transposed_copies=case.get("cc", 9) < 10,
        parameter_bytes=4 if case.get("dtype") == "float32" else 2,
        vocab_multiple=1,
    )


def cross_entropy_of(case: Case) -> CrossEntropy:
    """Return the kernel of a case's loss."""
    extra = case.get("extra", {})
    if not extra.get("cross_entropy_loss_fusion", case.get("ce_fusion")):
        return "unfused"
    native = extra.get("cross_entropy_fusion_impl", "native") == "native"
    return "native-fused" if native else "te-fused"


_RECIPES = {
    "delayed": "fp8-delayed",
    "tensorwise": "fp8-tensor",
    "blockwise": "fp8-block",
    "mxfp8": "mxfp8",
}


def precision_of(case: Case) -> str:
    """Return the format of a case's matrix products."""
    extra = case.get("extra", {})
    if extra.get("fp4"):
        return "nvfp4"
    return _RECIPES[extra["fp8_recipe"]] if extra.get("fp8") else "bf16"


def recompute_of(case: Case) -> int:
    """Return the code of a case's recompute choice."""
    choice = case.get("recompute")
    if choice is None:
        return 0
    return recompute_code(choice if isinstance(choice, str) else "+".join(choice))


def dims_of(case: Case) -> Dims:
    """Return the axes of a case, all fixed but whether a layer is recomputed."""
    tp, pp, cp, ep = (case.get(k) or 1 for k in ("tp", "pp", "cp", "ep"))
    etp = case.get("etp") or tp
    world = case.get("world") or tp * pp * cp * ep
    fixed = {name: 0 for name in ("schedule", "split", "sharding")}
    fixed |= {"tp": tp, "pp": pp, "cp": cp, "ep": ep, "etp": etp, "mbs": case["b"]}
    fixed |= {"sp": int(case.get("sp", False))}
    fixed |= {"vpp": case.get("vpp") or 1, "m": 1}
    fixed |= {"dp": max(1, world // (tp * pp * cp))}
    fixed |= {"edp": max(1, world // (etp * ep * pp))}
    fixed |= {"precision": PRECISIONS.index(precision_of(case))}
    choices = {"recompute": (0, recompute_of(case))}
    return Dims.of(choices | {name: (value,) for name, value in fixed.items()})
