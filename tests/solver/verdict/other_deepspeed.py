"""Configurations of DeepSpeed: two families a rule, and draws over all keys."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Case = dict[str, Any]
    Change = Callable[[random.Random, Case], None]

_HALVES = ({}, {"bf16": {"enabled": True}}, {"fp16": {"enabled": True}})


def base(rng: random.Random, **wants: Any) -> Case:
    """Draw a legal configuration; ``wants`` fixes sizes, stage or precision."""
    sizes = {
        "pp": rng.choice((1, 1, 1, 2, 4)),
        "tp": rng.choice((1, 1, 1, 2, 3)),
        "sp": 1,
        "dp": rng.choice((1, 2, 3, 4, 6, 8)),
        "stage": rng.choice((0, 1, 2, 3)),
        "half": rng.choice((0, 1, 2)),
        "micro": rng.choice((1, 2, 3, 4)),
        "steps": rng.choice((1, 2, 4, 5)),
        "experts": 0,
        "optimizer": rng.choice(("adamw", "adamw", "adagrad")),
    } | wants
    if "pp" not in wants and sizes["stage"] > 1 and "stage" in wants:
        sizes["pp"] = 1
    if sizes["pp"] > 1 and "stage" not in wants:
        sizes["stage"] %= 2
    if sizes["sp"] > 1:
        sizes |= {"tp": 1, "pp": 1}
    dp, heads = sizes["dp"], 12 * rng.choice((2, 4))
    config = {
        "train_batch_size": sizes["micro"] * sizes["steps"] * dp,
        "train_micro_batch_size_per_gpu": sizes["micro"],
        "gradient_accumulation_steps": sizes["steps"],
        "zero_optimization": {"stage": sizes["stage"]},
        **copy.deepcopy(_HALVES[sizes["half"]]),
    }
    if sizes["sp"] > 1:
        config |= {"sequence_parallel_size": sizes["sp"], "data_parallel_size": dp}
    return {
        **{name: sizes[name] for name in ("tp", "pp", "sp", "dp", "experts")},
        "world": sizes["tp"] * sizes["pp"] * sizes["sp"] * dp,
        "layers": sizes["pp"] * rng.choice((1, 2, 3)),
        "heads": heads,
        "kv_heads": rng.choice((1, 12, heads)) if sizes["sp"] > 1 else heads,
        "optimizer": sizes["optimizer"],
        "seq": sizes["sp"] * rng.choice((128, 171, 512, 1000)),
        "config": config,
    }


def made(change: Change | None = None, **wants: Any) -> Callable[[random.Random], Case]:
    """Return a maker: a legal base, and a change; a tuple among wants is a choice."""

    def make(rng: random.Random) -> Case:
        chosen = {
            name: rng.choice(value) if isinstance(value, tuple) else value
            for name, value in wants.items()
        }
        case = base(rng, **chosen)
        if change is not None:
            change(rng, case)
        return case

    return make


def put(**values: Any) -> Change:
    """Return a change of keys; ``a__b`` is b in section a, a tuple is a choice."""

    def change(rng: random.Random, case: Case) -> None:
        for path, value in values.items():
            place = case["config"]
            *sections, name = path.split("__")
            for section in sections:
                place = place.setdefault(section, {})
            chosen = rng.choice(value) if isinstance(value, tuple) else value
            place[name] = copy.deepcopy(chosen)

    return change


def _then(*changes: Change) -> Change:
    def change(rng: random.Random, case: Case) -> None:
        for one in changes:
            one(rng, case)

    return change


def _on_case(**values: Any) -> Change:
    def change(rng: random.Random, case: Case) -> None:
        for name, value in values.items():
            case[name] = rng.choice(value) if isinstance(value, tuple) else value

    return change


def _batch(rng: random.Random, case: Case) -> None:
    config = case["config"]
    name = rng.choice(
        (
            "train_batch_size",
            "train_micro_batch_size_per_gpu",
            "gradient_accumulation_steps",
        )
    )
    config[name] += rng.choice((-1, 1, 2, 3))
    if config[name] == 0 and name != "train_batch_size":
        config[name] = 7


def _two_of_three(rng: random.Random, case: Case) -> None:
    del case["config"][
        rng.choice(
            (
                "train_batch_size",
                "train_micro_batch_size_per_gpu",
                "gradient_accumulation_steps",
            )
        )
    ]


def _world(rng: random.Random, case: Case) -> None:
    """Add ranks to every stage that belong to no replica."""
    case["world"] += case["pp"] * rng.randrange(1, case["tp"])


def _experts(fits: bool, *, world: bool) -> Change:
    """Choose a size of expert parallelism by what it divides."""

    def change(rng: random.Random, case: Case) -> None:
        stage = case["world"] // case["pp"]
        inside = [n for n in range(2, 13) if stage % n == 0]
        outside = [n for n in range(2, 13) if stage % n]
        size = rng.choice(inside if fits or not world else outside)
        case["experts"] = size * rng.choice((1, 2, 4))
        if not fits and not world:
            case["experts"] = rng.choice([n for n in range(1, 40) if n % size])
        section = {"enabled": True, "autoep_size": size}
        case["config"]["expert_parallel"] = section

    return change


def _heads(fits: bool) -> Change:
    def change(rng: random.Random, case: Case) -> None:
        sp = case["sp"]
        kv = [n for n in range(1, 13) if (n % sp == 0 or sp % n == 0) == fits]
        case["kv_heads"] = rng.choice(kv or [sp])
        case["heads"] = sp * rng.choice((1, 2, 3, 4))
        if not fits and (not kv or rng.random() < 0.5):
            case["kv_heads"] = rng.choice((1, sp))
            case["heads"] = sp * rng.choice((1, 2, 3)) + rng.randrange(1, sp)

    return change


def _not_alone(rng: random.Random, case: Case) -> None:
    """Cut the sequence besides tensors or layers."""
    more = {"sequence_parallel_size": 2, "data_parallel_size": case["dp"]}
    case["config"] |= more
    case["world"] *= 2
    case["seq"] *= 2
    case["sp"] = 2


def _hpz(fits: bool) -> Change:
    def change(rng: random.Random, case: Case) -> None:
        world = case["world"]
        sizes = [n for n in range(2, world) if (world % n == 0) == fits]
        sizes += [0, 1, world, world + 1, 4 * world] if fits else [-1]
        case["config"]["zero_optimization"]["zero_hpz_partition_size"] = rng.choice(
            sizes
        )

    return change


def _length(fits: bool) -> Change:
    def change(rng: random.Random, case: Case) -> None:
        whole = case["sp"] * rng.randrange(100, 1000)
        case["seq"] = whole if fits else whole + rng.randrange(1, case["sp"])

    return change


_CPU = {"device": "cpu"}
_UNFORCED = {"zero_force_ds_cpu_optimizer": False}
_MASTER = "bf16_master_weights_and_grads"
_NO_NORM = {"zero_optimization__compute_grad_norm": False, "gradient_clipping": 0.0}
_MIXED = {"data_types__grad_accum_dtype": "fp32"}
FAMILIES: dict[str, tuple[Any, Any]] = {
    "world-dense": (
        made(_world, tp=(2, 3), pp=(1, 2, 4)),
        made(tp=(1, 2, 3), pp=(1, 2, 4)),
    ),
    "world-expert": (
        made(_experts(False, world=True), tp=1, dp=(3, 4, 6, 8)),
        made(_experts(True, world=True), tp=1, dp=(2, 4, 6, 8)),
    ),
    "experts-ep": (
        made(_experts(False, world=False), tp=1, dp=(2, 3, 4, 6, 8)),
        made(_experts(True, world=False), tp=1, dp=(2, 3, 4, 6, 8)),
    ),
    "ep-tp": (
        made(
            _then(
                _on_case(experts=(4, 8)),
                put(expert_parallel={"enabled": True, "autoep_size": 2}),
            ),
            tp=2,
            dp=(2, 4, 6, 8),
        ),
        made(_experts(True, world=True), tp=1, dp=(2, 4, 6, 8)),
    ),
    "batch": (made(_batch), made(_two_of_three)),
    "heads-cp": (
        made(_heads(False), sp=(2, 3, 4, 6)),
        made(_heads(True), sp=(2, 3, 4, 6)),
    ),
    "seq-cp": (
        made(_length(False), sp=(2, 3, 4, 6)),
        made(_length(True), sp=(2, 3, 4, 6)),
    ),
    "cp-alone": (
        made(_not_alone, tp=2, pp=(1, 2)),
        made(sp=(2, 3, 4)),
    ),
    "fp16-bf16": (
        made(put(fp16__enabled=True, bf16__enabled=True)),
        made(put(fp16__enabled=(True, False), bf16__enabled=False), half=0),
    ),
    "loss-scale": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(fp16__loss_scale=(-1, -0.5)),
                    put(fp16__loss_scale_window=(0, -2)),
                    put(fp16__min_loss_scale=(0, -1)),
                )
            )(rng, case),
            half=2,
        ),
        made(
            lambda rng, case: rng.choice(
                (
                    put(fp16__loss_scale=(0, 1, 128)),
                    put(fp16__loss_scale=(1, 64), fp16__loss_scale_window=0),
                    put(fp16__loss_scale=(1, 64), fp16__min_loss_scale=0),
                    put(fp16__enabled=False, fp16__loss_scale_window=0),
                )
            )(rng, case),
            half=2,
        ),
    ),
    "parameter-type": (
        made(put(data_types__param_dtype=("fp16", "fp32")), half=1),
        made(put(data_types__param_dtype="bf16"), half=1),
    ),
    "accumulation-type": (
        made(put(data_types__grad_accum_dtype=("fp32", "fp16")), half=1, stage=0),
        made(put(data_types__grad_accum_dtype=("fp32", "bf16")), half=1, stage=(1, 2)),
    ),
    "managed-accumulation": (
        made(
            lambda rng, case: (
                put(managed_gradient_accumulation=False)(rng, case),
                case["pp"] == 1
                and put(zero_optimization__overlap_comm=True)(rng, case),
            ),
            stage=(0, 1),
        ),
        made(
            _then(
                put(managed_gradient_accumulation=False),
                lambda rng, case: case["config"]["zero_optimization"].update(
                    overlap_comm=case["config"]["zero_optimization"]["stage"] > 1
                ),
            ),
            pp=1,
        ),
    ),
    "communication-type": (
        made(put(communication_data_type=("fp8", "int8", "float"))),
        made(put(communication_data_type=("fp16", "bf16", "fp32"))),
    ),
    "removed-keys": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(nebula={}),
                    put(elasticity={"enabled": False}),
                    put(amp={"enabled": False}),
                    put(sparse_gradients=False),
                    put(zero_optimization__mics_shard_size=2),
                )
            )(rng, case)
        ),
        made(put(steps_per_print=(1, 10, 1000), wall_clock_breakdown=False)),
    ),
    "zero-stage": (
        made(put(zero_optimization__stage=(-1, 4, 5)), pp=1),
        made(put(zero_optimization__stage=(0, 1, 2, 3)), pp=1),
    ),
    "zero-keys": (
        made(put(zero_optimization__shards=(1, 2, 3))),
        made(
            put(
                zero_optimization__contiguous_gradients=(True, False),
                zero_optimization__round_robin_gradients=(True, False),
            ),
            stage=(0, 1, 2),
        ),
    ),
    "bucket": (
        made(put(zero_optimization__reduce_bucket_size=(0, -1))),
        made(put(zero_optimization__reduce_bucket_size=(1, 2, 10**6))),
    ),
    "offload-device": (
        made(put(zero_optimization__offload_param={"device": "disk"})),
        made(put(zero_optimization__offload_param=({"device": "none"}, _CPU))),
    ),
    "offload-partial": (
        made(
            put(
                zero_optimization__offload_optimizer={"device": "none", "ratio": 0.5},
            ),
            stage=(0, 1, 2),
        ),
        made(
            put(zero_optimization__offload_optimizer={"device": "none", "ratio": 1.0})
        ),
    ),
    "grad-norm-stage": (
        made(put(**_NO_NORM), stage=(0, 3)),
        made(put(**_NO_NORM), stage=(1, 2)),
    ),
    "grad-norm": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(**_NO_NORM | {"gradient_clipping": (0.5, 1.0)}),
                    put(
                        **_NO_NORM,
                        **_UNFORCED,
                        zero_optimization__offload_optimizer=_CPU,
                    ),
                )
            )(rng, case),
            stage=(1, 2),
        ),
        made(put(**_NO_NORM), stage=(1, 2)),
    ),
    "grad-norm-bf16": (
        made(put(**_NO_NORM, **_MIXED), stage=1, half=1),
        made(put(**_NO_NORM, **_MIXED), stage=2, half=(0, 1)),
    ),
    "reduce-op": (
        made(put(gradient_allreduce_op=("max", "avg"))),
        made(put(gradient_allreduce_op=("mean", "sum")), stage=(0, 1, 2)),
    ),
    "reduce-sum": (
        made(put(gradient_allreduce_op="sum"), stage=3),
        made(put(gradient_allreduce_op="mean"), stage=3),
    ),
    "master-weights": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(**{f"bf16__{_MASTER}": True}),
                    put(fp16__fp16_master_weights_and_grads=True),
                )
            )(rng, case),
            stage=0,
        ),
        made(
            put(**{f"bf16__{_MASTER}": True, "bf16__bf16_optimizer_states": True}),
            stage=(1, 2, 3),
            half=1,
        ),
    ),
    "optimizer-states": (
        made(put(bf16__bf16_optimizer_states=True), stage=(1, 2, 3), half=1),
        made(
            put(**{"bf16__bf16_optimizer_states": True, f"bf16__{_MASTER}": True}),
            stage=(1, 2, 3),
            half=1,
        ),
    ),
    "master-optimizer": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(**{f"bf16__{_MASTER}": True}),
                    put(
                        **{f"bf16__{_MASTER}": True},
                        **_UNFORCED,
                        zero_optimization__offload_optimizer=_CPU,
                    ),
                )
            )(rng, case),
            stage=(1, 2, 3),
            half=1,
        ),
        made(
            lambda rng, case: rng.choice(
                (
                    put(**{f"bf16__{_MASTER}": True}, **_MIXED),
                    put(**{f"bf16__{_MASTER}": False}),
                )
            )(rng, case),
            stage=1,
            half=1,
        ),
    ),
    "pipeline-zero": (made(pp=(2, 4), stage=(2, 3)), made(pp=(2, 4), stage=(0, 1))),
    "optimizer-tested": (
        made(optimizer=("sgd", "rmsprop"), stage=(1, 2, 3)),
        made(
            put(zero_allow_untested_optimizer=True),
            optimizer=("sgd", "rmsprop", "adagrad"),
        ),
    ),
    "optimizer-host": (
        made(put(zero_optimization__offload_optimizer=_CPU)),
        made(put(**_UNFORCED, zero_optimization__offload_optimizer=_CPU)),
    ),
    "nvme-path": (
        made(put(zero_optimization__offload_param={"device": "nvme"}), stage=3),
        made(put(zero_optimization__offload_param={"device": "nvme"}), stage=(0, 1, 2)),
    ),
    "legacy-stage1": (
        made(put(zero_optimization__legacy_stage1=True), stage=(1, 2, 3)),
        made(
            lambda rng, case: rng.choice(
                (
                    put(zero_optimization__legacy_stage1=False),
                    put(zero_optimization__legacy_stage1=True, **_MIXED),
                )
            )(rng, case),
            stage=1,
            half=1,
        ),
    ),
    "hpz": (
        made(_hpz(False), stage=3, dp=(3, 4, 6, 8)),
        made(_hpz(True), stage=3),
    ),
    "scaled-gradients": (
        made(
            lambda rng, case: rng.choice(
                (
                    put(prescale_gradients=True),
                    put(gradient_predivide_factor=(2.0, 0.5)),
                )
            )(rng, case),
            stage=(2, 3),
        ),
        made(
            lambda rng, case: rng.choice(
                (
                    put(prescale_gradients=True),
                    put(gradient_predivide_factor=(2.0, 0.5)),
                )
            )(rng, case),
            stage=(0, 1),
        ),
    ),
    "quantized-gradients": (
        made(
            put(
                zero_optimization__zero_quantized_gradients=True,
                zero_optimization__reduce_scatter=False,
            ),
            stage=3,
        ),
        made(
            put(
                zero_optimization__zero_quantized_gradients=True,
                zero_optimization__reduce_scatter=False,
            ),
            stage=(1, 2),
        ),
    ),
}
#: Keys that a draw sets to anything, by path.
ANYTHING: dict[str, tuple[Any, ...]] = {
    "zero_optimization__stage": (0, 1, 2, 3),
    "zero_optimization__overlap_comm": (True, False),
    "zero_optimization__compute_grad_norm": (True, False),
    "zero_optimization__reduce_scatter": (True, False),
    "zero_optimization__zero_hpz_partition_size": (1, 2, 3, 4, 64),
    "zero_optimization__zero_quantized_gradients": (True, False),
    "zero_optimization__offload_optimizer": (_CPU, {"device": "none", "ratio": 0.5}),
    "zero_optimization__offload_param": (_CPU, {"device": "nvme"}, {"device": "none"}),
    "zero_optimization__legacy_stage1": (True, False),
    "zero_optimization__reduce_bucket_size": (0, 1, 10**6),
    "zero_force_ds_cpu_optimizer": (True, False),
    "zero_allow_untested_optimizer": (True, False),
    "managed_gradient_accumulation": (True, False),
    "gradient_clipping": (0.0, 1.0),
    "prescale_gradients": (True, False),
    "gradient_predivide_factor": (1.0, 2.0),
    "gradient_allreduce_op": ("mean", "sum", "max"),
    "communication_data_type": ("fp16", "bf16", "fp32", "fp8"),
    "data_types__grad_accum_dtype": ("fp16", "bf16", "fp32"),
    "data_types__param_dtype": ("fp16", "bf16", "fp32"),
    "fp16__enabled": (True, False),
    "fp16__loss_scale": (0, 1, -1),
    "fp16__loss_scale_window": (0, 1, 1000),
    "fp16__fp16_master_weights_and_grads": (True, False),
    "bf16__enabled": (True, False),
    "bf16__bf16_master_weights_and_grads": (True, False),
    "bf16__bf16_optimizer_states": (True, False),
    "train_batch_size": (1, 2, 4, 16, 48),
    "gradient_accumulation_steps": (1, 2, 4),
    "elasticity": ({},),
}


def draw(rng: random.Random) -> Case:
    """Draw a case: a legal base, and up to three keys set to anything."""
    wants: dict[str, Any] = {}
    if rng.random() < 0.2:
        wants["sp"] = rng.choice((2, 3, 4))
    case = base(rng, **wants)
    if rng.random() < 0.2:
        case["optimizer"] = rng.choice(("sgd", "rmsprop"))
    if rng.random() < 0.3:
        fits = rng.random() < 0.7
        if case["world"] // case["pp"] in range(2, 13):
            _experts(fits, world=rng.random() < 0.5)(rng, case)
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        path = rng.choice(sorted(ANYTHING))
        put(**{path: ANYTHING[path]})(rng, case)
    if rng.random() < 0.1:
        case["seq"] += 1
    if rng.random() < 0.1:
        case["world"] += rng.choice((1, 2, case["world"]))
    return case
