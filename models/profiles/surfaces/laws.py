"""Every law by its name in the files of profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import attention, gemm, grouped, links

if TYPE_CHECKING:
    from .law import Law

LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        gemm.SMOOTH,
        gemm.TILED,
        gemm.TILED_WAVES,
        attention.FLASH_WIDE,
        attention.FLASH,
        grouped.MLP,
        grouped.MLP_BY_TOKENS,
        grouped.PRODUCT,
        links.COLLECTIVE,
        links.EXCHANGE,
        links.EXCHANGE_BETWEEN,
    )
}
