"""The sizes of a model as Megatron's own names give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .fields import flag, text_of, whole
from .sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_LIST = 4096


def megatron_sizes(
    arch: Mapping[str, Any],
    config: Mapping[str, Any],
    world: int,
    global_batch: int,
    seq_len: int,
) -> Sizes:
    """Read the sizes of a model and a run.

    Raises
    ------
    InputError
        If a value is missing or not of its kind.
    """
    layers, heads = whole(arch, "num_layers"), whole(arch, "num_attention_heads")
    hidden = whole(arch, "hidden_size")
    groups, latent = arch.get("num_query_groups"), bool(arch.get("mla"))
    mtp = config.get("mtp_num_layers")
    return Sizes(
        world=world,
        seq_len=seq_len,
        global_batch=global_batch,
        layers=layers,
        mtp_layers=None if mtp is None else whole(config, "mtp_num_layers", least=0),
        hidden=hidden,
        heads=(heads,),
        kv_heads=(whole(arch, "num_query_groups", heads),),
        vocab=whole(arch, "vocab_size"),
        head_dim_given=arch.get("kv_channels") is not None,
        latent=latent,
        latent_grouped=latent and groups is not None,
        window=arch.get("window_size") is not None,
        sinks=text_of(arch, "softmax_type", "vanilla") == "learnable",
        tied=flag(arch, "tied_embeddings"),
        bias=flag(arch, "bias"),
        **_moe_sizes(arch, layers, whole(arch, "ffn_hidden_size", 4 * hidden)),
    )


def _moe_sizes(arch: Mapping[str, Any], layers: int, ffn: int) -> dict[str, Any]:
    zero, forced = flag(arch, "force_zero_experts"), arch.get("force_moe_ffn")
    told = 0 if zero else arch.get("num_moe_experts")
    router: dict[str, Any] = {
        "topk": whole(arch, "moe_router_topk", 2),
        "router_groups": whole(arch, "moe_router_num_groups", 0, 0),
        "router_group_topk": whole(arch, "moe_router_group_topk", 0, 0),
        "scoring": text_of(arch, "moe_router_score_function", "softmax"),
        "score_bias": flag(arch, "moe_router_enable_expert_bias"),
        "pre_softmax": flag(arch, "moe_router_pre_softmax"),
        "balancing": text_of(arch, "moe_router_load_balancing_type", "aux_loss"),
    }
    if told is None:
        width = arch.get("moe_ffn_hidden_size") if forced is None else forced
        given = width is not None
        named = whole(arch, "moe_shared_expert_intermediate_size", 1, least=0)
        nothing = () if named else (0,)
        blocks = {"dense_ffn": (ffn,), "shared_ffn": nothing}
        return {**blocks, "expert_ffn_given": given, **router}
    sparse, listed = _pattern(arch, layers)
    shared = arch.get("moe_shared_expert_intermediate_size")
    width = whole(arch, "moe_ffn_hidden_size", ffn)
    return {
        "moe": True,
        "experts": (0 if zero else whole(arch, "num_moe_experts", least=0),),
        "expert_ffn_given": True,
        "expert_ffn": (width,) if any(sparse) else (),
        "dense_ffn": () if all(sparse) else (ffn,),
        "shared_ffn": ()
        if shared is None
        else (whole(arch, "moe_shared_expert_intermediate_size", least=0),),
        "moe_pattern": listed,
        **router,
    }


def _pattern(arch: Mapping[str, Any], layers: int) -> tuple[list[bool], int | None]:
    """Return which layers are sparse, and the length of the list if it is one."""
    every = arch.get("moe_layer_freq")
    if isinstance(every, list):
        if len(every) > _MAX_LIST or not all(e in (0, 1) for e in every):
            raise InputError(
                f"moe_layer_freq is a number or a list of 0 and 1, got "
                f"{str(every)[:60]!r}"
            )
        return [bool(e) for e in every], len(every)
    step = whole(arch, "moe_layer_freq", 1)
    return [i % step == 0 for i in range(min(layers, _MAX_LIST))], None
