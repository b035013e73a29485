"""What a ledger counts in: per-rank quantities of tokens, rows and logits.

A unit is a quotient of two expressions of the axes. Bytes of a tensor are a whole
number times a unit, so that all tensors of one unit are one term for the solver.

Letters: s sequence length, b micro-batch (mbs), n = s b / cp tokens of a rank's
sequence shard, u = tp under sequence parallelism and 1 without, T = n / u tokens
outside tensor-parallel regions, E experts, k experts of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..expr import (
    Axis,
    Expr,
    Op,
    as_expr,
    at_most,
    ceil_div,
    exact_div,
    floor_div,
    less,
    maximum,
    minimum,
    modulo,
    product,
    where,
)

if TYPE_CHECKING:
    from ..architecture import MoE
    from ..layout import Dims


class Unit(NamedTuple):
    """A quotient of expressions, whole wherever the layout is legal."""

    numerator: Expr
    divisor: Expr

    def times(self, factor: Expr | int) -> Expr:
        """Return the unit times a whole number."""
        return exact_div(product((self.numerator, factor)), self.divisor)


@dataclass(frozen=True)
class Units:
    """The units of one sequence length over the axes."""

    dims: Dims
    seq_len: int

    @cached_property
    def _batch(self) -> Expr:
        return self.dims.mbs * self.seq_len

    @cached_property
    def _u(self) -> Expr:
        return where(self.dims.sp, self.dims.tp, 1)

    @cached_property
    def once(self) -> Unit:
        """One, whatever the layout."""
        return Unit(as_expr(1), as_expr(1))

    @cached_property
    def tokens(self) -> Unit:
        """N: tokens of a rank's sequence shard, as seen by tensor parallelism."""
        return Unit(self._batch, self.dims.cp)

    @cached_property
    def tokens_tp(self) -> Unit:
        """N / tp: for tensors whose channels are divided over tp."""
        return Unit(self._batch, self.dims.cp * self.dims.tp)

    @cached_property
    def exchanged_tp(self) -> Unit:
        """N / tp where the sequence is divided over cp, 0 elsewhere."""
        divided = less(1, self.dims.cp)
        return Unit(product((self._batch, divided)), self.tokens_tp.divisor)

    @cached_property
    def shard(self) -> Unit:
        """T: tokens of the residual stream on one rank."""
        return Unit(self._batch, self.dims.cp * self._u)

    @cached_property
    def shard_etp(self) -> Unit:
        """T etp: tokens of the ranks that share an expert's parts."""
        numerator = product((self._batch, self.dims.etp))
        return Unit(numerator, self.shard.divisor)

    @cached_property
    def positions(self) -> Unit:
        """Positions of a sequence on one rank, whatever the micro-batch."""
        return Unit(as_expr(self.seq_len), self.dims.cp)

    @cached_property
    def batch(self) -> Unit:
        """Sequences of a micro-batch."""
        return Unit(self.dims.mbs, as_expr(1))

    @cached_property
    def boundaries(self) -> Unit:
        """Starts of a micro-batch's sequences, and the last one's end."""
        return Unit(self.dims.mbs + 1, as_expr(1))

    @cached_property
    def exchanged_boundaries(self) -> Unit:
        """The same where the sequence is divided over cp, 0 elsewhere."""
        divided = less(1, self.dims.cp)
        return Unit(product((self.dims.mbs + 1, divided)), as_expr(1))

    @cached_property
    def steps(self) -> Unit:
        """Steps in which attention meets the shards of a sequence."""
        return Unit(self.dims.cp, as_expr(1))

    @cached_property
    def halves(self) -> Unit:
        """Two where a rank has an early and a late part of its sequences, else one."""
        return Unit(1 + less(1, self.dims.cp), as_expr(1))

    @cached_property
    def gathered(self) -> Unit:
        """N where sequence parallelism gathers, 0 elsewhere."""
        return Unit(product((self._batch, self.dims.sp)), self.dims.cp)

    @cached_property
    def split(self) -> Unit:
        """N where tp exceeds 1, 0 elsewhere."""
        return Unit(
            product((self._batch, less(1, self.dims.tp))),
            self.dims.cp,
        )

    @cached_property
    def whole(self) -> Unit:
        """N where tp is 1, 0 elsewhere."""
        return Unit(product((self._batch, at_most(self.dims.tp, 1))), self.dims.cp)

    @cached_property
    def transposed(self) -> Unit:
        """N where turning tokens by sequence round copies them: several sequences."""
        several = less(1, self.dims.mbs)
        return Unit(product((self._batch, several)), self.dims.cp)

    @cached_property
    def turned(self) -> Unit:
        """N where it does not: one sequence."""
        return Unit(self._batch - self.transposed.numerator, self.dims.cp)

    @cached_property
    def unsharded(self) -> Unit:
        """N - T: what a gathered tensor has beyond a sharded one."""
        return Unit(product((self._batch, self._u - 1)), self.shard.divisor)

    @staticmethod
    def when(condition: Expr, unit: Unit) -> Unit:
        """Return the unit where a condition holds, 0 elsewhere."""
        return Unit(product((unit.numerator, condition)), unit.divisor)

    def copied_queries(self, kv_heads: int) -> Unit:
        """N / tp where a rank has several key heads, so that queries lie apart."""
        several = less(self.dims.tp, kv_heads)
        return Unit(product((self._batch, several)), self.tokens_tp.divisor)

    def viewed_queries(self, kv_heads: int) -> Unit:
        """N / tp where a rank has one key head, so that its queries lie together."""
        single = at_most(kv_heads, self.dims.tp)
        return Unit(product((self._batch, single)), self.tokens_tp.divisor)

    def keys(self, kv_heads: int) -> Unit:
        """N times the key/value heads of a rank, at least one."""
        heads = maximum(self.dims.tp, kv_heads)
        return Unit(product((self._batch, heads)), self.dims.cp * self.dims.tp)

    def packed(self, kv_heads: int) -> Unit:
        """Share of the fused projection's output: gathered if tp > kv heads."""
        parts = where(at_most(self.dims.tp, kv_heads), self.dims.tp, 1)
        return Unit(self._batch, product((self.dims.cp, parts)))

    def repeated(self, heads: int, kv_heads: int) -> tuple[Unit, Unit]:
        """N / tp where a rank repeats keys for its queries, and where it does not."""
        tp = self.dims.tp
        many = where(at_most(tp, kv_heads), int(heads > kv_heads), less(tp, heads))
        top = product((self._batch, many))
        bottom = self.tokens_tp.divisor
        return Unit(top, bottom), Unit(self._batch - top, bottom)

    def logits(self, rows: Expr) -> Unit:
        """N times a rank's rows of the vocabulary."""
        return Unit(product((self._batch, rows)), self.dims.cp)

    def head_weights(self, rows: Expr) -> Unit:
        """Rows of the vocabulary on a rank."""
        return Unit(rows, self.once.divisor)

    def routed(self, moe: MoE, capacity: tuple[int, int] | None) -> tuple[Unit, Unit]:
        """Rows that the experts of the fullest rank receive, and those over etp.

        Routing is balanced: k T tokens over E experts as evenly as whole numbers
        allow, the first experts taking one more. With a capacity factor each expert
        receives ceil(k T factor / E) from every rank.
        """
        dims, shard = self.dims, self.shard
        sent = product((shard.numerator, moe.topk))
        if capacity is None and self._divisible(moe):
            return (
                Unit(product((sent, dims.etp)), shard.divisor),
                Unit(sent, shard.divisor),
            )
        if capacity is None:
            local = exact_div(moe.experts, dims.ep)
            sent = exact_div(sent, shard.divisor)
            even = product((local, floor_div(sent, moe.experts)))
            rows = product((dims.ep, even + minimum(local, modulo(sent, moe.experts))))
        else:
            top = product((sent, capacity[0]))
            bottom = product((shard.divisor, moe.experts * capacity[1]))
            rows = ceil_div(top, bottom) * moe.experts
        return Unit(product((rows, dims.etp)), as_expr(1)), Unit(rows, as_expr(1))

    def expert_rows(
        self, moe: MoE, capacity: tuple[int, int] | None, multiple: int
    ) -> tuple[tuple[Expr, Expr], ...]:
        """Return how many experts of the fullest rank receive how many rows.

        Parameters
        ----------
        moe, capacity
            As for ``routed``.
        multiple
            Rows of each expert are padded to a multiple of it.
        """
        dims, shard = self.dims, self.shard
        local, ranks = exact_div(moe.experts, dims.ep), product((dims.ep, dims.etp))
        sent = product((shard.numerator, moe.topk))

        def padded(rows: Expr) -> Expr:
            return ceil_div(product((rows, ranks)), multiple) * multiple

        if capacity is not None:
            top = product((sent, capacity[0]))
            bottom = product((shard.divisor, moe.experts * capacity[1]))
            return ((local, padded(ceil_div(top, bottom))),)
        sent = exact_div(sent, shard.divisor)
        each = floor_div(sent, moe.experts)
        if self._divisible(moe):
            return ((local, padded(each)),)
        fuller = minimum(local, modulo(sent, moe.experts))
        return (fuller, padded(each + 1)), (local - fuller, padded(each))

    def several(self, rows: Unit, experts: int) -> Unit:
        """Rows where a rank has more than one expert, 0 elsewhere."""
        several = less(self.dims.ep, experts)
        return Unit(product((rows.numerator, several)), rows.divisor)

    def _divisible(self, moe: MoE) -> bool:
        sent = self.seq_len * moe.topk
        return all(
            sent % (moe.experts * cp * tp) == 0
            for cp in _domain(self.dims.cp)
            for tp in _domain(self.dims.tp)
            if (self.seq_len % (cp * tp)) == 0
        )


def _domain(node: Expr) -> tuple[int, ...]:
    """Return the values an axis, or a constant in its place, can take."""
    if node.op is Op.AXIS:
        assert isinstance(node.data, Axis)
        return node.data.values
    assert node.constant is not None
    return (node.constant,)
