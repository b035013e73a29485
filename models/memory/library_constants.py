"""The calibrated constants of ``models/profiles/memory.json``, read when asked for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Sized:
    """A number of bytes with its source."""

    bytes: int
    source: str


@dataclass(frozen=True)
class Factor:
    """A factor with its source."""

    ratio: float
    source: str


@dataclass(frozen=True)
class Constants:
    """The profile's document."""

    document: Mapping[str, Any]

    def cublas(self, name: str) -> Sized:
        """Return one cuBLAS workspace of PyTorch, by generation or choice."""
        return self._size("cublas_workspace_bytes", name)

    def engine(self, generation: str) -> Sized:
        """Return one workspace of TransformerEngine, by generation."""
        return self._size("engine_workspace_bytes", generation)

    def size(self, name: str) -> Sized:
        """Return a constant that stands alone."""
        entry = self.document[name]
        return Sized(int(entry["bytes"]), str(entry["source"]))

    def number(self, name: str) -> float:
        """Return a number that stands alone."""
        return float(self.document[name]["value"])

    def ratio(self, name: str) -> Factor:
        """Return a factor that stands alone."""
        entry = self.document[name]
        return Factor(float(entry["value"]), str(entry["source"]))

    def band(self, name: str) -> tuple[tuple[float, float], ...]:
        """Return the band of a kind of run; of Megatron's dense ones if unknown."""
        bands = self.document["bands"]
        found = bands.get(name, bands["megatron-dense"])
        return tuple((float(p), float(r)) for p, r in found["ratios"])

    def _size(self, table: str, name: str) -> Sized:
        entry = self.document[table]
        found = entry["bytes"]
        return Sized(int(found.get(name, found["other"])), str(entry["source"]))


@lru_cache(maxsize=1)
def constants() -> Constants:
    """Read the shipped profile once."""
    path = files("shardproof.models.profiles").joinpath("memory.json")
    return Constants(json.loads(path.read_text("utf-8")))
