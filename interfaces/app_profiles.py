"""The commands about machines as measured: profiles and their calibration."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from . import app_fronts as app_fronts
from . import options as o
from .app import app as app

Work = Callable[[], int]

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME | diff A B | validate FILE... | merge BELOW OVER]",
        help="Nothing lists all. A name is a profile's, KIND/LAYER, or a file.",
        show_default=False,
    ),
]
Measurements = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Kernel tables (Parquet), SimuMax systems, Chrome or Kineto traces "
        "(JSON), output of nccl-tests or rccl-tests; or folders of them.",
        show_default=False,
    ),
]
OutPath = Annotated[
    Path | None,
    typer.Option("--out", metavar="PATH", help="Where to write.", show_default=False),
]


@app.command()
def profiles(words: Words = None, json: o.AsJson = False, out: OutPath = None) -> Work:
    """List the profiles, show one, compare two, check or merge layers."""
    from .commands.profiles import run

    return partial(run, tuple(words or ()), as_json=json, out=out)


@app.command()
def calibrate(
    action: str = typer.Argument(metavar="import|fit"),
    paths: Measurements = None,
    device: str = typer.Option(
        "", "--device", metavar="NAME", help="For text and traces that name none."
    ),
    out: OutPath = None,
    json: o.AsJson = False,
) -> Work:
    """Read published measurements by written rules, or fit layers to them."""
    from .commands.calibrate import run

    return partial(
        run, action, tuple(paths or ()), device=device, out=out, as_json=json
    )
