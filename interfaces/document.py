"""Answers as plain data: the JSON documents that ``interfaces/schema`` describes."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from ..models.layout import axis_label
from ..models.parameters import parameter_count
from .verdicts import CONFIDENCE, VERDICTS, verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..models.architecture import Architecture
    from ..models.cluster import Cluster
    from ..models.problem import Problem
    from ..solver.answer import Answer, Certificate, Choice, Infeasible
    from ..solver.space import Space, Values

ANSWER = "shardproof/answer@1"
INFEASIBLE = "shardproof/infeasible@1"
MEMORY = "shardproof/memory@1"
FEASIBLE_SET = "shardproof/feasible-set@1"
RULES = "shardproof/rules@1"
CATALOGUE = "shardproof/catalogue@1"
EXPLANATION = "shardproof/explanation@1"
WHY = "shardproof/why@1"

Document = dict[str, Any]


def answer(value: Answer | Infeasible, confidence: float = CONFIDENCE) -> Document:
    """Return what ``shardproof plan --json`` prints.

    The first answer has a verdict on its memory at ``confidence``.
    """
    from ..solver.answer import Infeasible

    if isinstance(value, Infeasible):
        return infeasible(value)
    return {
        "schema": ANSWER,
        "problem": problem(value.problem),
        "answers": [
            {**choice(c), "verdict": verdict_of(value.problem, c.layout, confidence)}
            if index < VERDICTS
            else choice(c)
            for index, c in enumerate(value.answers)
        ],
        "certificate": certificate(value.certificate),
    }


def infeasible(value: Infeasible) -> Document:
    """Return the proof that nothing is feasible; ``answers`` is empty."""
    return {
        "schema": INFEASIBLE,
        "problem": problem(value.problem),
        "answers": [],
        "infeasible": {
            "clashes": [asdict(c) for c in value.clashes],
            "conflicts": [list(c) for c in value.conflicts],
            "corrections": [
                {
                    "rules": list(c.rules),
                    "missing_bytes": c.missing_bytes,
                    "layout": c.witness.labels(),
                }
                for c in value.corrections
            ],
            "missing_bytes": value.missing_bytes,
            "nearest": value.nearest.labels() if value.nearest else None,
            "space": value.space,
            "dialect": value.problem.dialect,
            "legal_count": value.legal_count,
        },
    }


def with_space(document: Document, value: Space) -> Document:
    """Add the content of the space, of which ``space_hash`` is the SHA-256.

    With it and the digest that is added when the document is printed,
    ``shardproof verify`` can check the answer alone.
    """
    content = {
        "name": value.name,
        "version": value.version,
        "axes": {name: _values(axis) for name, axis in value.axes.items()},
        "advice": list(value.advice),
    }
    return {**document, "space_hash": value.content_hash, "space_content": content}


def _values(axis: Values) -> object:
    if isinstance(axis, tuple):
        return list(axis)
    return _AXIS_RULES[type(axis).__name__](axis)


#: How an axis that follows the problem is written, by its class.
_AXIS_RULES: dict[str, Callable[[Any], object]] = {
    "Divisors": lambda axis: {"divisors": axis.of, "limit": axis.limit},
    "Tolerance": lambda axis: {"tolerance": axis.percent},
}


def choice(value: Choice) -> Document:
    """Return one configuration with memory (bytes) and projection (seconds)."""
    found = value.projection
    return {
        "layout": value.layout.labels(),
        "memory": {
            "peak_bytes": value.memory.peak_bytes,
            "per_rank": list(value.memory.per_rank),
        },
        "projection": {
            "step_time_s": found.step_time_s,
            "tokens_per_s_per_gpu": found.tokens_per_s_per_gpu,
            "mfu": found.mfu,
            "bubble_fraction": found.bubble_fraction,
            "band": list(found.band),
            "breakdown": dict(found.breakdown),
        },
    }


def certificate(value: Certificate) -> Document:
    """Return what was proven, field by field."""
    return {f.name: getattr(value, f.name) for f in fields(value)}


def problem(value: Problem) -> Document:
    """Return the problem with every number that the answer depends on."""
    training = value.training
    content = {
        "model": value.architecture.name,
        "parameters": parameter_count(value.architecture),
        "seq_len": training.seq_len,
        "global_batch": training.global_batch,
        "precision": training.precision,
        "optimizer": training.optimizer,
        "cross_entropy": training.cross_entropy,
        "dropout": training.dropout,
        "dialect": value.dialect,
        "pins": {
            name: [axis_label(name, code) for code in codes]
            for name, codes in value.pins.items()
        },
        "cluster": cluster(value.cluster),
        "architecture": architecture(value.architecture),
    }
    return content | ({"stack": value.stack} if value.stack else {})


def architecture(value: Architecture) -> Document:
    """Return a model's shape: its kinds of layer, and the kind of each layer."""
    content = _scalars(value)
    content["kinds"] = [
        {
            "norms": kind.norms,
            "attention": _typed(kind.attention),
            "feed_forward": _typed(kind.feed_forward),
        }
        for kind in value.kinds
    ]
    content["layers"] = list(value.kind_of_layer)
    return content


def cluster(value: Cluster) -> Document:
    """Return counts, device and fabric, with the source of each figure."""
    return {
        "name": value.name,
        "nodes": value.nodes,
        "gpus_per_node": value.gpus_per_node,
        "devices": value.world_size,
        "device": plain(value.device),
        "fabric": plain(value.fabric),
    }


def plain(value: object) -> Document:
    """Return a dataclass's fields, mappings as plain dictionaries."""
    content = {}
    for field in fields(value):  # type: ignore[arg-type]
        held = getattr(value, field.name)
        content[field.name] = dict(held) if _is_mapping(held) else held
    return content


def _is_mapping(value: object) -> bool:
    return hasattr(value, "keys")


def _scalars(value: Architecture) -> Document:
    names = [f.name for f in fields(value) if f.name != "layers"]
    return {name: getattr(value, name) for name in names}


def _typed(part: object) -> Mapping[str, Any]:
    return {"type": type(part).__name__, **plain(part)}
