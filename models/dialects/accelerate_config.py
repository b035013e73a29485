"""Read a configuration of Hugging Face Accelerate into axes, options and sizes.

A key that is not there has the value Accelerate gives it. Nothing is judged: values
that it would refuse are read all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..layout import SHARDINGS
from .accelerate import ACCELERATE_OPTIONS
from .configuration import Configuration
from .fields import flag, text_of, whole
from .sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

_MANY = 2**26
_SIZES = ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size")
_PREFETCH = {
    "backward_pre": "pre",
    "backward_post": "post",
    "no_prefetch": "none",
}


def read_accelerate(case: Mapping[str, Any]) -> Configuration:
    """Read a configuration of Accelerate.

    Parameters
    ----------
    case
        ``world``; ``parallelism``, the fields of ``ParallelismConfig``, with those of
        its handlers ``cp_comm_strategy`` and ``sp_...``; ``fsdp``, the fields of
        ``FullyShardedDataParallelPlugin``, null without FSDP; ``mixed_precision``.

    Raises
    ------
    InputError
        If a value is missing or not of its kind.
    """
    mesh, fsdp = _section(case, "parallelism"), case.get("fsdp")
    given = {name: whole(mesh, name, 1, least=-_MANY) for name in _SIZES}
    sizes = {name: max(1, size) for name, size in given.items()}
    world, heads = whole(case, "world"), whole(case, "heads", 2**20)
    plugin = None if fsdp is None else _section(case, "fsdp")
    launch = "ddp" if plugin is None else _version(plugin)
    if max(sizes.values()) == 1:
        sizes["dp_replicate_size" if plugin is None else "dp_shard_size"] = world
    dp = sizes["dp_replicate_size"] * sizes["dp_shard_size"]
    options: dict[str, object] = {
        "launch": launch,
        "dp_replicate_size": sizes["dp_replicate_size"],
        "size_below_one": any(size < 1 for size in given.values()),
        "sizes_given": max(given.values()) > 1,
        "ulysses": sizes["sp_size"] > 1,
        "ulysses_and_cp": sizes["sp_size"] > 1 and sizes["cp_size"] > 1,
        "mixed_precision": text_of(case, "mixed_precision", "no"),
        **_handlers(mesh),
        **({} if plugin is None else _plugin(plugin)),
    }
    return Configuration(
        point={
            **{"tp": sizes["tp_size"], "cp": sizes["cp_size"] * sizes["sp_size"]},
            **{"pp": 1, "vpp": 1, "ep": 1, "etp": 1, "mbs": 1, "sp": 0, "m": 1},
            **{"schedule": 0, "split": 0, "recompute": 0, "dp": dp, "edp": dp},
            "sharding": SHARDINGS.index("none" if plugin is None else "zero-3"),
        },
        options={n: ACCELERATE_OPTIONS[n].code(v) for n, v in options.items()},
        sizes=Sizes(
            world=world,
            seq_len=1,
            global_batch=dp,
            layers=1,
            hidden=1,
            heads=(heads,),
            kv_heads=(heads,),
            vocab=1,
        ),
    )


def _section(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = source.get(name)
    found = {} if found is None else found
    if not isinstance(found, dict):
        raise InputError(f"{name} is a mapping, got {str(found)[:60]!r}")
    return found


def _version(plugin: Mapping[str, Any]) -> str:
    version = whole(plugin, "fsdp_version", 1)
    if version > 2:
        raise InputError(f"fsdp_version is 1 or 2, got {version}")
    return f"fsdp{version}"


def _handlers(mesh: Mapping[str, Any]) -> dict[str, object]:
    kernel = text_of(mesh, "sp_attn_implementation", "auto")
    flash = kernel in ("flash_attention_2", "flash_attention_3")
    hub = "/" in kernel and "flash-attn" in kernel
    found: dict[str, object] = {
        "cp_backend": text_of(mesh, "cp_backend", "torch"),
        "sp_backend": text_of(mesh, "sp_backend", "deepspeed"),
        "cp_comm_strategy": text_of(mesh, "cp_comm_strategy", "allgather"),
        "sp_seq_length_fixed": not flag(mesh, "sp_seq_length_is_variable", True),
        "sp_seq_length_given": mesh.get("sp_seq_length") is not None,
    }
    if kernel != "auto":
        found["sp_attn_implementation"] = "flash_attention" if flash or hub else kernel
    return found


def _plugin(plugin: Mapping[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {
        f"fsdp_{name}": flag(plugin, name)
        for name in ("activation_checkpointing", "activation_checkpointing_offload")
    }
    for name in ("state_dict_type", "auto_wrap_policy", "sharding_strategy"):
        if plugin.get(name) is not None:
            found[f"fsdp_{name}"] = text_of(plugin, name, "").lower()
    prefetch = plugin.get("backward_prefetch")
    if prefetch is not None:
        name = text_of(plugin, "backward_prefetch", "").lower()
        found["fsdp_backward_prefetch"] = _PREFETCH.get(name, "(unknown)")
    if plugin.get("forward_prefetch") is not None:
        on = flag(plugin, "forward_prefetch")
        found["fsdp_forward_prefetch"] = "on" if on else "off"
    if plugin.get("mixed_precision_policy") is not None:
        found["fsdp_mixed_precision"] = text_of(plugin, "mixed_precision_policy", "")
    offload = plugin.get("cpu_offload")
    if offload is not None and not isinstance(offload, bool):
        found["fsdp_cpu_offload"] = text_of(plugin, "cpu_offload", "")
    return found | _reshard(plugin.get("reshard_after_forward"))


def _reshard(told: object) -> dict[str, object]:
    if told is None:
        return {}
    if isinstance(told, bool) or str(told).lower() in ("true", "false"):
        return {"fsdp_reshard_after_forward": "flag"}
    known = ACCELERATE_OPTIONS["fsdp_sharding_strategy"].labels[1:]
    named = "strategy" if str(told).lower() in known else "(unknown)"
    return {"fsdp_reshard_after_forward": named}
