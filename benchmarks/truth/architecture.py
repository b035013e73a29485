"""The architecture of a row, from its columns and notes or from the catalogue."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ...models import catalogue
from ...models.architecture import (
    Architecture,
    Attention,
    DenseFFN,
    LatentAttention,
    Layer,
    MoE,
)
from ...models.errors import InputError
from .rules import Unstated

if TYPE_CHECKING:
    from .row import Row

_VOCAB = 51200
_MOST_LAYERS = 4096
#: Shared experts are counted up to this many, a greater figure is their width.
_MOST_SHARED = 16
_UNGATED = ("gpt", "mpt", "bert", "megatron", "turing", "bloom", "opt")


@dataclass(frozen=True)
class Notes:
    """What a row's text says about its architecture, structured or not."""

    text: str
    data: dict[str, Any]

    def first(self, pattern: str) -> int | None:
        """Return the whole number that a pattern captures."""
        found = re.search(pattern, self.text)
        return int(found[1]) if found else None

    def whole(self, name: str) -> int | None:
        """Return a structured figure."""
        found = self.data.get(name)
        return int(found) if isinstance(found, int | float) else None


def notes_of(row: Row) -> Notes:
    """Read the notes of a row."""
    text = row.text("arch_notes")
    try:
        data = json.loads(text) if text.startswith("{") else {}
    except json.JSONDecodeError:
        data = {}
    return Notes(row.words("arch_notes", "notes", "extras"), data)


def architecture_of(row: Row) -> tuple[Architecture, tuple[str, ...]]:
    """Return the architecture of a row, and the rules used.

    Raises
    ------
    Unstated
        If it is neither stated nor in the catalogue.
    """
    sizes = [row.whole(name) for name in ("layers", "hidden", "heads")]
    if None in sizes or (row.whole("layers") or 0) > _MOST_LAYERS:
        known = _in_catalogue(row.text("model"))
        if known is None:
            raise Unstated("no-architecture")
        return known, ("catalogue",)
    try:
        return _stated(row)
    except InputError as error:
        raise Unstated("no-architecture") from error


@cache
def _in_catalogue(name: str) -> Architecture | None:
    """Find a model by its letters and digits alone."""
    wanted = re.sub(r"[^a-z0-9]", "", name.lower())
    for known in catalogue.names("models"):
        plain = re.sub(r"[^a-z0-9]", "", known)
        if wanted in (plain, plain.replace("31", "3", 1)):
            return catalogue.architecture(known)
    return None


def _stated(row: Row) -> tuple[Architecture, tuple[str, ...]]:
    notes = notes_of(row)
    rules: list[str] = []
    layers, hidden = row.whole("layers"), row.whole("hidden")
    assert layers is not None
    assert hidden is not None
    name = row.words("model")
    plain = name.startswith(_UNGATED) and "oss" not in name
    gated = row.flag("gated_mlp")
    if gated is None:
        gated, rules = not plain, [*rules, "gated"]
    vocab = row.whole("vocab")
    if vocab is None:
        vocab, rules = _VOCAB, [*rules, "vocab"]
    attention, used = _attention(row, notes, hidden, biased=plain and not gated)
    rules += used
    dense = DenseFFN(ffn=row.whole("ffn") or 4 * hidden, gated=gated, bias=plain)
    if row.whole("experts"):
        layers_ = _mixture_layers(row, notes, layers, attention, dense, gated)
    else:
        layers_ = (Layer(attention=attention, feed_forward=dense),) * layers
    learned = "learned" in notes.text
    return Architecture(
        name=re.sub(r"[^a-z0-9.]+", "-", name).strip("-") or "row",
        hidden=hidden,
        vocab=vocab,
        layers=layers_,
        mtp_layers=_mtp(row, notes),
        norm="layer" if plain else "rms",
        norm_bias=plain,
        position="learned" if learned else "rope",
        max_positions=row.whole("seq_len") or 2048 if learned else 0,
        tied=bool(row.flag("tied_emb")),
        source="the row's own figures",
    ), tuple(rules)


