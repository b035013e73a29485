"""Left-out errors of the shipped profiles: ``shardproof bench profiles``.

Without options it prints what the fits wrote down when the profiles were made, so that
no raw data are needed; ``--data PATH`` reads raw tables and fits them again, leaving
out the same rows. ``--gate`` exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.errors import InputError
from ..models.profiles import layer_names, load_layer, load_profile
from ..models.profiles.layer import KINDS
from ..models.profiles.layer_file import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..calibration.ingest import Imported
    from ..models.profiles import Layer

#: Bars by beginning of a kernel's name and size class: median and 90th percentile, %.
BARS: dict[tuple[str, str], tuple[float, float]] = {
    ("gemm.", "from 1 GFLOP"): (4.0, 12.0),
    ("attention.", "all"): (6.0, np.inf),
    ("grouped.", "all"): (10.0, np.inf),
    ("collective.", "from 1 MiB"): (8.0, np.inf),
    ("collective.", "below 1 MiB"): (20.0, np.inf),
    ("train.gemm.dgrad", "from 1 GFLOP"): (8.0, np.inf),
    ("train.gemm.wgrad", "from 1 GFLOP"): (8.0, np.inf),
    ("train.attention.backward", "all"): (8.0, np.inf),
    ("train.grouped.dgrad", "all"): (8.0, np.inf),
    ("train.grouped.wgrad", "all"): (8.0, np.inf),
}
#: A profile's most bytes, the seconds of a million look-ups, and of bands: least and
#: most coverage in %, and the half-width over the median error.
SIZE, LOOKUP, COVERAGE, WIDTH = 200_000, 1.0, (87.0, 93.0), 2.5

Row = dict[str, Any]


def main(words: Sequence[str] = ()) -> int:
    """Print the figures beside their bars and return the exit code."""
    parser = argparse.ArgumentParser(prog="shardproof bench profiles")
    parser.add_argument("--data", nargs="+", metavar="PATH", help="raw tables to fit")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--gate", action="store_true", help="exit 1 on a missed bar")
    asked = parser.parse_args(words)
    layers = _fitted(asked.data) if asked.data else _shipped()
    rows = [row for layer in layers for row in rows_of(layer)]
    whole = {
        "rows": rows,
        "bands": [band for layer in layers for band in bands_of(layer)],
        "bytes": {f"{part.kind}/{part.name}": size_of(part) for part in layers},
        "lookup_seconds": None if asked.data else lookup_seconds(),
    }
    if asked.json:
        print(json.dumps(whole, indent=1))
    else:
        _print(whole)
    missed = any(not row["met"] for row in rows)
    return int(asked.gate and missed)


def _shipped() -> list[Layer]:
    every = [load_layer(kind, name) for kind in KINDS for name in layer_names(kind)]
    return [layer for layer in every if layer.tables]


def _fitted(paths: Sequence[str]) -> list[Layer]:
    from ..calibration.fit.ship import fit_layers

    return fit_layers(part for path in paths for part in _read(path))


def _read(path: str) -> list[Imported]:
    from ..calibration.ingest import read

    try:
        return read(path)
    except (RecursionError, zlib.error) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"cannot read {path}: {reason}") from None


def rows_of(layer: Layer) -> Iterator[Row]:
    """Yield one row for each kernel, source, way of leaving out and size class."""
    for kernel, errors in layer.left_out.items():
        sources = {errors.get("source", ""): errors, **errors.get("others", {})}
        for source, found in sources.items():
            for way in ("random", "region"):
                for size, value in found.get(way, {}).items():
                    median, p90 = _bar(kernel, size)
                    met = value["median"] <= median and value["p90"] <= p90
                    yield {
                        "layer": f"{layer.kind}/{layer.name}",
                        "kernel": kernel,
                        "source": source,
                        "shipped": found is errors,
                        "left_out": way,
                        "size": size,
                        **value,
                        "bar_median": None if median == np.inf else median,
                        "bar_p90": None if p90 == np.inf else p90,
                        "met": bool(met),
                    }


def _bar(kernel: str, size: str) -> tuple[float, float]:
    for (start, known), bar in BARS.items():
        if kernel.startswith(start) and size == known:
            return bar
    return np.inf, np.inf


def bands_of(layer: Layer) -> Iterator[Row]:
    """Yield coverage and width of each kernel's band."""
    for kernel, errors in layer.left_out.items():
        if band := errors.get("band"):
            low, high = COVERAGE
            yield {
                "layer": f"{layer.kind}/{layer.name}",
                "kernel": kernel,
                **band,
                "met": low <= band["coverage"] <= high and band["width"] <= WIDTH,
            }


def size_of(layer: Layer) -> int:
    """Return the bytes of a layer's file."""
    return len(text_of(layer).encode())


def lookup_seconds() -> float:
    """Return the CPU seconds of a million shapes of matrix products on H100."""
    kernel = load_profile("h100").kernels["gemm.bf16"]
    m, n, k = 2.0 ** np.random.default_rng(0).uniform(5, 15, (3, 10**6))
    start = time.process_time()
    kernel.seconds(m=m, n=n, k=k)
    return round(time.process_time() - start, 3)


def _print(whole: dict[str, Any]) -> None:
    print("errors on rows left out, in %: median and 90th percentile, * misses its bar")
    for row in whole["rows"]:
        bar = "" if row["bar_median"] is None else f"<= {row['bar_median']:g}"
        if row["bar_p90"] is not None:
            bar += f" / {row['bar_p90']:g}"
        mark = " " if row["met"] else "*"
        source = row["source"] if row["shipped"] else f"{row['source']} (not taken)"
        print(
            f"{mark} {row['layer']:<15} {row['kernel']:<28} {row['left_out']:<7}"
            f" {row['size']:<13} {row['rows']:>6}"
            f" {row['median']:>6.2f} {row['p90']:>6.2f}"
            f"  {bar:<11} {source}"
        )
    _print_pooled(whole["rows"])
    print("\nbands of 90 %: coverage in %, half-width over the median error")
    for band in whole["bands"]:
        mark = " " if band["met"] else "*"
        print(
            f"{mark} {band['layer']:<15} {band['kernel']:<28} {band['coverage']:>5.1f}"
            f" {band['width']:>5.2f}"
        )
    print(f"\nbytes, at most {SIZE:,}:")
    for name, size in whole["bytes"].items():
        print(f"{' ' if size <= SIZE else '*'} {name:<15} {size:>8,}")
    if whole["lookup_seconds"] is not None:
        print(f"\n1e6 look-ups: {whole['lookup_seconds']} s, at most {LOOKUP} s")


def _print_pooled(rows: list[Row]) -> None:
    """Print how many tables meet each bar, and the tables' mean and worst median."""
    print("\nby bar: tables that meet it, mean of their medians, the worst median")
    for way in ("random", "region"):
        for (start, size), _ in BARS.items():
            mine = [
                row
                for row in rows
                if row["kernel"].startswith(start)
                and row["size"] == size
                and row["left_out"] == way
                and row["shipped"]
            ]
            if mine:
                medians = [row["median"] for row in mine]
                met = sum(row["met"] for row in mine)
                print(
                    f"  {way:<7} {start:<25} {size:<13} {met} of {len(mine)}"
                    f"  {np.mean(medians):.2f}  {max(medians):.2f}"
                )
