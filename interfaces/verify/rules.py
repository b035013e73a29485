"""Megatron's rules for one configuration, one plain check a sentence.

The sentences are those of ``shardproof rules``; the ids are theirs. What a launch
written by this program never sets (a rank order, stage sizes, graphs, ...) breaks no
rule, so that rules of it are not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...models.architecture import Attention, DenseFFN, LatentAttention, MoE
from .saved import NotCoveredError
from .splits import is_new

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .saved import Labels, Saved

    #: Ids of rules, and whether they hold.
    Checks = Iterator[tuple[str, bool]]

DIALECTS = ("megatron@0.14", "megatron@0.15", "megatron@0.16")
ADVICE = ("tp-node",)


@dataclass(frozen=True)
class Rules:
    """The rules over one saved problem.

    Raises
    ------
    NotCoveredError
        If the dialect, or advice that the space enforces, is not written here.
    """

    saved: Saved

    def __post_init__(self) -> None:
        """Check that every rule in force is written here."""
        dialect = self.saved.document["problem"]["dialect"]
        if dialect not in DIALECTS:
            raise NotCoveredError(f"the rules of {dialect}")
        if dialect != DIALECTS[-1] and self.saved.training.precision != "bf16":
            raise NotCoveredError(f"{self.saved.training.precision} with {dialect}")
        if other := set(self.saved.advice) - set(ADVICE):
            raise NotCoveredError(f"the advice {', '.join(sorted(other))}")

    def broken(self, x: Labels) -> tuple[str, ...]:
        """Return the ids of all rules that a configuration breaks."""
        parts = (self.groups, self.widths, self.sequence, self.pipeline, self.rest)
        return tuple(name for part in parts for name, holds in part(x) if not holds)

    @cached_property
    def _attention(self) -> list[Attention | LatentAttention]:
        return [kind.attention for kind in self.saved.architecture.kinds]

    @cached_property
    def _dense(self) -> list[DenseFFN]:
        blocks = (kind.feed_forward for kind in self.saved.architecture.kinds)
        return [block for block in blocks if isinstance(block, DenseFFN)]

    @cached_property
    def _sparse(self) -> list[MoE]:
        blocks = (kind.feed_forward for kind in self.saved.architecture.kinds)
        return [block for block in blocks if isinstance(block, MoE)]

    def groups(self, x: Labels) -> Checks:
        """Rules of the degrees: tp, pp, cp, ep, etp, mbs and what follows from them."""
        world, batch = self.saved.world, self.saved.training.global_batch
        yield "world-dense", x["tp"] * x["pp"] * x["cp"] * x["dp"] == world
        yield "world-expert", x["etp"] * x["ep"] * x["pp"] * x["edp"] == world
        yield "batch", x["mbs"] * x["dp"] * x["m"] == batch and x["m"] >= 1
        if self._sparse:
            yield "experts-ep", all(b.experts % x["ep"] == 0 for b in self._sparse)
        else:
            yield "ep-moe", x["ep"] == 1
            yield "etp-dense", x["etp"] == 1
        if "tp-node" in self.saved.advice:
            domain = self.saved.domain
            yield "tp-node", domain % x["tp"] == 0 and domain % x["etp"] == 0

    def widths(self, x: Labels) -> Checks:
        """Rules of what tensor and expert parallelism cut."""
        tp, etp = x["tp"], x["etp"]
        keys = [a.kv_heads for a in self._attention if isinstance(a, Attention)]
        shared = [b.shared_ffn for b in self._sparse if b.shared_ffn]
        yield "heads-tp", all(a.heads % tp == 0 for a in self._attention)
        yield "kv-tp", all(k % tp == 0 or tp % k == 0 for k in keys)
        yield "ffn-tp", all(block.ffn % tp == 0 for block in self._dense)
        yield "moe-ffn-etp", all(block.ffn % etp == 0 for block in self._sparse)
        yield "shared-ffn-tp", all(width % tp == 0 for width in shared)
        biased = any(b.bias for b in self._dense) or any(b.bias for b in self._sparse)
        if self._sparse and biased:
            yield "etp-bias", etp == 1
            yield "shared-bias", not shared

    def sequence(self, x: Labels) -> Checks:
        """Rules of the sequence, and of ``sp``."""
        tokens, tp, cp = self.saved.training.seq_len, x["tp"], x["cp"]
        yield "seq-cp", cp == 1 or tokens % (2 * cp) == 0
        yield "seq-sp", not x["sp"] or tokens % (cp * tp) == 0
        yield "sp-tp", not x["sp"] or tp > 1
        yield "moe-sp", not self._sparse or tp == 1 or bool(x["sp"])

    def pipeline(self, x: Labels) -> Checks:
        """Rules of ``vpp``, ``schedule`` and ``split``."""
        pp, vpp, m, split = x["pp"], x["vpp"], x["m"], x["split"]
        layers = self.saved.architecture.num_layers
        rule = {
            "even": "layers-pp",
            "balanced": "layers-balanced",
            "first-last": "layers-uneven",
        }
        yield rule[split], is_new(split, layers, pp, vpp)
        yield "vpp-pp", vpp == 1 or pp > 1
        if vpp > 1 and pp > 1:
            yield "vpp-microbatches", m % pp == 0
            yield "m-ge-pp", m >= pp
        order = "interleaved" if vpp > 1 else "1f1b"
        yield "schedule-vpp", x["schedule"] == order

    def rest(self, x: Labels) -> Checks:
        """Rules of ``recompute`` and ``sharding``."""
        yield "sharding-stage", x["sharding"] in ("none", "zero-1")
        chosen = set(x["recompute"].split("+")) - {"none", "full"}
        latent = any(isinstance(a, LatentAttention) for a in self._attention)
        yield "recompute-selective", latent or "mla_up_proj" not in chosen
        biased = any(b.bias for b in self._dense) or any(b.bias for b in self._sparse)
        yield "recompute-bias", not (biased and self._dense and "mlp" in chosen)
        present = {"core_attn"}
        present |= {"layernorm"} if latent or self._sparse else set()
        present |= {"mla_up_proj"} if latent else set()
        present |= {"mlp"} if self._dense else set()
        present |= {"moe", "moe_act"} if self._sparse else set()
        present |= (
            {"shared_experts"} if any(b.shared_ffn for b in self._sparse) else set()
        )
        yield "recompute-present", chosen <= present
