"""``shardproof profiles``: list, show, compare, check and merge profiles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...models.errors import InputError
from ...models.profiles import (
    layer_names,
    load_layer,
    load_profile,
    profile_names,
    read_layer,
)
from ...models.profiles.compare import check, differences, merge
from ...models.profiles.layer import KINDS
from ...models.profiles.layer_file import document_of, text_of
from ..files import write
from ..table import Column, Table, say, show
from .report import OK

if TYPE_CHECKING:
    from pathlib import Path

    from ...models.profiles import Layer, Profile

_USAGE = (
    "profiles takes nothing, NAME, diff A B, validate FILE..., or merge BELOW OVER "
    "--out FILE"
)


def run(words: tuple[str, ...], *, as_json: bool, out: Path | None) -> int:
    """Do what the words say, and return the exit code."""
    match words:
        case () | ("show",):
            _list(as_json=as_json)
        case ("diff", first, second):
            _diff(first, second, as_json=as_json)
        case ("validate", *paths) if paths:
            _validate(paths)
        case ("merge", below, over):
            _merge(below, over, out)
        case ("show", name) | (name,) if name not in ("diff", "validate", "merge"):
            _show(name, as_json=as_json)
        case _:
            raise InputError(f"{_USAGE}; got {' '.join(words)}")
    return OK


def _list(*, as_json: bool) -> None:
    rows = [(name, load_profile(name)) for name in profile_names()]
    if as_json:
        found = {
            name: {
                "layers": {kind: part.title for kind, part in profile.layers.items()},
                "calibrated": {
                    kind: part.calibrated for kind, part in profile.layers.items()
                },
                "band": profile.band,
            }
            for name, profile in rows
        }
        print(json.dumps({"profiles": found}, indent=1))
        return
    columns = (Column("profile", "left"), *(Column(kind, "left") for kind in KINDS))
    cells = tuple(
        (name, *(_titled(profile.layers[kind]) for kind in KINDS))
        for name, profile in rows
    )
    say(f"{len(rows)} profiles; a layer fitted to measurements is marked *")
    print()
    show(Table(columns, cells))


def _titled(layer: Layer) -> str:
    return layer.title + ("*" if layer.calibrated else "")


def _show(name: str, *, as_json: bool) -> None:
    found = _named(name)
    if isinstance(found, list):
        profile = load_profile(name)
        layers, factors, sources = found, profile.factors(), dict(profile.sources)
    else:
        layers, factors, sources = [found], dict(found.factors), dict(found.sources)
    if as_json:
        documents = [document_of(layer) for layer in layers]
        print(json.dumps({"name": name, "layers": documents}, indent=1))
        return
    say(f"{name}: " + ", ".join(_titled(layer) for layer in layers))
    print()
    columns = (
        Column("factor", "left"),
        Column("value"),
        Column("source", "left", True),
    )
    rows = [(key, f"{v:.6g}", sources.get(key, "")) for key, v in factors.items()]
    show(Table(columns, tuple(rows)))
    kernels = [row for layer in layers for row in _kernels(layer)]
    if kernels:
        print()
        show(Table(_KERNELS, tuple(kernels), "Kernels, errors on rows left out, in %"))
    for layer in layers:
        for entry in layer.provenance:
            say(
                f"{layer.title}: {entry['source']}, {entry['version']}, "
                f"{entry['licence']}: {entry.get('table', '')} "
                f"({entry.get('rows', 0):,} rows)"
            )


_KERNELS = (
    Column("kernel", "left"),
    Column("form", "left"),
    Column("left out", "left"),
    Column("size", "left"),
    Column("rows"),
    Column("median"),
    Column("90th"),
    Column("band"),
)


def _kernels(layer: Layer) -> list[tuple[str, ...]]:
    found = []
    for name, errors in layer.left_out.items():
        for way in ("random", "region"):
            for size, value in errors.get(way, {}).items():
                figures = [f"{value[key]:.2f}" for key in ("median", "p90")]
                band = f"{100 * layer.bands[name]:.1f}" if name in layer.bands else ""
                rows = f"{value['rows']:,}"
                found.append((name, errors["form"], way, size, rows, *figures, band))
    return found


def _diff(first: str, second: str, *, as_json: bool) -> None:
    found = differences(_factors(first), _factors(second))
    if as_json:
        print(
            json.dumps({"first": first, "second": second, "factors": found}, indent=1)
        )
        return
    if not found:
        say(f"{first} and {second} have the same factors")
        return
    columns = (Column("factor", "left"), Column(first), Column(second))
    rows = [(key, _value(a), _value(b)) for key, (a, b) in found.items()]
    show(Table(columns, tuple(rows)))


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _file(path: str) -> Layer:
    """Read a layer that a user wrote; its numbers and nesting may be of any size."""
    try:
        return read_layer(path)
    except RecursionError:
        raise InputError(f"cannot read the layer {path}: nested too deeply") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        reason = str(error)[:120]
        raise InputError(f"cannot read the layer {path}: {reason}") from None


def _validate(paths: list[str]) -> None:
    base = load_profile("hopper")
    for path in paths:
        layer = _file(path)
        check(layer, base)
        say(
            f"{path}: {layer.kind} layer {layer.title}, {len(layer.factors)} factors, "
            f"{len(layer.tables)} kernels, sound"
        )


def _merge(below: str, over: str, out: Path | None) -> None:
    if out is None:
        raise InputError("merge needs --out FILE, where the merged layer goes")
    first, second = _layer(below), _layer(over)
    merged = merge(first, second, out.stem)
    check(merged, load_profile("hopper"))
    write(out, text_of(merged))
    say(f"wrote {out}: {second.title} over {first.title}")


def _named(name: str) -> Layer | list[Layer]:
    """Return a profile's layers, a layer of the package (KIND/NAME), or a file's."""
    if name in profile_names():
        layers = load_profile(name).layers
        return [layers[kind] for kind in KINDS]
    return _layer(name)


def _layer(name: str) -> Layer:
    for kind in KINDS:
        if name.startswith(f"{kind}/"):
            return load_layer(kind, name.removeprefix(f"{kind}/"))
    if name.endswith(".json"):
        return _file(name)
    known = ", ".join(
        f"{kind}/{layer}" for kind in KINDS for layer in layer_names(kind)
    )
    raise InputError(
        f"there is no profile {name!r}; profiles: {', '.join(profile_names())}; "
        f"layers: {known}; or give a file ending in .json"
    )


def _factors(name: str) -> dict[str, float]:
    found: Any = _named(name)
    if isinstance(found, list):
        profile: Profile = load_profile(name)
        return profile.factors()
    return dict(found.factors)
