"""Tensor bytes of megatron-core cases: ``python -m shardproof.benchmarks.memory``.

Reads cases in the schema of the golden files (one dictionary of Megatron's settings
each) and returns what one micro-batch keeps and how many parameters a rank holds.
Result fields such as ``saved_bytes`` may be absent from the input; they are not read.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..models.errors import InputError
from ..models.expr import value
from ..models.layout import RECOMPUTE_FULL
from ..models.memory import MemoryModel
from ..models.memory.entries import SIZES
from ..models.problem import Training
from ..models.stages import Chunk
from .memory_cases import (
    architecture_of,
    cross_entropy_of,
    dims_of,
    kernels_of,
    recompute_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..models.memory.entries import Entry
    from .memory_cases import Case


class Part(NamedTuple):
    """A ledger of the model, how often it counts, at which recompute choice."""

    component: str
    times: int
    code: int


@dataclass(frozen=True)
class Measured:
    """A case in the product's terms: the model, and what its rank holds.

    ``kinds`` gives the kind of every layer on the rank; ``recomputed`` the choice,
    and for how many of the first layers it is made (full recompute by blocks, if
    ``block``).
    """

    model: MemoryModel
    chunk: Chunk
    kinds: tuple[int, ...]
    recomputed: int
    first: int
    group: int
    block: bool

    def parts(self) -> list[Part]:
        """List the ledgers that one micro-batch of the rank adds up."""
        code, found = self.recomputed, []
        for kind in sorted(set(self.kinds)):
            again = sum(
                k == kind and index % self.group == 0
                for index, k in enumerate(self.kinds[: self.first])
            )
            found.append(Part(f"layer {kind}", again, code))
            kept = self.kinds[self.first :].count(kind)
            found.append(Part(f"layer {kind}", kept, 0))
        codes = {code} if self.first >= len(self.kinds) else {code, 0}
        found += [Part("model", 1, each) for each in sorted(codes)]
        if self.chunk.embedding:
            found.append(Part("embedding", 1, code))
        if self.chunk.head:
            losses = 1 + self.chunk.mtp
            found += [Part("final norm", 1, code), Part("loss", losses, code)]
            # Recomputing blocks leaves predicted tokens alone.
            again = 0 if self.block else code
            found.append(Part("mtp", self.chunk.mtp, again))
        return [part for part in found if part.times]

    def saved(self) -> int:
        """Bytes that autograd keeps after one forward pass of the rank."""
        return sum(
            part.times
            * value(self.model.saved(part.component), {"recompute": part.code})
            for part in self.parts()
        )

    def _bytes(self, part: Part) -> int:
        saved = self.model.saved(part.component)
        return value(saved, {"recompute": part.code})

    def parameters(self) -> int:
        """Parameters of the rank."""
        return value(self.model.rank_parameters((self.chunk,)), {})

    def weight_copies(self) -> int:
        """Bytes of weights in eight or four bits that the rank holds."""
        return value(self.model.copies((self.chunk,)), {})

    def entries(self) -> list[tuple[str, Entry, int]]:
        """Component, entry and number of its occurrences on the rank."""
        return [
            (part.component, entry, part.times)
            for part in self.parts()
            for entry in self.model.board.entries(part.component, part.code)
        ]


def read(case: Case) -> Measured:
    """Translate a case into the product's terms."""
    arch = architecture_of(case)
    training = Training(
        seq_len=case["s"],
        global_batch=case["b"],
        cross_entropy=cross_entropy_of(case),
        dropout=bool(case.get("dropout", 0.0)),
    )
    pp = case.get("pp") or 1
    inner = (case.get("world") or 0) // pp or _inner(case)
    rank, layers = case.get("rank", 0) // inner, len(arch.layers) // pp
    held = arch.kind_of_layer[rank * layers : (rank + 1) * layers]
    chunk = Chunk(
        layers=tuple(held.count(k) for k in range(len(arch.kinds))),
        mtp=arch.mtp_layers if case.get("post", True) else 0,
        embedding=case.get("pre", True),
        head=case.get("post", True),
    )
    code, number = recompute_of(case), case.get("rc_layers", 1)
    block = code == RECOMPUTE_FULL and case.get("rc_method") == "block"
    return Measured(
        model=MemoryModel(arch, training, dims_of(case), kernels_of(case)),
        chunk=chunk,
        kinds=held,
        recomputed=code,
        first=number if block else layers,
        block=block,
        group=1 if block or code != RECOMPUTE_FULL else number,
    )


