"""How the model is trained, as Megatron's arguments describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..problem import Training

if TYPE_CHECKING:
    from ..problem import CrossEntropy
    from .megatron_args import Arguments

#: Axis values of Megatron's FP8 recipes.
_RECIPES = {
    "delayed": "fp8-delayed",
    "tensorwise": "fp8-tensor",
    "blockwise": "fp8-block",
    "mxfp8": "mxfp8",
}


def precision_of(args: Arguments) -> str:
    """Return the number format of matrix products, as the axis names it."""
    if args.has("fp4-format"):
        return "nvfp4"
    if args.has("fp8-format") or args.has("fp8"):
        return _RECIPES.get(args.text("fp8-recipe", "delayed"), "fp8-delayed")
    return "fp16" if args.has("fp16") else "bf16"


def loss_of(args: Arguments) -> CrossEntropy:
    """Return the kernel of the loss."""
    if not args.has("cross-entropy-loss-fusion"):
        return "unfused"
    engine = args.text("cross-entropy-fusion-impl", "native") == "te"
    return "te-fused" if engine else "native-fused"


def optimizer_of(args: Arguments) -> str:
    """Return the recipe of bytes per parameter."""
    name = args.text("optimizer", "adam")
    if "muon" in name:
        return "megatron-muon"
    if name == "sgd":
        return "sgd-momentum" if args.number("sgd-momentum", 0.9) else "sgd"
    if args.has("use-precision-aware-optimizer"):
        narrow = args.text("exp-avg-dtype", "fp32") == "bf16"
        return "megatron-adam-bf16-remainders" if narrow else "megatron-adam"
    bare = args.has("grad-reduce-in-bf16")
    return "megatron-adam-bf16-grads" if bare else "megatron-adam"


def training_of(args: Arguments, batch: int) -> Training:
    """Return the training of ``batch`` sequences a step.

    Raises
    ------
    InputError
        If a value is missing or out of bounds.
    """
    return Training(
        seq_len=args.whole("seq-length"),
        global_batch=batch,
        optimizer=optimizer_of(args),
        cross_entropy=loss_of(args),
        dropout=args.number("hidden-dropout", 0.1) > 0,
    )
