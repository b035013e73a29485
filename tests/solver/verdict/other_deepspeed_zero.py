"""Families of the rules of DeepSpeed's ZeRO and optimizers."""

from __future__ import annotations

from typing import Any

from other_deepspeed_bases import CPU, MIXED, UNFORCED, hpz_of, made, put

_MASTER = "bf16_master_weights_and_grads"
_NO_NORM = {"zero_optimization__compute_grad_norm": False, "gradient_clipping": 0.0}
FAMILIES: dict[str, tuple[Any, Any]] = {
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
        made(put(zero_optimization__offload_param=({"device": "none"}, CPU))),
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
                        **UNFORCED,
                        zero_optimization__offload_optimizer=CPU,
                    ),
                )
            )(rng, case),
            stage=(1, 2),
        ),
        made(put(**_NO_NORM), stage=(1, 2)),
    ),
    "grad-norm-bf16": (
        made(put(**_NO_NORM, **MIXED), stage=1, half=1),
        made(put(**_NO_NORM, **MIXED), stage=2, half=(0, 1)),
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
                        **UNFORCED,
                        zero_optimization__offload_optimizer=CPU,
                    ),
                )
            )(rng, case),
            stage=(1, 2, 3),
            half=1,
        ),
        made(
            lambda rng, case: rng.choice(
                (
                    put(**{f"bf16__{_MASTER}": True}, **MIXED),
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
        made(put(zero_optimization__offload_optimizer=CPU)),
        made(put(**UNFORCED, zero_optimization__offload_optimizer=CPU)),
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
                    put(zero_optimization__legacy_stage1=True, **MIXED),
                )
            )(rng, case),
            stage=1,
            half=1,
        ),
    ),
    "hpz": (
        made(hpz_of(False), stage=3, dp=(3, 4, 6, 8)),
        made(hpz_of(True), stage=3),
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