def _mtp(row: Row, notes: Notes) -> int:
    stated = notes.whole("mtp_layers")
    if stated is not None:
        jax = "maxtext" in row.words("framework")
        return 0 if jax else stated
    # Megatron-Bridge trains DeepSeek-V3 with its prediction layer unless it says so.
    bridge = "bridge" in row.words("framework") and "deepseekv3" in re.sub(
        r"[^a-z0-9]", "", row.words("model")
    )
    return int(bridge and "w/o mtp" not in notes.text)


def _attention(
    row: Row, notes: Notes, hidden: int, *, biased: bool
) -> tuple[Attention | LatentAttention, list[str]]:
    heads = row.whole("heads") or 1
    latent = _latent(notes, heads)
    if latent is not None:
        return latent, []
    stated = notes.whole("head_dim") or notes.first(r"head_dim (\d+)")
    kv_heads = row.whole("kv_heads") or heads
    if heads % kv_heads:
        kv_heads = heads
    found = Attention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=stated or max(1, hidden // heads),
        qkv_bias=biased,
        out_bias=biased,
        sinks="gpt oss" in row.words("model") or "gpt-oss" in row.words("model"),
    )
    return found, [] if stated else ["head-dim"]


def _latent(notes: Notes, heads: int) -> LatentAttention | None:
    """Read latent attention from structured notes or from 'MLA q_lora1536 ...'."""
    mla = notes.data.get("mla")
    if isinstance(mla, dict) and "kv_lora_rank" in mla:
        return LatentAttention(
            heads=heads,
            q_rank=mla.get("q_lora_rank"),
            kv_rank=int(mla["kv_lora_rank"]),
            nope_dim=int(mla.get("qk_nope_head_dim", 128)),
            rope_dim=int(mla.get("qk_rope_head_dim", 64)),
            v_dim=int(mla.get("v_head_dim", 128)),
        )
    if not re.search(r"\bmla\b", notes.text):
        return None
    return LatentAttention(
        heads=heads,
        q_rank=notes.first(r"q_lora ?(\d+)") or 1536,
        kv_rank=notes.first(r"kv_lora ?(\d+)") or 512,
        nope_dim=notes.first(r"qk_nope ?(\d+)") or notes.first(r"qk(\d+)\+") or 128,
        rope_dim=notes.first(r"qk_rope ?(\d+)") or notes.first(r"qk\d+\+(\d+)") or 64,
        v_dim=notes.first(r"\bv ?(\d+)\b") or 128,
    )


def _mixture_layers(
    row: Row,
    notes: Notes,
    layers: int,
    attention: Attention | LatentAttention,
    dense: DenseFFN,
    gated: bool,
) -> tuple[Layer, ...]:
    experts, width = row.whole("experts"), row.whole("moe_ffn") or dense.ffn
    assert experts is not None
    shared = row.whole("shared_experts") or 0
    stated = notes.whole("shared_expert_ffn")
    if stated is None:
        stated = notes.first(r"shared expert intermediate (\d+)")
    if stated is None:
        stated = shared if shared > _MOST_SHARED else shared * width
    moe = MoE(
        experts=experts,
        topk=min(row.whole("topk") or 1, experts),
        ffn=width,
        gated=gated,
        shared_ffn=stated,
    )
    first = notes.whole("dense_layers_first")
    if first is None:
        first = notes.first(r"first (\d+) layers? dense") or 0
    window = notes.first(r"sliding window (\d+)")
    mixed = Layer(attention=attention, feed_forward=moe)
    near = mixed
    if window and isinstance(attention, Attention):
        near = replace(mixed, attention=replace(attention, window=window))
    plain = Layer(attention=attention, feed_forward=dense)
    found = [near if i % 2 == 0 else mixed for i in range(layers)]
    return (*(plain,) * min(first, layers), *found[min(first, layers) :])
