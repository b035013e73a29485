"""Which kernels run: the choices of a framework that decide what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from ..parameters import VOCAB_MULTIPLE

if TYPE_CHECKING:
    from ..cluster import Device

Implementation = Literal["te", "local"]
Dispatcher = Literal["alltoall", "allgather", "flex"]
ContextParallel = Literal["p2p", "a2a", "all-gather"]
AuxLoss = Literal["none", "aux", "seq-aux"]


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """Kernels and fusions of Megatron-Core, as far as they change bytes.

    Attributes
    ----------
    implementation
        ``te``: layers of TransformerEngine (norms fused into the next projection,
        fused attention); ``local``: Megatron's own layers.
    flash
        Whether the local implementation uses flash attention; otherwise the scores
        are kept, s * s numbers per head.
    softmax_fp32
        Whether unfused attention takes its softmax in 32 bits.
    activation_fusion
        Whether the activation (with its bias and routing weight) is one kernel.
    rope_fusion
        Whether rotary embedding is one kernel; otherwise cosine and sine are kept
        twice in each layer.
    permute_fusion
        Whether the permutation of tokens to experts is one kernel.
    dispatcher
        How tokens reach their experts.
    router_fp32
        Whether the router's logits are in 32 bits.
    pre_softmax
        Whether the softmax runs over all experts before the choice.
    aux_loss, z_loss
        Auxiliary losses of the router.
    capacity
        Capacity factor as a ratio of whole numbers, expert inputs padded to it, or
        None for dropless routing.
    context_parallel
        How attention exchanges keys or heads under context parallelism.
    gradient_fusion
        Whether weight gradients are accumulated into the main gradients by the
        matrix product; TransformerEngine then keeps one dummy gradient per shape.
    distributed_inputs
        Whether full recompute divides the layers' inputs over tp
        (``--distribute-saved-activations``; not with sequence parallelism).
    latent_norm
        Whether multi-head latent attention norms its compressed queries and keys.
    latent_bias
        Whether the output projection of latent attention has a bias.
    transposed_copies
        Whether the device's matrix unit needs weights in eight bits transposed for
        the backward pass, as Hopper's does and Blackwell's does not.
    parameter_bytes
        Bytes of a number in weights and activations: 2, or 4 for fp32.
    vocab_multiple
        The vocabulary is padded to a multiple of this times tp.
    """

    implementation: Implementation = "te"
    flash: bool = True
    softmax_fp32: bool = False
    activation_fusion: bool = True
    rope_fusion: bool = True
    permute_fusion: bool = False
    dispatcher: Dispatcher = "alltoall"
    router_fp32: bool = False
    pre_softmax: bool = False
    aux_loss: AuxLoss = "none"
    z_loss: bool = False
    capacity: tuple[int, int] | None = field(default=None)
    context_parallel: ContextParallel = "p2p"
    gradient_fusion: bool = True
    distributed_inputs: bool = False
    latent_norm: bool = True
    latent_bias: bool = False
    transposed_copies: bool = True
    parameter_bytes: int = 2
    vocab_multiple: int = VOCAB_MULTIPLE

    @property
    def is_te(self) -> bool:
        """Whether the layers are TransformerEngine's."""
        return self.implementation == "te"

    @property
    def unfused_attention(self) -> bool:
        """Whether attention keeps its scores."""
        return not self.is_te and not self.flash


DEFAULT = Kernels()


def kernels_on(device: Device) -> Kernels:
    """Return the default kernels as they run on a device.

    From Blackwell on, whose matrix units are the first of their maker with ``mxfp8``,
    weights in eight bits need no transposed copy; other makers' devices with that
    format are taken to be alike. Source: is_non_tn_fp8_gemm_supported in
    pytorch/utils.py of TransformerEngine 2.20.

    Parameters
    ----------
    device
        The device, whose formats decide.
    """
    return replace(DEFAULT, transposed_copies="mxfp8" not in device.formats)
