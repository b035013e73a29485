"""One case of the verdict schema, asked of megatron-core stage by stage."""

from __future__ import annotations

import json
import traceback
from typing import TYPE_CHECKING, Any

from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
from torch._subclasses.fake_tensor import FakeTensorMode

from . import configs, groups, launcher, modules, partition, schedule, shims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: The stages in the order in which a refusal is named; ``launcher`` is restated.
STAGES = (
    "config",
    "groups",
    "micro-batches",
    "optimizer",
    "layers",
    "spec",
    "dense layer",
    "sparse layer",
    "embedding",
    "forward",
    "experts' forward",
    "schedule",
    "launcher",
)
#: Where everything is asked.
FAKE = FakeTensorMode(allow_non_fake_inputs=True)
#: What no layer sees: where it lies, how it is sharded, scheduled and fed, and what
#: ``of_one_stage`` has taken away.
_UNSEEN = frozenset(
    {
        "pp",
        "vpp",
        "vpp_from_layout",
        "order",
        "num_layers_in_first_pipeline_stage",
        "num_layers_in_last_pipeline_stage",
        "account_for_embedding_in_pipeline_split",
        "account_for_loss_in_pipeline_split",
        "pipeline_model_parallel_layout",
        "microbatch_group_size_per_vp_stage",
        "overlap_p2p_comm",
        "overlap_p2p_comm_warmup_flush",
        "defer_embedding_wgrad_compute",
        "wgrad_deferral_limit",
        "gradient_accumulation_fusion",
        "num_distributed_optimizer_instances",
        "use_distributed_optimizer",
        "use_precision_aware_optimizer",
        "optimizer_cpu_offload",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "overlap_param_gather_with_optimizer_step",
        "use_torch_fsdp2",
        "use_megatron_fsdp",
        "moe_pad_experts_for_cuda_graph_inference",
        "pad_vocab",
        "cuda_graph_impl",
        "cuda_graph_scope",
        "fp8",
        "fp8_recipe",
        "fp8_param_gather",
        "fp4",
        "first_last_layers_bf16",
        "num_layers_at_start_in_bf16",
        "num_layers_at_end_in_bf16",
    }
)
#: Refusals of modules, by all that they can see.
_KNOWN: dict[str, list[dict[str, str]]] = {}


def prepare() -> None:
    """Install the stand-ins; once, before the first case."""
    shims.no_device()
    shims.other_packages()
    modules.install()
    groups.install()


class _Asking:
    """The refusals found so far."""

    def __init__(self) -> None:
        self.failures: list[dict[str, str]] = []

    def ask(self, stage: str, what: Callable[..., Any], *args: Any) -> Any:
        """Return what the framework returns, or None where it refuses."""
        try:
            return what(*args)
        except Exception as error:
            self.failures.append({"stage": stage, "error": sentence(error)})
            return None

    def refuses(self, stage: str) -> bool:
        return any(f["stage"] == stage for f in self.failures)


def sentence(error: Exception) -> str:
    """Write an error in one line; the line of code where it has no words."""
    text = str(error).strip()
    if not text:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{frame.line}"
    return f"{type(error).__name__}: {' '.join(text.split())[:200]}"


def ask(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the framework's verdict.

    ``accepted`` is core on the values as they stand plus the launcher's checks;
    ``legal`` asks for every layer exactly once besides. ``failures`` holds every
    stage that refuses, ``stage_failed`` and ``error`` the first of them.
    """
    asking = _Asking()
    with FAKE, shims.CudaToCpu():
        found = _ask_core(case, asking)
    asking.failures += [
        {"stage": "launcher", "error": text} for text in launcher.refusals(case)
    ]
    asking.failures.sort(key=lambda f: STAGES.index(f["stage"]))
    first = asking.failures[0] if asking.failures else None
    return {
        "accepted": first is None,
        "legal": first is None and found is not None and found.each_once,
        "stage_failed": first and first["stage"],
        "error": first and first["error"],
        "failures": asking.failures,
        "layers_per_stage": found and found.layers_per_stage,
    }


def _ask_core(case: Mapping[str, Any], asking: _Asking) -> partition.Partition | None:
    config = asking.ask("config", configs.transformer_config, case)
    asking.ask("optimizer", configs.optimizer_config, case)
    number = asking.ask("micro-batches", _micro_batches, case)
    told = configs.group_arguments(case)
    for rank in groups.ranks_that_matter(case["world"]):
        asking.ask("groups", groups.enter, case["world"], rank, told)
        if asking.refuses("groups"):
            return None
    if config is None:
        return None
    found: partition.Partition | None = asking.ask(
        "layers", partition.partition, config
    )
    asking.failures += _of_modules(case, config)
    if number is not None:
        vpp = told["virtual_pipeline_model_parallel_size"]
        mbs, seq = case["micro_batch"], case["seq"]
        asking.ask("schedule", schedule.run, config, vpp, number, mbs, seq)
    return found


def _micro_batches(case: Mapping[str, Any]) -> int:
    config = case["config"]
    dense = config.get("tp", 1) * config.get("pp", 1) * config.get("cp", 1)
    counted = ConstantNumMicroBatchesCalculator(
        case["global_batch"],
        case["micro_batch"],
        max(1, case["world"] // max(1, dense)),
        decrease_batch_size_if_needed=False,
        rank=1,
    )
    return int(counted.get())


def _of_modules(case: Mapping[str, Any], config: Any) -> list[dict[str, str]]:
    """Return the refusals of layers and embedding; like questions are asked once."""
    arch, told = case["arch"], case["config"]
    plain = modules.of_one_stage(config)
    layers = {k: v for k, v in told.items() if k not in _UNSEEN}
    table = [arch["hidden_size"], modules.vocabulary(case), told.get("precision")]
    table += [told.get("tp"), told.get("sequence_parallel")]
    length = case["seq"] // plain.context_parallel_size
    return [
        *_once(("layers", arch, layers), _ask_layers, plain),
        *_once(("embedding", table), _ask_embedding, plain, case),
        *_once(("forward", table[2:], length), _ask_forward, plain, length),
    ]


def _once(key: object, what: Callable[..., None], *args: Any) -> list[dict[str, str]]:
    text = json.dumps(key, sort_keys=True)
    if text not in _KNOWN:
        asking = _Asking()
        what(asking, *args)
        _KNOWN[text] = asking.failures
    return [dict(failure) for failure in _KNOWN[text]]


def _ask_layers(asking: _Asking, config: Any) -> None:
    specs = asking.ask("spec", modules.layer_specs, config)
    sparse = {modules.is_sparse(spec): spec for spec in specs or ()}
    if False in sparse:
        asking.ask("dense layer", modules.build_layer, config, sparse[False])
    if True in sparse:
        layer = asking.ask(
            "sparse layer", modules.build_few_experts, config, sparse[True]
        )
        if layer is not None:
            asking.ask("experts' forward", modules.enter_experts, layer, config)


def _ask_embedding(asking: _Asking, config: Any, case: Mapping[str, Any]) -> None:
    asking.ask("embedding", modules.build_embedding, config, modules.vocabulary(case))


def _ask_forward(asking: _Asking, config: Any, length: int) -> None:
    asking.ask("forward", modules.embed, config, length)
