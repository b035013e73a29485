"""The model that Megatron's arguments describe, and which kernels run it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from ..errors import InputError
from ..memory.kernels import Kernels

if TYPE_CHECKING:
    from ..architecture import Position, QkNorm
    from ..memory.kernels import AuxLoss, ContextParallel, Dispatcher
    from .megatron_args import Arguments

#: Entries of a tokenizer's vocabulary where ``--vocab-size`` is not given, and the
#: published model that it was read from.
VOCABULARIES = {
    "GPT2BPETokenizer": (50257, "GPT-2"),
    "BertWordPieceLowerCase": (30522, "BERT"),
    "Llama2Tokenizer": (32000, "Llama 2, Mixtral"),
    "Llama3Tokenizer": (128256, "Llama 3"),
    "GPTSentencePieceTokenizer": (256000, "Nemotron-4 15B"),
}
_PATTERN = re.compile(r"^[\[\]()\d,+* ]{1,400}$")
_MAX_LAYERS = 4096


def vocabulary(args: Arguments) -> int:
    """Return the entries of the unpadded vocabulary.

    Raises
    ------
    InputError
        If neither a size nor a known tokenizer is given.
    """
    if args.has("vocab-size"):
        return args.whole("vocab-size")
    name = args.text("tokenizer-type", "GPT2BPETokenizer")
    if name not in VOCABULARIES:
        raise InputError(
            f"the vocabulary of {name[:40]!r} is not known; give --vocab-size"
        )
    return VOCABULARIES[name][0]


def architecture_of(args: Arguments, name: str = "megatron") -> Architecture:
    """Build the model.

    Raises
    ------
    InputError
        If a size is missing or wrong, or a layer is of a kind that is not known.
    """
    if args.has("hybrid-layer-pattern") or args.has("hybrid-override-pattern"):
        raise InputError("layers of state-space models (Mamba) are not known here")
    layers, norm = args.whole("num-layers"), args.text("normalization", "LayerNorm")
    if not 1 <= layers <= _MAX_LAYERS:
        raise InputError(f"--num-layers is in 1..{_MAX_LAYERS}, got {layers}")
    position = args.text("position-embedding-type", "learned_absolute")
    known: dict[str, Position] = {"learned_absolute": "learned", "none": "none"}
    attention = _attention(args)
    dense = _dense(args)
    sparse = _experts(args) or dense
    return Architecture(
        name=name,
        hidden=args.whole("hidden-size"),
        vocab=vocabulary(args),
        layers=tuple(
            Layer(attention=attention, feed_forward=sparse if moe else dense)
            for moe in _sparse(args, layers)
        ),
        mtp_layers=args.whole("mtp-num-layers", 0),
        norm="layer" if norm == "LayerNorm" else "rms",
        norm_bias=norm == "LayerNorm",
        position=known.get(position, "rope"),
        max_positions=args.whole("max-position-embeddings", args.whole("seq-length")),
        tied=not args.has("untie-embeddings-and-output-weights"),
        source="arguments of a Megatron launch",
    )


def _attention(args: Arguments) -> Attention | LatentAttention:
    heads = args.whole("num-attention-heads", least=1)
    if args.has("multi-latent-attention"):
        return LatentAttention(
            heads=heads,
            q_rank=args.whole("q-lora-rank") if args.has("q-lora-rank") else None,
            kv_rank=args.whole("kv-lora-rank", 32),
            nope_dim=args.whole("qk-head-dim", 128),
            rope_dim=args.whole("qk-pos-emb-head-dim", 64),
            v_dim=args.whole("v-head-dim", 128),
        )
    bias = not args.has("disable-bias-linear")
    norm: QkNorm = "head" if args.has("qk-layernorm") else "none"
    return Attention(
        heads=heads,
        kv_heads=args.whole("num-query-groups", heads),
        head_dim=args.whole("kv-channels", args.whole("hidden-size") // heads),
        qkv_bias=bias or args.has("add-qkv-bias"),
        out_bias=bias,
        qk_norm=norm,
    )


def _dense(args: Arguments) -> DenseFFN:
    return DenseFFN(
        ffn=args.whole("ffn-hidden-size", 4 * args.whole("hidden-size")),
        gated=args.has("swiglu"),
        bias=not args.has("disable-bias-linear"),
    )


def _experts(args: Arguments) -> MoE | None:
    if not args.has("num-experts"):
        return None
    dense = _dense(args)
    sigmoid = args.text("moe-router-score-function", "softmax") == "sigmoid"
    return MoE(
        experts=args.whole("num-experts"),
        topk=args.whole("moe-router-topk", 2, least=1),
        ffn=args.whole("moe-ffn-hidden-size", dense.ffn),
        gated=dense.gated,
        bias=dense.bias,
        shared_ffn=args.whole("moe-shared-expert-intermediate-size", 0),
        shared_gate=args.has("moe-shared-expert-gate"),
        score_bias=args.has("moe-router-enable-expert-bias"),
        scoring="sigmoid" if sigmoid else "softmax",
    )


def _sparse(args: Arguments, layers: int) -> list[bool]:
    """Say which layers are mixtures of experts: one in n, or a written pattern."""
    if not args.has("num-experts"):
        return [False] * layers
    text = args.text("moe-layer-freq", "1")
    if text.isdigit() and int(text):
        return [index % int(text) == 0 for index in range(layers)]
    pattern = _pattern(text)
    if len(pattern) != layers:
        raise InputError(
            f"--moe-layer-freq names each of {layers} layers, got {text[:60]!r}"
        )
    return pattern


def _pattern(text: str) -> list[bool]:
    """Read a list such as ``([0]*3+[1]*58)``."""
    found: list[bool] = []
    if not _PATTERN.match(text):
        raise InputError(
            f"--moe-layer-freq is a number or a list such as ([0]*3+[1]*58), got "
            f"{text[:60]!r}"
        )
    for part in re.finditer(r"\[([\d, ]+)\](?:\s*\*\s*(\d{1,4}))?", text):
        flags = [bool(int(x)) for x in part[1].replace(" ", "").split(",") if x]
        found += flags * int(part[2] or 1)
    return found[: _MAX_LAYERS + 1]


_LOSSES: dict[str, AuxLoss] = {
    "aux_loss": "aux",
    "global_aux_loss": "aux",
    "seq_aux_loss": "seq-aux",
}


def kernels_of(args: Arguments) -> Kernels:
    """Return the kernels, with the launcher's defaults."""
    te = args.text("transformer-impl", "transformer_engine") != "local"
    unfused = args.text("attention-backend") in ("unfused", "local")
    gated_off, plain_off = (
        args.has("no-bias-swiglu-fusion"),
        args.has("no-bias-gelu-fusion"),
    )
    balancing = args.text("moe-router-load-balancing-type", "aux_loss")
    coefficient = args.number("moe-aux-loss-coeff", 0.0)
    capacity = args.number("moe-expert-capacity-factor", 0.0)
    dispatchers: dict[str, Dispatcher] = {"alltoall": "alltoall", "flex": "flex"}
    style = args.text("cp-comm-type", "p2p").partition(" ")[0]
    exchange: dict[str, ContextParallel] = {"a2a": "a2a", "allgather": "all-gather"}
    return Kernels(
        implementation="te" if te else "local",
        flash=not unfused,
        activation_fusion=not (gated_off if args.has("swiglu") else plain_off),
        rope_fusion=not args.has("no-rope-fusion"),
        permute_fusion=args.has("moe-permute-fusion"),
        dispatcher=dispatchers.get(
            args.text("moe-token-dispatcher-type", "allgather"), "allgather"
        ),
        router_fp32=args.text("moe-router-dtype") == "fp32",
        pre_softmax=args.has("moe-router-pre-softmax"),
        aux_loss=_LOSSES.get(balancing, "none") if coefficient else "none",
        z_loss=bool(args.number("moe-z-loss-coeff", 0.0)),
        capacity=capacity.as_integer_ratio() if capacity > 0 else None,
        context_parallel=exchange.get(style, "p2p"),
        gradient_fusion=not args.has("no-gradient-accumulation-fusion"),
        distributed_inputs=args.has("distribute-saved-activations"),
        latent_norm=args.has("qk-layernorm"),
        vocab_multiple=args.whole("make-vocab-size-divisible-by", 128),
    )
