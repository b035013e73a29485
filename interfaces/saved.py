"""Saved answers, read back into the values they were written from."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from ..models.cluster import Cluster, Device, Fabric
from ..models.errors import InputError
from ..models.layout import DERIVED, Layout, axis_code
from ..models.problem import Problem, Training
from ..solver.answer import Answer, Certificate, Choice, Memory, Projection
from .document import ANSWER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PARTS = {c.__name__: c for c in (Attention, LatentAttention, DenseFFN, MoE)}
_MOST_BYTES = 100_000_000


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A saved answer.

    Attributes
    ----------
    problem
        What was asked.
    layouts
        The configurations of the answer, as they were listed.
    document
        The whole document.
    """

    problem: Problem
    layouts: tuple[Layout, ...]
    document: Mapping[str, Any]


def read_json(path: Path, *schemas: str, way_out: str) -> dict[str, Any]:
    """Read a document of one of some schemas.

    Raises
    ------
    InputError
        If the file cannot be read or holds something else.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(
                f"a saved answer has at most {_MOST_BYTES:,} bytes, got {path}"
            )
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:160]
        raise InputError(f"cannot read {path} ({reason}); {way_out}") from None
    got = found.get("schema") if isinstance(found, dict) else None
    if got not in schemas:
        raise InputError(
            f"{path} must hold a document of {' or '.join(schemas)}, got "
            f"{str(got)[:60]!r}; {way_out}"
        )
    return dict(found)


def load_answer(path: Path) -> Saved:
    """Read what ``shardproof plan --json`` or ``project --json`` printed.

    Raises
    ------
    InputError
        If the file is no answer, or one that no configuration meets.
    """
    way_out = "write it with `shardproof plan ... --json`"
    document = read_json(path, ANSWER, way_out=way_out)
    try:
        problem = problem_of(document["problem"])
        layouts = tuple(layout_of(a["layout"]) for a in document["answers"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error!r}); {way_out}") from None
    return Saved(problem=problem, layouts=layouts, document=document)


def answer_of(saved: Saved) -> Answer:
    """Return a saved answer as the value it was written from."""
    choices = []
    for layout, one in zip(saved.layouts, saved.document["answers"], strict=True):
        found: dict[str, Any] = dict(one["projection"])
        found["band"] = tuple(found["band"])
        memory = one["memory"]
        names = {f.name for f in fields(Projection)}
        choices.append(
            Choice(
                layout=layout,
                memory=Memory(
                    peak_bytes=memory["peak_bytes"], per_rank=tuple(memory["per_rank"])
                ),
                projection=Projection(**{n: found[n] for n in names & found.keys()}),
            )
        )
    proof = saved.document["certificate"]
    known = {f.name: proof[f.name] for f in fields(Certificate) if f.name in proof}
    return Answer(
        problem=saved.problem,
        answers=tuple(choices),
        certificate=Certificate(**known),
    )


def problem_of(saved: Mapping[str, Any]) -> Problem:
    """Return the problem that a document states."""
    names = ("seq_len", "global_batch", "precision", "optimizer")
    training = Training(
        **{n: saved[n] for n in names},
        cross_entropy=saved["cross_entropy"],
        dropout=saved["dropout"],
    )
    return Problem(
        architecture=architecture_of(saved["architecture"]),
        cluster=cluster_of(saved["cluster"]),
        training=training,
        dialect=saved["dialect"],
        pins={
            name: tuple(axis_code(name, str(label)) for label in labels)
            for name, labels in saved["pins"].items()
        },
        stack=saved.get("stack", ""),
    )


def architecture_of(saved: Mapping[str, Any]) -> Architecture:
    """Return the model that a document states."""
    rest = dict(saved)
    kinds = [
        Layer(
            norms=kind["norms"],
            attention=_part(kind["attention"]),
            feed_forward=_part(kind["feed_forward"]),
        )
        for kind in rest.pop("kinds")
    ]
    layers = tuple(kinds[i] for i in rest.pop("layers"))
    return Architecture(layers=layers, **rest)


def _part(saved: Mapping[str, Any]) -> Any:
    rest = dict(saved)
    return _PARTS[rest.pop("type")](**rest)


def cluster_of(saved: Mapping[str, Any]) -> Cluster:
    """Return the cluster that a document states."""
    return Cluster(
        name=saved["name"],
        nodes=saved["nodes"],
        gpus_per_node=saved["gpus_per_node"],
        device=Device(**saved["device"]),
        fabric=Fabric(**saved["fabric"]),
    )


def layout_of(labels: Mapping[str, Any]) -> Layout:
    """Return the layout that a document states."""
    return Layout.from_point(
        {
            name: int(label) if name in DERIVED else axis_code(name, str(label))
            for name, label in labels.items()
        }
    )
