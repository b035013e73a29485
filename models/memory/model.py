"""Peak bytes of a pipeline rank, and the ledger of what is alive at that peak.

Peak = state (weights, gradients, optimizer) + constants + the largest, over the
schedule's in-flight vectors and the moments of a backward pass, of what micro-batches
keep plus what is alive for a moment.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..axis_values import PRECISIONS
from ..expr import Expr, maximum, total, value
from ..parameters import layer_tensors, mtp_tensors
from .constants import constants
from .ends import (
    embedding_entries,
    final_norm_entries,
    loss_entries,
    model_entries,
    mtp_entries,
)
from .entries import NOTHING, Context, Recompute
from .grouped import correct, is_grouped
from .kernels import DEFAULT, Kernels
from .layers import layer_entries
from .ledger import Item, fixed_items, moment_items
from .moments import Moment, moments
from .offload import ACTIVATIONS, RETURNED, host_bytes, sent, stays
from .state import State
from .tally import Board, Tally, undominated
from .transient import embedding_transient, layer_transient, loss_transient
from .units import Units
from .weight_copies import weight_copies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..architecture import Architecture, Layer
    from ..layout import Dims
    from ..problem import Training
    from ..stages import Stage
    from .entries import Entries
    from .moments import InFlight
    from .tally import Choice


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
            architecture,
            dims,
            training.optimizer,
            kernels.vocab_multiple,
            kernels.latent_norm,
            kernels.latent_bias,
        )
        self._tallies: dict[Moment, Tally] = {}
        self._cached: dict[tuple[frozenset[int], bool], Expr] = {}

    @cached_property
    def board(self) -> Board:
        """All components, by name."""
        board, rows, at = Board(self.dims), self.state.rows, self._context_at
        for index, kind in enumerate(self.architecture.kinds):
            self._add_kind(board, index, kind)
        board.add("mtp", lambda c: mtp_entries(at(c), Recompute(c.recompute)))
        board.add("model", lambda c: model_entries(at(c), Recompute(c.recompute)))
        board.add("embedding", lambda c: embedding_entries(at(c)))
        board.add("final norm", lambda c: final_norm_entries(at(c)))
        board.add("loss", lambda c: loss_entries(at(c), rows))
        board.add("loss moment", lambda c: loss_transient(at(c), rows))
        board.add("embedding moment", lambda c: embedding_transient(at(c), rows))
        return board

    def _add_kind(self, board: Board, index: int, kind: Layer) -> None:
        at = self._context_at

        def kept(choice: Choice) -> Entries:
            return layer_entries(at(choice), kind, Recompute(choice.recompute))

        def moment(choice: Choice) -> Entries:
            yield from layer_transient(at(choice), kind, Recompute(choice.recompute))
            for entry in sent(kept(choice), choice.offload):
                yield replace(entry, count=RETURNED * entry.count)

        board.add(f"layer {index}", lambda c: stays(kept(c), c.offload))
        board.add(f"layer {index} moment", moment)
        if self.dims.offload.hi >= ACTIVATIONS:
            host = f"layer {index} on the host"
            board.add(host, lambda c: sent(kept(c), c.offload))
        if any(is_grouped(code) for code in board.codes):
            board.add(
                f"whole layer {index}",
                lambda c: stays(layer_entries(at(c), kind, NOTHING), c.offload),
            )

    def _context_at(self, choice: Choice) -> Context:
        return self.contexts[choice.precision]

    @cached_property
    def contexts(self) -> Mapping[int, Context]:
        """What ledgers need, by precision."""
        codes = {choice.precision for choice in Board(self.dims).choices}
        return {c: replace(self.context, precision=PRECISIONS[c]) for c in codes}

    def saved(self, component: str) -> Expr:
        """Return the bytes of one component of ``board``."""
        return self.board.expression(self.board.tallies[component])

    def layer_parameters(self, kind: int) -> Expr:
        """Return a rank's parameters in one layer of a kind, dense and experts'."""
        found = self.state.layer(self.architecture.kinds[kind])
        return total(self.state.counts(found))

    def rank_parameters(self, stage: Stage) -> Expr:
        """Return a rank's parameters, dense and experts'."""
        return total(self.state.counts(self.state.numbers(stage)))

    def _tally(self, moment: Moment) -> Tally:
        if moment not in self._tallies:
            tallies = self.board.tallies
            tally = self.board.zero()
            for name, count in moment.kept:
                tally += tallies[name] * count
            if moment.transient:
                tally += tallies[moment.transient]
            correct(self.board, moment, tally)
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
        state = (self.state.peak(stage), self.dummies(stage), self.copies(stage))
        return total((maximum(*held), *state, fixed))

    @property
    def kind_count(self) -> int:
        """How many kinds of layer the model has."""
        return len(self.architecture.kinds)

    def host(self, stage: Stage, in_flight: InFlight) -> Expr:
        """Return the bytes that one pipeline rank keeps on its host.

        Parameters
        ----------
        stage, in_flight
            As for ``rank_peak``.
        """
        return host_bytes(self, stage, in_flight)

    def dummies(self, stage: Stage) -> Expr:
        """Return bytes of dummy weight gradients of a rank's layers."""
        kernels = self.context.kernels
        if not (kernels.is_te and kernels.gradient_fusion):
            return total(())
        kinds, predicts = frozenset(self._kinds(stage)), any(c.mtp for c in stage)
        if (kinds, predicts) not in self._cached:
            layers = [self.architecture.kinds[k] for k in sorted(kinds)]
            found = self.state.dummies(layers, predicts=predicts)
            self._cached[kinds, predicts] = found
        return self._cached[kinds, predicts]

    def copies(self, stage: Stage) -> Expr:
        """Return bytes of a rank's weights in eight or four bits, beside its own."""
        if self.dims.precision.hi <= PRECISIONS.index("fp16"):
            return total(())
        if not self.context.kernels.is_te:
            return total(())
        layers, predicted = self._layer_copies
        found = [
            count * size
            for chunk in stage
            for count, size in zip(chunk.layers, layers, strict=True)
            if count
        ]
        return total((*found, *(chunk.mtp * predicted for chunk in stage)))

    @cached_property
    def _layer_copies(self) -> tuple[tuple[Expr, ...], Expr]:
        arch, dims = self.architecture, self.dims
        turned = self.context.kernels.transposed_copies
        layers = tuple(
            weight_copies(layer_tensors(arch, kind), dims, transposed=turned)
            for kind in arch.kinds
        )
        tensors = mtp_tensors(arch) if arch.mtp_layers else ()
        predicted = weight_copies(tensors, dims, transposed=turned, skip="nvfp4")
        return layers, predicted

    def _kinds(self, stage: Stage) -> list[int]:
        """Return the kinds of layer that a rank holds."""
        present = {i for chunk in stage for i, n in enumerate(chunk.layers) if n}
        if any(chunk.mtp for chunk in stage):
            present.add(self.architecture.kind_of_layer[-1])
        return sorted(present)

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
        worst = max(
            self._moments(stage, in_flight),
            key=lambda m: value(self.board.expression(self._tally(m)), point),
        )
        choice = self.board.choice_at(point)
        items = [*fixed_items(self, stage), *moment_items(self, worst, choice)]
        valued = ((item, value(item.bytes, point)) for item in items)
        return tuple((item, size) for item, size in valued if size)

    def _moments(self, stage: Stage, in_flight: InFlight) -> list[Moment]:
        return moments(stage, in_flight, self._kinds(stage))
