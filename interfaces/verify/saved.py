"""A saved answer: its digest, its problem, its space, its layouts, as plain values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ...models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from ...models.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Document = dict[str, Any]
#: A layout as a file has it: sizes, words, and a truth value for ``sp``.
Labels = dict[str, Any]

AXES = (
    "tp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "etp",
    "mbs",
    "sp",
    "schedule",
    "split",
    "recompute",
    "sharding",
)
SCHEMAS = (
    "shardproof/answer@1",
    "shardproof/infeasible@1",
    "shardproof/feasible-set@1",
)
_PARTS = {c.__name__: c for c in (Attention, LatentAttention, DenseFFN, MoE)}
_MAX_BYTES = 2**28


class NotCoveredError(Exception):
    """Something that this page of checks does not speak of."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """The part of a file that its claims are about.

    Attributes
    ----------
    document
        All of it.
    architecture, training
        The model; sequence length, batch, precision, optimizer, loss and dropout.
    world, domain, hbm_bytes
        Devices, those of a scale-up domain, and what a process can use of one.
    axes
        For each axis the values of the space, as layouts write them.
    pins
        For some axes the values that are allowed, as a user writes them.
    advice
        Advice rules that the space enforces.
    """

    document: Document
    architecture: Architecture
    training: Training
    world: int
    domain: int
    hbm_bytes: int
    axes: Mapping[str, tuple[Any, ...]]
    pins: Mapping[str, tuple[str, ...]]
    advice: tuple[str, ...]

    def pinned(self, name: str) -> tuple[Any, ...]:
        """Return the values of an axis that its pin, if there is one, leaves."""
        shown = self.pins.get(name)
        values = self.axes[name]
        return tuple(v for v in values if shown is None or written(v) in shown)

    def space_hash(self) -> str:
        """Return the SHA-256 of the space's content."""
        content = self.document["space_content"]
        plain = {"axes": content["axes"], "advice": sorted(content["advice"])}
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the model is trained: tokens, sequences, formats and kernels by name."""

    seq_len: int
    global_batch: int
    precision: str
    optimizer: str
    cross_entropy: str
    dropout: bool


#: The words of named axes in the order of their codes.
WORDS = {
    "schedule": (
        "1f1b",
        "interleaved",
        "gpipe",
        "zb-h1",
        "zb-h2",
        "zbv",
        "v-half",
        "v-min",
        "dualpipe",
        "dualpipev",
    ),
    "split": ("even", "balanced", "first-last"),
    "sharding": ("none", "zero-1", "zero-2", "zero-3"),
}
LOSSES = ("unfused", "native-fused", "te-fused")
MODULES = (
    "core_attn",
    "layernorm",
    "mla_up_proj",
    "mlp",
    "moe",
    "moe_act",
    "shared_experts",
)
FULL = 1 << len(MODULES)


def label(name: str, code: int) -> Any:
    """Return a value of an axis as layouts write it.

    Raises
    ------
    NotCoveredError
        If the value came with a later page of sentences.
    """
    if name == "sp":
        return bool(code)
    if name == "recompute" and code <= FULL:
        modules = [m for i, m in enumerate(MODULES) if code >> i & 1]
        return "full" if code == FULL else "+".join(modules) or "none"
    if name == "recompute" or (name in WORDS and code >= len(WORDS[name])):
        raise NotCoveredError(f"value {code} of {name}")
    return WORDS[name][code] if name in WORDS else code


def code(name: str, value: Any) -> int:
    """Return the code of a value that a layout writes."""
    if name == "recompute":
        chosen = [] if value == "none" else value.split("+")
        return FULL if value == "full" else sum(1 << MODULES.index(m) for m in chosen)
    return WORDS[name].index(value) if name in WORDS else int(value)


def written(value: Any) -> str:
    """Return a value as a user writes it."""
    return ("off", "on")[value] if isinstance(value, bool) else str(value)


def read(path: Path) -> Document:
    """Read a file.

    Raises
    ------
    InputError
        If it cannot be read or is no answer of this program.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"an answer has at most {_MAX_BYTES:,} bytes, got {path}")
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        line = str(error).splitlines()[0][:120] if str(error) else "unreadable"
        raise InputError(f"{path} is no JSON document: {line}") from None
    if not isinstance(document, dict) or document.get("schema") not in SCHEMAS:
        raise InputError(
            f"{path} must be what plan, project or enumerate print with --json, whose "
            f"schema is one of {', '.join(SCHEMAS)}"
        )
    return document


def parse(document: Document) -> Saved:
    """Take the problem and the space out of a document.

    Raises
    ------
    InputError
        If something is missing or not of its kind.
    NotCoveredError
        If it is about something that is not checked here.
    """
    if "space_content" not in document or "digest" not in document:
        raise InputError(
            "the file does not hold its space: save the answer again, with --json"
        )
    try:
        return _parse(document)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError(
            f"the file does not hold what its schema says: {error!r}"
        ) from (None)


def _parse(document: Document) -> Saved:
    problem, content = document["problem"], document["space_content"]
    cluster = problem["cluster"]
    world = _whole(cluster["nodes"]) * _whole(cluster["gpus_per_node"])
    architecture = _architecture(problem["architecture"])
    training = Training(**{f.name: problem[f.name] for f in fields(Training)})
    if training.cross_entropy not in LOSSES:
        raise NotCoveredError(f"the loss kernel {training.cross_entropy}")
    for size in (training.seq_len, training.global_batch):
        _whole(size)
    blocks = [kind.feed_forward for kind in architecture.kinds]
    experts = [block.experts for block in blocks if isinstance(block, MoE)]
    sizes = {"world": world, "experts": max(experts, default=1)}
    listed = {n: _values(v, sizes) for n, v in content["axes"].items()}
    if extra := set(listed) - set(AXES):
        raise NotCoveredError(f"the axes {', '.join(sorted(extra))}")
    if missing := set(AXES) - set(listed):
        raise ValueError(f"no values of {', '.join(sorted(missing))}")
    pins = {n: tuple(shown) for n, shown in problem["pins"].items()}
    return Saved(
        document=document,
        architecture=architecture,
        training=training,
        world=world,
        domain=min(_whole(cluster["fabric"]["scale_up_size"]), world),
        hbm_bytes=_whole(cluster["device"]["hbm_bytes"]),
        axes={n: tuple(label(n, code) for code in listed[n]) for n in AXES},
        pins=pins,
        advice=tuple(content["advice"]),
    )


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"a size of {value!r}")
    return value


def _architecture(content: Document) -> Architecture:
    kinds = [
        Layer(
            norms=kind["norms"],
            attention=_part(kind["attention"]),
            feed_forward=_part(kind["feed_forward"]),
        )
        for kind in content["kinds"]
    ]
    names = {f.name for f in fields(Architecture)} - {"layers"}
    scalars = {n: v for n, v in content.items() if n in names}
    if not all(i in range(len(kinds)) for i in content["layers"]):
        raise ValueError("a layer of no kind")
    return Architecture(**scalars, layers=tuple(kinds[i] for i in content["layers"]))


def _part(content: Document) -> Any:
    rest = {n: v for n, v in content.items() if n != "type"}
    return _PARTS[content["type"]](**rest)


def _values(given: Any, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Write out divisors; the order of a list is kept."""
    if isinstance(given, list):
        return tuple(given)
    if set(given) != {"divisors", "limit"}:
        raise NotCoveredError(f"an axis of {', '.join(sorted(given))}")
    size = sizes[given["divisors"]]
    most = min(size, _whole(given["limit"]))
    return tuple(d for d in range(1, most + 1) if size % d == 0)
