"""Read one Megatron configuration, as plain values, into axes, options and sizes.

The keys are the names of ``TransformerConfig``, ``ModelParallelConfig`` and the
launcher; a key that is not there has the value Megatron gives it by default.
Nothing is judged here: values a framework would refuse are read all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..layout import RECOMPUTE_FULL, RECOMPUTE_MODULES, SCHEDULES, SHARDINGS
from .fields import flag, text_of, whole
from .megatron import OPTIONS
from .megatron_arch import megatron_sizes
from .option import UNSET
from .pipeline_layout import PipelineLayout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .sizes import Sizes

_MAX_LIST = 4096
#: What Megatron takes where a key is missing, if that is not the planner's default.
_MEGATRON: Mapping[str, object] = {
    "overlap_p2p_comm": False,
    "moe_grouped_gemm": False,
    "moe_permute_fusion": False,
    "moe_token_dispatcher_type": "allgather",
    "cp_comm_type": "p2p",
    "recompute_granularity": None,
    "recompute_method": None,
}
#: Choices that are left out by null; their text ``none`` names nothing.
_NO_NAME = ("recompute_granularity", "recompute_method")
#: Keys that become something other than the option of their name.
_APART = (
    "recompute_count",
    "recompute_num_layers",
    "unknown_recompute_module",
    "degree_below_one",
    "vpp_given",
    "cp_comm_type",
    "cuda_graph_scope",
    "moe_expert_capacity_factor",
    "overlap_p2p_comm",
)
_DEGREES = ("tp", "pp", "vpp", "cp", "ep", "etp")


@dataclass(frozen=True, kw_only=True)
class MegatronConfig:
    """One configuration, read.

    Attributes
    ----------
    point
        The codes of every axis; derived axes are rounded down and at least 1.
    options
        The code of every option.
    sizes
        The numbers of the model and the run.
    layout, cp_sizes, cp_styles, order
        The options that are no number, see ``solver.rules.facts.Structures``.
    """

    point: Mapping[str, int]
    options: Mapping[str, int]
    sizes: Sizes
    layout: PipelineLayout | None
    cp_sizes: tuple[int, ...] | None
    cp_styles: tuple[str, ...] | None
    order: str


def read_megatron(
    config: Mapping[str, Any],
    arch: Mapping[str, Any],
    *,
    world: int,
    global_batch: int,
    micro_batch: int,
    seq_len: int,
) -> MegatronConfig:
    """Read a configuration of Megatron.

    Parameters
    ----------
    config
        Parallel sizes and options.
    arch
        Sizes of the model, with the names of ``TransformerConfig``.
    world
        Devices of the run.
    global_batch, micro_batch
        Sequences of a step, and of one micro-batch on one rank.
    seq_len
        Tokens of a sequence.

    Raises
    ------
    InputError
        If a value is missing or not of its kind.
    """
    sizes = megatron_sizes(arch, config, world, global_batch, seq_len)
    text = config.get("pipeline_model_parallel_layout")
    if text is not None and not isinstance(text, str):
        raise InputError(
            "pipeline_model_parallel_layout is text such as 'Ett|ttL', got "
            f"{str(text)[:60]!r}"
        )
    layout = None if text is None else PipelineLayout.parse(text)
    return MegatronConfig(
        point=_point(config, layout, sizes, micro_batch),
        options=_options(config),
        sizes=sizes,
        layout=layout,
        cp_sizes=_cp_sizes(config),
        cp_styles=_cp_styles(config),
        order=text_of(config, "order", "tp-cp-ep-dp-pp"),
    )


def _point(
    config: Mapping[str, Any],
    layout: PipelineLayout | None,
    sizes: Sizes,
    micro_batch: int,
) -> dict[str, int]:
    tp, pp = _degree(config, "tp", 1), _degree(config, "pp", 1)
    cp, ep = _degree(config, "cp", 1), _degree(config, "ep", 1)
    vpp = _degree(config, "vpp", _derived_vpp(config, layout, pp))
    etp, mbs = _degree(config, "etp", tp), micro_batch
    dp = max(1, sizes.world // (tp * pp * cp))
    sharded = flag(config, "use_distributed_optimizer")
    return {
        "tp": tp,
        "pp": pp,
        "vpp": vpp,
        "cp": cp,
        "ep": ep,
        "etp": etp,
        "mbs": mbs,
        "sp": int(flag(config, "sequence_parallel")),
        "schedule": SCHEDULES.index("interleaved" if vpp > 1 else "1f1b"),
        "split": 0,
        "recompute": _recompute(config),
        "sharding": SHARDINGS.index("zero-1" if sharded else "none"),
        "dp": dp,
        "edp": max(1, sizes.world // (etp * ep * pp)),
        "m": max(1, sizes.global_batch // max(1, mbs * dp)),
    }


def _degree(config: Mapping[str, Any], name: str, default: int) -> int:
    """Return a degree; one below 1 is taken for 1 and told by an option."""
    return max(1, whole(config, name, default, least=-(2**26)))


def _derived_vpp(
    config: Mapping[str, Any], layout: PipelineLayout | None, pp: int
) -> int:
    told = flag(config, "vpp_from_layout", True)
    return layout.chunks(pp) if layout is not None and told else 1


def _recompute(config: Mapping[str, Any]) -> int:
    granularity = text_of(config, "recompute_granularity", "none")
    if granularity == "full":
        return RECOMPUTE_FULL
    if granularity != "selective":
        return 0
    known = [n for n in _modules(config) if n in RECOMPUTE_MODULES]
    return sum({1 << RECOMPUTE_MODULES.index(name) for name in known})


def _modules(config: Mapping[str, Any]) -> list[str]:
    names = config.get("recompute_modules")
    names = ["core_attn"] if names is None else names
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise InputError(
            f"recompute_modules is a list of names, got {str(names)[:60]!r}"
        )
    return names


def _options(config: Mapping[str, Any]) -> dict[str, int]:
    codes = {}
    for name, option in OPTIONS.items():
        if name in _APART:
            continue
        if name in config and not (config[name] is None and option.kind == "flag"):
            unnamed = name in _NO_NAME and config[name] == "none"
            codes[name] = option.unknown if unnamed else option.code(config[name])
        elif name in _MEGATRON:
            codes[name] = option.code(_MEGATRON[name])
    codes |= _apart(config)
    return codes


def _apart(config: Mapping[str, Any]) -> dict[str, int]:
    """Code the options whose values are written in another way than their labels."""
    count = config.get("recompute_num_layers")
    number = OPTIONS["recompute_num_layers"].code(count)
    unknown = any(n not in RECOMPUTE_MODULES for n in _modules(config))
    sends = "on" if flag(config, "overlap_p2p_comm") else "off"
    codes = {
        "recompute_count": _label(
            "recompute_count", "given" if count is not None else "none"
        ),
        "recompute_num_layers": 1 if number == UNSET else number,
        "unknown_recompute_module": int(unknown),
        "degree_below_one": int(
            any(whole(config, n, 1, least=-(2**26)) < 1 for n in _DEGREES)
        ),
        "vpp_given": int(config.get("vpp") is not None),
        "overlap_p2p_comm": _label("overlap_p2p_comm", sends),
        "moe_expert_capacity_factor": _capacity(config),
        "cuda_graph_scope": _scope(config),
    }
    style = config.get("cp_comm_type", "p2p")
    if not isinstance(style, list):
        codes["cp_comm_type"] = OPTIONS["cp_comm_type"].code(style or "p2p")
    return codes


def _label(name: str, label: str) -> int:
    return OPTIONS[name].labels.index(label)


def _capacity(config: Mapping[str, Any]) -> int:
    factor = config.get("moe_expert_capacity_factor")
    if factor is None:
        return _label("moe_expert_capacity_factor", "none")
    if isinstance(factor, int | float) and not isinstance(factor, bool):
        sign = "given" if factor >= 0 else "negative"
        return _label("moe_expert_capacity_factor", sign)
    raise InputError(
        f"moe_expert_capacity_factor is a number or null, got {str(factor)[:60]!r}"
    )


def _scope(config: Mapping[str, Any]) -> int:
    """Code the scope of graphs; ``full`` alone is an old name of no scope."""
    names = config.get("cuda_graph_scope")
    if isinstance(names, str):
        names = names.split(",")
    if names == ["full"]:
        return 0
    return OPTIONS["cuda_graph_scope"].code(names)


def _cp_sizes(config: Mapping[str, Any]) -> tuple[int, ...] | None:
    name = "hierarchical_context_parallel_sizes"
    sizes = config.get(name)
    if sizes is None:
        return None
    if not isinstance(sizes, list) or len(sizes) > 16:
        raise InputError(
            f"{name} is a short list of whole numbers, got {str(sizes)[:60]!r}"
        )
    return tuple(whole({name: size}, name, least=-(2**26)) for size in sizes)


def _cp_styles(config: Mapping[str, Any]) -> tuple[str, ...] | None:
    styles = config.get("cp_comm_type")
    if not isinstance(styles, list):
        return None
    if len(styles) > _MAX_LIST or not all(isinstance(s, str) for s in styles):
        raise InputError(f"cp_comm_type is a list of names, got {str(styles)[:60]!r}")
    return tuple(styles)
