"""The errors a user can cause, each one clear sentence."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: the message gives the rule, the value got and the way out."""


def unknown_name(kind: str, got: str, known: Iterable[str]) -> InputError:
    """Say that a name is not known, with the nearest known ones.

    Parameters
    ----------
    kind
        What the name should have been, for example ``"device"``.
    got
        The name the user gave.
    known
        All names that would have been accepted.
    """
    names = sorted(known)
    near = get_close_matches(got.lower(), names, n=3, cutoff=0.5)
    shown = got if len(got) <= 80 else got[:77] + "..."
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {_some(names)}"
    return InputError(f"unknown {kind} {shown!r}; {hint}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
