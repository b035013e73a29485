"""Time of what is not a decoder layer: embedding, head with loss, MTP layers.

Letters: h hidden, V padded vocabulary rows of a rank, t tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..parameters import VOCAB_MULTIPLE
from .kernels import WIDTH
from .layer import layer_work, with_host
from .work import Floats, Work

if TYPE_CHECKING:
    from ..architecture import Architecture
    from ..problem import Training
    from .pricer import Pricer

#: Bytes a logit moves in forward and backward of the cross-entropy. ``unfused``:
#: cast to fp32 (2 + 4), maximum (4), subtraction, exponential and division in place
#: (8 each), sum (4); then the gradient scaled in fp32 and cast (4 + 4, 4 + 2).
#: ``native-fused``: subtraction, exponential and sum are one kernel, and so is the
#: backward. ``te-fused``: two reads of bf16 and one write; one pass in place.
_LOSS_BYTES = {
    "unfused": (38, 14),
    "native-fused": (26, 10),
    "te-fused": (6, 4),
}


def vocabulary_rows(vocab: int, tp: Floats) -> Floats:
    """Return a rank's rows of the vocabulary, padded to a multiple of 128 tp."""
    rows: Floats = VOCAB_MULTIPLE * np.ceil(vocab / (VOCAB_MULTIPLE * tp))
    return rows


def embedding_work(p: Pricer) -> Work:
    """Price looking tokens up, and adding gradients to their rows."""
    number = p.shape.own_tokens * p.hidden
    looked_up = p.kernels.passes(2 * WIDTH * number, (WIDTH + 8) * number)
    reduce, gather = p.shape.leave(p.hidden), p.shape.enter(p.hidden)
    return with_host(p, looked_up + Work({"tp": reduce}, {"tp": gather}))


def head_work(p: Pricer, arch: Architecture, training: Training) -> Work:
    """Price the final norm, the output projection and the loss."""
    shape, t = p.shape, p.shape.tokens
    rows = vocabulary_rows(arch.vocab, shape.tp)
    number = shape.own_tokens * p.hidden * WIDTH
    ahead, back = _LOSS_BYTES[training.cross_entropy]
    work = (
        p.kernels.passes(2 * number, 3 * number)
        + p.kernels.gemm(t, p.hidden, rows, in_recipe=False)
        + p.kernels.passes(t * rows * ahead, t * rows * back, "loss")
        + Work({"tp": shape.enter(p.hidden)}, {"tp": shape.leave(p.hidden)})
    )
    return with_host(p, work)


def mtp_work(p: Pricer, arch: Architecture, training: Training) -> Work:
    """Price one multi-token-prediction layer.

    Two norms, a projection of 2 h to h, a layer of the last kind, and a head with
    its loss.
    """
    shape, h = p.shape, p.hidden
    number = shape.own_tokens * h * WIDTH
    joined = p.kernels.passes(2 * 2 * number, 2 * 3 * number)
    joined += p.kernels.gemm(shape.tokens, 2.0 * h, h / shape.tp) + p.crossing(2 * h, h)
    layer = layer_work(p, arch.layers[-1])
    return joined + layer + head_work(p, arch, training)
