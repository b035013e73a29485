"""Peak bytes of a pipeline rank, and the ledger of what is alive at that peak.

Peak = state (weights, gradients, optimizer) + constants + the largest, over the
schedule's in-flight vectors and the moments of a backward pass, of what micro-batches
keep plus what is alive for a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..expr import Expr, maximum, total, value
from ..parameters import layer_tensors
from .constants import constants
from .ends import (
    embedding_entries,
    final_norm_entries,
    loss_entries,
    model_entries,
    mtp_entries,
)
from .entries import Context, Recompute
from .kernels import DEFAULT, Kernels
from .layers import layer_entries
from .state import State, numbers
from .tally import Board, Tally, undominated
from .transient import layer_transient, loss_transient
from .units import Units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..architecture import Architecture, Layer
    from ..layout import Dims
    from ..problem import Training
    from ..stages import Chunk, Stage
    from .entries import Entries

InFlight = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Item:
    """One line of a ledger.

    Attributes
    ----------
    name
        What it is.
    tensor
        Number format and shape of one tensor, in the letters of ``units``.
    phase
        ``state`` and ``constant`` are always alive, ``kept`` between forward and
        backward pass, ``moment`` only at the peak.
    source
        Where the rule comes from.
    bytes
        Bytes of all ``count`` tensors.
    count
        How many there are.
    """

    name: str
    tensor: str
    phase: str
    source: str
    bytes: Expr
    count: int


@dataclass(frozen=True)
class _Moment:
    """A moment of the backward pass: components and how often each is alive."""

    kept: tuple[tuple[str, int], ...]
    transient: str | None


class MemoryModel:
    """Memory of one architecture and training over the axes.

    Parameters
    ----------
    architecture, training
        What is trained, and how.
    dims
        The axes as expressions.
    kernels
        Which kernels run.
    """

    def __init__(
        self,
        architecture: Architecture,
        training: Training,
        dims: Dims,
        kernels: Kernels = DEFAULT,
    ) -> None:
        """Register every component; none is evaluated yet."""
        self.architecture, self.dims = architecture, dims
        units = Units(dims, training.seq_len)
        self.context = Context(architecture, training, kernels, units)
        self.state = State(
            architecture, dims, training.optimizer, kernels.vocab_multiple
        )
        self._tallies: dict[_Moment, Tally] = {}

    @cached_property
    def board(self) -> Board:
        """All components, by name."""
        board, context, rows = Board(self.dims.recompute), self.context, self.state.rows
        for index, kind in enumerate(self.architecture.kinds):
            self._add_kind(board, index, kind)
        board.add("mtp", lambda r: mtp_entries(context, r))
        board.add("model", lambda r: model_entries(context, r))
        board.add("embedding", lambda _: embedding_entries(context))
        board.add("final norm", lambda _: final_norm_entries(context))
        board.add("loss", lambda _: loss_entries(context, rows))
        board.add("loss moment", lambda _: loss_transient(context, rows))
        return board

    def _add_kind(self, board: Board, index: int, kind: Layer) -> None:
        context = self.context

        def kept(recompute: Recompute) -> Entries:
            return layer_entries(context, kind, recompute)

        def moment(recompute: Recompute) -> Entries:
            return layer_transient(context, kind, recompute)

        board.add(f"layer {index}", kept)
        board.add(f"layer {index} moment", moment)

    def saved(self, component: str) -> Expr:
        """Return the bytes of one component of ``board``."""
        return self.board.expression(self.board.tallies[component])

    def layer_parameters(self, kind: int) -> Expr:
        """Return a rank's parameters in one layer of a kind, dense and experts'."""
        layer = self.architecture.kinds[kind]
        found = numbers(layer_tensors(self.architecture, layer))
        return total(self.state.counts(found))

    def rank_parameters(self, stage: Stage) -> Expr:
        """Return a rank's parameters, dense and experts'."""
        return total(self.state.counts(self.state.numbers(stage)))

    def _chunk(self, chunk: Chunk) -> list[tuple[str, int]]:
        """Return the components a micro-batch keeps in a chunk, the loss apart."""
        kinds = enumerate(chunk.layers)
        held = [(f"layer {index}", count) for index, count in kinds if count]
        if chunk.mtp:
            held.append(("mtp", chunk.mtp))
        if chunk.embedding:
            held.append(("embedding", 1))
        return held

    def _moments(self, stage: Stage, in_flight: InFlight) -> list[_Moment]:
        """List the moments that may be a rank's peak.

        While a layer runs backward, the loss of its micro-batch is gone; while the
        loss runs, all that the last chunk keeps is there.
        """
        last = self.architecture.kind_of_layer[-1]
        present = {i for chunk in stage for i, n in enumerate(chunk.layers) if n}
        present |= {last} if any(chunk.mtp for chunk in stage) else set()
        found = []
        for vector in in_flight:
            kept: dict[str, int] = {"model": 1}
            losses, heads = 0, 0
            for count, chunk in zip(vector, stage, strict=True):
                for name, times in self._chunk(chunk):
                    kept[name] = kept.get(name, 0) + count * times
                if chunk.head:
                    losses, heads = count, 1 + chunk.mtp
            found += [
                _moment(kept, max(losses - 1, 0), heads, f"layer {i} moment")
                for i in sorted(present)
            ]
            if losses:
                found.append(_moment(kept, losses, heads, "loss moment"))
            if not present and not losses:
                found.append(_moment(kept, 0, 0, None))
        return found

    def _tally(self, moment: _Moment) -> Tally:
        if moment not in self._tallies:
            tallies = self.board.tallies
            tally = self.board.zero()
            for name, count in moment.kept:
                tally += tallies[name] * count
            if moment.transient:
                tally += tallies[moment.transient]
            self._tallies[moment] = tally
        return self._tallies[moment]

    def rank_peak(self, stage: Stage, in_flight: InFlight) -> Expr:
        """Return the peak bytes of one pipeline rank.

        Parameters
        ----------
        stage
            The rank's chunks.
        in_flight
            The vectors of the schedule that none other exceeds: for each chunk how
            many micro-batches are held at once.
        """
        tallies = [self._tally(m) for m in self._moments(stage, in_flight)]
        held = [self.board.expression(t) for t in undominated(tallies)]
        fixed = sum(c.bytes for c in constants(self.architecture))
        return total((maximum(*held), self.state.peak(stage), fixed))

    def ledger_at(
        self, stage: Stage, in_flight: InFlight, point: Mapping[str, int]
    ) -> tuple[tuple[Item, int], ...]:
        """Return the items alive at a rank's peak with their bytes at one point.

        Parameters
        ----------
        stage, in_flight
            As for ``rank_peak``.
        point
            A value for every axis; the layout must be legal, otherwise quotients are
            not whole and items may miss the peak by their rounding.

        Returns
        -------
        tuple of (Item, int)
            They sum to the peak.
        """
        moments = self._moments(stage, in_flight)
        worst = max(
            moments, key=lambda m: value(self.board.expression(self._tally(m)), point)
        )
        items = [*self._fixed_items(stage), *self._moment_items(worst, point)]
        valued = ((item, value(item.bytes, point)) for item in items)
        return tuple((item, size) for item, size in valued if size)

    def _fixed_items(self, stage: Stage) -> list[Item]:
        items = []
        for name, size in self.state.bytes(stage):
            items.append(_item(name, "parameters", "state", self.state.source, size))
        for constant in constants(self.architecture):
            size = total((constant.bytes,))
            items.append(
                _item(constant.name, "bytes", "constant", constant.source, size)
            )
        return items

    def _moment_items(self, moment: _Moment, point: Mapping[str, int]) -> list[Item]:
        constant = self.dims.recompute.constant
        code = point["recompute"] if constant is None else constant
        items = []
        names = [(name, count, "kept") for name, count in moment.kept if count]
        if moment.transient:
            names.append((moment.transient, 1, "moment"))
        for component, count, phase in names:
            for entry in self.board.entries(component, code):
                size = entry.unit.times(entry.weight * count)
                items.append(
                    Item(
                        name=f"{component.removesuffix(' moment')}: {entry.name}",
                        tensor=f"{entry.dtype} {entry.shape}",
                        phase=phase,
                        source="Megatron-Core 0.16.1",
                        bytes=size,
                        count=count * entry.count,
                    )
                )
        return items


def _moment(
    kept: Mapping[str, int], losses: int, heads: int, transient: str | None
) -> _Moment:
    whole = dict(kept)
    if losses:
        whole["final norm"] = losses
        whole["loss"] = losses * heads
    return _Moment(tuple(whole.items()), transient)


def _item(name: str, tensor: str, phase: str, source: str, size: Expr) -> Item:
    return Item(
        name=name, tensor=tensor, phase=phase, source=source, bytes=size, count=1
    )
