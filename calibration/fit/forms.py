"""The forms among which left-out rows choose, for each kind of kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...models.profiles.surfaces import attention, gemm, grouped, links
from .kernels import Form

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...models.profiles.surfaces.law import Law
    from ..rows import Rows


def _powers(least: int, most: int) -> tuple[float, ...]:
    return tuple(2.0**e for e in range(least, most + 1))


#: Rows come in pairs, a multiple of a tile and one more.
_PAIRED = (
    *(16.0 * i for i in range(1, 9)),
    *(32.0 * i for i in range(5, 9)),
    *(256.0 * i for i in range(2, 18)),
)
_ROWS = (
    *(float(i) for i in range(1, 16)),
    *(m + odd for m in _PAIRED for odd in (0.0, 1.0)),
    *(8192.0, 16384.0, 32768.0),
)
_SIDES = (
    *(32.0, 64.0, 128.0, 256.0, 512.0, 768.0, 1024.0, 1536.0, 2048.0, 2560.0),
    *(3072.0, 3584.0, 4096.0, 5120.0, 6144.0, 7168.0, 8192.0, 10240.0, 12288.0),
    *(16384.0, 51200.0, 65536.0),
)
_GEMM = Form(
    law=gemm.TILED,
    knots={"m": _ROWS, "n": _SIDES, "k": _SIDES},
    prices={"m": 0.1, "n": 0.1, "k": 3.0},
)
_GEMM_WAVES = replace(_GEMM, law=gemm.TILED_WAVES)
_ATTENTION = Form(
    law=attention.FLASH,
    knots={
        "seq": (
            *(16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 1536.0, 2048.0, 3072.0),
            *(4096.0, 6144.0, 8192.0, 10240.0, 12288.0, 16384.0, 32768.0),
        ),
        "batch": (1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0),
        "heads": (1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0),
        "group": (1.0, 4.0, 16.0, 96.0),
    },
    prices={"seq": 1.0, "batch": 0.3, "heads": 0.3, "group": 3.0},
)
_EACH = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1024.0)
_LOCAL = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
_INTER = (64.0, 128.0, 192.0, 256.0, 384.0, 512.0, 768.0, 1024.0, 2048.0, 4096.0)
_GROUPED = Form(
    law=grouped.MLP,
    knots={
        "each": _EACH,
        "local": _LOCAL,
        "inter": _INTER,
        "hidden": (2048.0, 3072.0, 4096.0, 5120.0, 6144.0, 7168.0),
    },
    prices={"each": 0.1, "local": 0.1, "inter": 0.1, "hidden": 0.1},
)
_GROUPED_TOKENS = Form(
    law=grouped.MLP_BY_TOKENS,
    knots={
        "each": _EACH,
        "local": _LOCAL,
        "inter": _INTER,
        "tokens": (1.0, 16.0, 64.0, 256.0, 1024.0, 4096.0),
    },
    prices={"each": 0.1, "local": 0.1, "inter": 0.1, "tokens": 0.1},
)
_COLLECTIVE = Form(
    law=links.COLLECTIVE,
    knots={"bytes": _powers(8, 31), "ranks": (2.0, 4.0, 8.0, 16.0)},
    prices={"bytes": 0.3, "ranks": 0.1},
)
_EXCHANGE = Form(
    law=links.EXCHANGE,
    knots={
        "tokens": _powers(0, 17),
        "hidden": (2048.0, 3072.0, 4096.0, 5120.0, 6144.0, 7168.0),
        "copies": (1.0, 2.0, 4.0, 5.0, 6.0, 8.0),
        "sms": (4.0, 8.0, 12.0, 16.0, 20.0, 24.0),
    },
    prices={"tokens": 0.3, "hidden": 0.1, "copies": 0.1, "sms": 0.1},
)
_EXCHANGE_BETWEEN = Form(
    law=links.EXCHANGE_BETWEEN,
    knots={
        "tokens": _powers(0, 17),
        "nodes": (1.0, 2.0, 4.0, 8.0),
        "sms": (4.0, 8.0, 12.0, 16.0, 20.0, 24.0),
    },
    prices={"tokens": 0.1, "nodes": 0.1, "sms": 0.1},
)


def _alone(law: Law) -> Form:
    return Form(law=law)


#: Forms by the beginning of a kernel's name, the longest that fits.
FORMS: dict[str, tuple[Form, ...]] = {
    "gemm.": (_alone(gemm.SMOOTH), _alone(gemm.TILED), _GEMM, _GEMM_WAVES),
    "attention.": (_alone(attention.FLASH), _ATTENTION),
    "grouped.": (_alone(grouped.MLP), _GROUPED, _GROUPED_TOKENS),
    "collective.": (_alone(links.COLLECTIVE), _COLLECTIVE),
    "exchange.": (_alone(links.EXCHANGE), _EXCHANGE),
    "exchange.dispatch.between": (_alone(links.EXCHANGE_BETWEEN), _EXCHANGE_BETWEEN),
    "exchange.combine.between": (_alone(links.EXCHANGE_BETWEEN), _EXCHANGE_BETWEEN),
    "train.gemm.": (_alone(gemm.SMOOTH), _alone(gemm.TILED)),
    "train.attention.": (_alone(attention.FLASH), _alone(attention.FLASH_WIDE)),
    "train.grouped.": (_alone(grouped.PRODUCT),),
}


def forms_of(kernel: str) -> tuple[Form, ...]:
    """Return the forms of a kernel, those of the longest known beginning."""
    known = [name for name in FORMS if kernel.startswith(name)]
    assert known, f"no form describes {kernel}"
    return FORMS[max(known, key=len)]


def size_groups(rows: Rows) -> dict[str, NDArray[np.bool_]]:
    """Return the rows of the size classes that a kernel is judged by.

    Matrix products from 1 GFLOP on and below, collectives from 1 MiB on and below.
    """
    if rows.kernel.startswith(("gemm.", "train.gemm.")):
        flops = 2 * rows.sizes["m"] * rows.sizes["n"] * rows.sizes["k"]
        return {"from 1 GFLOP": flops >= 1e9, "below 1 GFLOP": flops < 1e9}
    if rows.kernel.startswith("collective."):
        large = rows.sizes["bytes"] >= 2**20
        return {"from 1 MiB": large, "below 1 MiB": ~large}
    return {"all": np.ones(len(rows), dtype=bool)}
