"""Run golden cases again: ``python -m oracles.framework_memory.remake``.

Needs the project's ``oracle`` extra, no GPU, and nothing of the product; start it in
``tests/``. Cases with ``impl: te`` need TransformerEngine's Python as well, which
cannot be imported without its kernels and is therefore not installed but read from a
wheel: ``pip download --no-deps transformer_engine==2.20.2``, then ``--engine FILE``
or the environment variable ``TRANSFORMER_ENGINE``.

Records go to standard output, one JSON object a line; what differs from the file given
goes to standard error, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import warnings
from pathlib import Path
from typing import Any

from . import engine


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="remake", description=__doc__)
    parser.add_argument(
        "--cases", type=Path, nargs="+", required=True, help="JSON lists of cases"
    )
    parser.add_argument("--only", type=int, metavar="N", help="draw N of them")
    parser.add_argument("--seed", default="0", help="which ones to draw")
    parser.add_argument("--impl", help="only cases of this implementation: te, local")
    parser.add_argument(
        "--engine",
        type=Path,
        default=os.environ.get("TRANSFORMER_ENGINE"),
        help="TransformerEngine's wheel, or the folder of one unpacked",
    )
    return parser.parse_args(argv)


def _multiset(items: list[dict[str, Any]]) -> dict[str, int]:
    """Count tensors by format, shape and size; those without bytes do not count."""
    count: dict[str, int] = {}
    for item in items:
        if item["nbytes"]:
            key = f"{item['dtype']} {item['shape']} {item['nbytes']:,} bytes"
            count[key] = count.get(key, 0) + item["n"]
    return count


def differences(made: dict[str, Any], given: dict[str, Any]) -> list[str]:
    """Say what a record has otherwise than the one given, tensor by tensor."""
    found = [
        f"{name}: {figure} made, {given[name]} given"
        for name, figure in made.items()
        if name != "items" and name in given and figure != given[name]
    ]
    if "items" in given:
        ours, theirs = _multiset(made["items"]), _multiset(given["items"])
        found += [
            f"{key}: {ours.get(key, 0)} made, {theirs.get(key, 0)} given"
            for key in sorted(ours.keys() | theirs.keys())
            if ours.get(key) != theirs.get(key)
        ]
    return found


def _needs_engine(entry: dict[str, Any]) -> bool:
    """Whether a record holds only beside TransformerEngine's Python.

    Where it is there, Megatron takes norms and casts from it for local layers too, and
    recomputation keeps what it keeps; so a record is remade as it was made.
    """
    return entry["case"].get("impl") == "te" or bool(entry.get("transformer_engine"))


def _prepare(path: Path | None) -> bool:
    """Put the stand-ins in place; return whether TransformerEngine's Python is."""
    # Compiled functions would save what the compiler likes; the launcher's are not.
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    from . import device, kernels

    device.install()
    kernels.install()
    root = engine.find(path)
    if root is not None:
        engine.load(root)
    from . import measure

    measure.install()
    warnings.filterwarnings("ignore")  # the frameworks' own, of what they deprecate
    return root is not None


def main(argv: list[str] | None = None) -> int:
    """Remake the chosen cases and compare them with what their entries hold."""
    chosen = _arguments(argv)
    entries = [e for file in chosen.cases for e in json.loads(file.read_text())]
    if chosen.impl:
        entries = [e for e in entries if e["case"].get("impl", "local") == chosen.impl]
    if chosen.impl == "local" and engine.find(chosen.engine) is None:
        count = len(entries)
        entries = [e for e in entries if not _needs_engine(e)]
        left = count - len(entries)
        print(f"{left} left out: made with TransformerEngine there", file=sys.stderr)
    if chosen.only is not None:
        number = min(chosen.only, len(entries))
        entries = random.Random(chosen.seed).sample(entries, number)
    has_engine = _prepare(chosen.engine)
    from . import measure

    origin, off = measure.origin(), 0
    for entry in entries:
        if _needs_engine(entry) and not has_engine:
            raise SystemExit(f"a case needs transformer_engine=={engine.VERSION}")
        name = {"name": entry.get("name", "case")}
        try:
            made = name | measure.record(entry["case"])
        except Exception as error:  # what the framework refuses is told
            wrong = [f"{type(error).__name__}: {error}"]
        else:
            print(json.dumps(made | origin), flush=True)
            wrong = differences(made, entry)
        if wrong:
            off += 1
            print(name, entry["case"], *wrong, sep="\n  ", file=sys.stderr)
    print(f"{len(entries)} cases run, {off} differ", file=sys.stderr)
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())