def _inner(case: Case) -> int:
    """Ranks of one pipeline stage where the number of all is not given."""
    sizes = ((case.get(name) or 1) for name in ("tp", "cp", "ep"))
    return prod(sizes)


def _items(measured: Measured) -> list[dict[str, Any]]:
    """List the tensors, each with its name, like the goldens' ``items``."""
    found = []
    for component, entry, times in measured.entries():
        size = value(entry.unit.times(entry.numbers), {}) * SIZES[entry.dtype]
        if size:
            found.append(
                {
                    "name": f"{component}: {entry.name}",
                    "n": entry.count * times,
                    "dtype": entry.dtype,
                    "shape": entry.shape,
                    "nbytes": size,
                }
            )
    return found


def evaluate(case: Case) -> dict[str, Any]:
    """Return saved bytes and parameters of one case.

    Returns
    -------
    dict
        ``per_layer_saved``: bytes one more layer adds; ``saved_bytes``: bytes of the
        whole rank; ``per_layer_params`` and ``params``: parameters;
        ``per_layer_weight_copies`` and ``weight_copy_bytes``: bytes of weights in
        eight or four bits beside the parameters; ``items``: the tensors by name.
    """
    measured = read(case)
    longer = read({**case, "layers": 2 * case["layers"]})
    saved, numbers = measured.saved(), measured.parameters()
    copies = measured.weight_copies()
    stages = case.get("pp") or 1
    added = max(1, case["layers"] // stages)
    return {
        "per_layer_saved": (longer.saved() - saved) // added,
        "per_layer_params": (longer.parameters() - numbers) // added,
        "saved_bytes": saved,
        "params": numbers,
        "weight_copy_bytes": copies,
        "per_layer_weight_copies": (longer.weight_copies() - copies) // added,
        "items": _items(measured),
    }


#: Settings that every case states.
NEEDED = ("h", "a", "s", "b", "layers")
_WAY_OUT = "give a JSON list of {case: {h, a, s, b, layers, ...}}, see docs/memory.md"


def load(path: Path) -> list[Mapping[str, Any]]:
    """Read a file of cases.

    Raises
    ------
    InputError
        If it cannot be read, or holds something else.
    """
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:160]
        raise InputError(f"cannot read {path} ({reason}); {_WAY_OUT}") from None
    if not isinstance(found, list):
        kind = type(found).__name__
        raise InputError(f"{path} must hold a list, got {kind}; {_WAY_OUT}")
    for index, entry in enumerate(found):
        case = entry.get("case", entry) if isinstance(entry, dict) else None
        absent = [n for n in NEEDED if not isinstance(case, dict) or n not in case]
        if absent:
            raise InputError(
                f"case {index} of {path} must state {', '.join(NEEDED)}, got none of "
                f"{', '.join(absent)}; {_WAY_OUT}"
            )
    return found


def _evaluated(index: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return evaluate(dict(entry.get("case", entry)))
    except (InputError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        reason = str(error) if isinstance(error, InputError) else repr(error)[:160]
        return {"error": f"case {index} has settings that make no model: {reason}"}


def run(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Evaluate cases in order; each has its settings under ``case``.

    One that makes no model has an ``error`` in place of figures.

    Raises
    ------
    InputError
        If no case makes a model.
    """
    found = [_evaluated(index, entry) for index, entry in enumerate(cases)]
    if found and all("error" in result for result in found):
        raise InputError(f"{found[0]['error']}; {_WAY_OUT}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the results of a file of cases."""
    parser = argparse.ArgumentParser(prog="shardproof bench memory")
    parser.add_argument("--data", type=Path, required=True, help="JSON list of cases")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(argv)
    cases = load(chosen.data)
    results = run(cases)
    if chosen.json:
        print(json.dumps({"cases": results}))
        return 0
    for entry, result in zip(cases, results, strict=True):
        name = entry.get("name", "case")
        if "error" in result:
            print(f"{name}: {result['error']}")
            continue
        off = result["saved_bytes"] - entry.get("saved_bytes", result["saved_bytes"])
        print(f"{name}: {result['saved_bytes']:,} bytes kept, {off:+,} off")
    return 0


if __name__ == "__main__":
    sys.exit(main())
