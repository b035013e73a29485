"""The commands that weigh many answers: fronts, books, machines that do not exist."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from . import options as o
from .app import app

Work = Callable[[], int]

Price = Annotated[
    float | None,
    typer.Option(
        "--price",
        metavar="PER_HOUR",
        help="Price of one device for an hour, in your currency.",
        show_default=False,
    ),
]
Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="memory, step-time, throughput, gpus, cost or energy; repeat. "
        "[default: memory, throughput]",
        show_default=False,
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="NAME=VALUES",
        help="A quantity of the machine and its values: a list, or LOW..HIGH[:STEPS], "
        "for example device.hbm_bytes=80GiB..288GiB; repeat.",
        show_default=False,
    ),
]


@app.command()
def pareto(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    objective: Objectives = None,
    sizes: bool = typer.Option(
        False, "--sizes", help="Weigh every number of nodes up to the cluster's."
    ),
    price: Price = None,
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    pin: o.Pin = None,
    axis: o.Axis = None,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    stack: o.StackText = "",
    space: o.SpaceText = "default",
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """List every configuration that no other one beats, with the proof."""
    from .commands.pareto import run

    request = o.request(
        pin,
        axis,
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        stack=stack,
        max_gpus=max_gpus,
        space=space,
    )
    return partial(
        run,
        request,
        objectives=tuple(objective or ("memory", "throughput")),
        sizes=sizes,
        price=price,
        as_json=json,
        out=out,
    )


@app.command()
def book(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    nodes: str = typer.Option(
        "all", "--nodes", metavar="COUNTS", help="all, LOW..HIGH, or a list: 1,3,5."
    ),
    batch_tolerance: float = typer.Option(
        0.0,
        "--batch-tolerance",
        metavar="FRACTION",
        help="How far the global batch may be from the one given.",
    ),
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    pin: o.Pin = None,
    axis: o.Axis = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    stack: o.StackText = "",
    space: o.SpaceText = "default",
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """Find the best configuration for every number of nodes, odd ones included."""
    from .commands.book import run

    request = o.request(
        pin,
        axis,
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        stack=stack,
        space=space,
    )
    return partial(
        run, request, nodes=nodes, tolerance=batch_tolerance, as_json=json, out=out
    )


@app.command()
def whatif(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    vary: Vary = None,
    target: float | None = typer.Option(
        None,
        "--target",
        metavar="TOKENS_PER_S",
        help="Name the cheapest machine that reaches this speed.",
        show_default=False,
    ),
    price: Price = None,
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    pin: o.Pin = None,
    axis: o.Axis = None,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    stack: o.StackText = "",
    space: o.SpaceText = "default",
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """Plan for machines that do not exist, and say which resource binds."""
    from .commands.whatif import run

    request = o.request(
        pin,
        axis,
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        stack=stack,
        max_gpus=max_gpus,
        space=space,
    )
    return partial(
        run,
        request,
        vary=tuple(vary or ()),
        target=target,
        price=price,
        as_json=json,
        out=out,
    )


@app.command()
def report(
    answer: str = typer.Argument(metavar="ANSWER.json", help="From `... --json`."),
    out: str | None = typer.Option(
        None, "--out", metavar="PAGE.html", help="Where to write the page."
    ),
    front: str | None = typer.Option(
        None,
        "--front",
        metavar="FRONT.json",
        help="The front to draw, from `pareto ... --json`; a small one is found.",
    ),
    trace: str | None = typer.Option(
        None,
        "--trace",
        metavar="TRACE.json",
        help="Where to write one simulated step for Perfetto.",
    ),
) -> Work:
    """Draw a saved answer as one page that needs no network."""
    from .commands.page import run

    return partial(run, answer, front=front, out=out, trace=trace)


@app.command()
def robust(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    draws: int = typer.Option(
        200, "--draws", metavar="N", help="Machines to draw within the band."
    ),
    seed: int = typer.Option(0, "--seed", metavar="N", help="Of the draws."),
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    pin: o.Pin = None,
    axis: o.Axis = None,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    stack: o.StackText = "",
    space: o.SpaceText = "default",
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """Say what becomes of the best if the machine is not as its profile says."""
    from .commands.robust import run

    request = o.request(
        pin,
        axis,
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        stack=stack,
        max_gpus=max_gpus,
        space=space,
    )
    return partial(run, request, draws=draws, seed=seed, as_json=json, out=out)


@app.command()
def sweep(
    file: str = typer.Argument(
        metavar="SWEEP.yaml", help="models, clusters, seq_len, global_batch."
    ),
    out: str = typer.Option(
        ...,
        "--out",
        metavar="DIR",
        help="Where answers are kept; a killed sweep resumes.",
    ),
    runner: str = typer.Option(
        "local", "--runner", metavar="ENGINE", help="local, ray or slurm."
    ),
    workers: int | None = typer.Option(
        None,
        "--workers",
        metavar="N",
        help="Plans made at a time; one a core if not given.",
        show_default=False,
    ),
    json: o.AsJson = False,
) -> Work:
    """Plan every model on every cluster of a file, here, on Ray or on Slurm."""
    from .commands.sweep import run

    return partial(run, file, runner=runner, workers=workers, out=out, as_json=json)
