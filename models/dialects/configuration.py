"""One configuration of a framework, read: axes, options and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .sizes import Sizes


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What rules are asked about.

    Attributes
    ----------
    point
        The codes of every axis; derived axes are rounded down.
    options
        The codes of the options that are given.
    sizes
        The numbers of the model and the run.
    """

    point: Mapping[str, int]
    options: Mapping[str, int]
    sizes: Sizes
