"""Dialects: frameworks, their releases, and which rules each release has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...models.errors import InputError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .rule import Rule

#: Releases of each dialect that rules speak of, oldest first. ``fsdp2`` is
#: Megatron launched with ``--use-torch-fsdp2``; ``primus`` drives Megatron too and
#: is named by the month of its main branch; ``dualpipe`` is DeepSeek's library, taken
#: to run inside Megatron; ``0.2`` of torchtitan is 0.2.1 and 0.2.2.
DIALECTS = {
    "megatron": ("0.14", "0.15", "0.16"),
    "fsdp2": ("0.14", "0.15", "0.16"),
    "primus": ("2026.08",),
    "dualpipe": ("1.0",),
    "torchtitan": ("0.2.0", "0.2", "0.3"),
    "deepspeed": ("0.19",),
    "accelerate": ("1.15",),
}
#: Dialects that stand on another one: all its rules hold, those of the same id
#: replaced.
BASES = {"fsdp2": "megatron", "primus": "megatron", "dualpipe": "megatron"}
#: Options that a dialect sets by its very name.
PRESETS: Mapping[str, Mapping[str, int]] = {"fsdp2": {"use_torch_fsdp2": 1}}


def parse_dialect(text: str) -> tuple[str, str]:
    """Split ``name@release``; a bare name means the newest release known.

    Raises
    ------
    InputError
        If the dialect or the release is unknown.
    """
    name, at, release = text.partition("@")
    if name not in DIALECTS:
        raise unknown_name("dialect", name, DIALECTS)
    if not at:
        return name, DIALECTS[name][-1]
    if release not in DIALECTS[name]:
        known = ", ".join(f"{name}@{r}" for r in DIALECTS[name])
        raise InputError(
            f"a dialect names a release whose rules are known ({known}), got "
            f"{text[:60]!r}"
        )
    return name, release


def rules_of(name: str, release: str, every: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules of one release, those of its base included."""
    releases = DIALECTS[name]
    at = releases.index(release)

    def holds(rule: Rule) -> bool:
        if rule.dialect != name:
            return False
        begun = not rule.since or releases.index(rule.since) <= at
        ended = bool(rule.until) and releases.index(rule.until) < at
        return begun and not ended

    rules = tuple(every)
    own = tuple(rule for rule in rules if holds(rule))
    if name not in BASES:
        return own
    base = BASES[name]
    below = release if release in DIALECTS[base] else DIALECTS[base][-1]
    replaced = {rule.id for rule in own}
    kept = [r for r in rules_of(base, below, rules) if r.id not in replaced]
    return (*kept, *own)
