"""The options of every dialect, by name; names of two frameworks never meet."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from .accelerate import ACCELERATE_OPTIONS
from .deepspeed import DEEPSPEED_OPTIONS
from .megatron import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .option import Option

ALL_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {**OPTIONS, **DEEPSPEED_OPTIONS, **ACCELERATE_OPTIONS}
)
