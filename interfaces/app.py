"""The commands and their options; each one's work is in ``commands``.

A command returns what is to be done, and ``cli`` does it: so neither an interrupt nor
a reader that leaves is handled by the parser.
"""

from collections.abc import Callable
from functools import partial

import typer

from . import options as o

Work = Callable[[], int]

app = typer.Typer(
    name="shardproof",
    help="Exact planning of distributed LLM training: what fits, what is fastest, "
    "and the proof. Exit codes: 0 an answer, 1 proven infeasible, 2 bad input, "
    "130 interrupted.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"shardproof {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of the program itself."""


@app.command()
def plan(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    pin: o.Pin = None,
    axis: o.Axis = None,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    stack: o.StackText = "",
    space: o.SpaceText = "default",
    top: o.Top = 10,
    confidence: o.Confidence = o.CONFIDENCE,
    objective: o.Objective = None,
    where: o.Where = None,
    stages: o.Stages = False,
    stage_seconds: o.StageSeconds = 45.0,
    batch_tolerance: o.BatchTolerance = 0.0,
    train_tokens: o.TrainTokens = None,
    price: o.Price = None,
    watts: o.Watts = None,
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """Find the fastest configurations that fit, with the proof."""
    from .commands.optimize import Wish
    from .commands.optimize import run as optimize
    from .commands.plan import run

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
    wish = Wish(
        objective=objective,
        where=where or (),
        stages=stages,
        batch_tolerance=batch_tolerance,
        train_tokens=train_tokens,
        price=price,
        watts=watts,
        seconds=stage_seconds,
    )
    if wish.asked:
        return partial(optimize, request, wish, top=top, as_json=json, out=out)
    return partial(run, request, top=top, confidence=confidence, as_json=json, out=out)


@app.command()
def project(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    pin: o.LayoutPin = None,
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    stack: o.StackText = "",
    confidence: o.Confidence = o.CONFIDENCE,
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """Project one configuration: its memory, its step time part by part.

    Axes that are not given take the value of a plain launch: sizes 1, sequence
    parallelism with tp > 1, the schedule that vpp asks for, zero-1, no recomputation.
    """
    from .commands.project import run

    request = o.request(
        pin,
        None,
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        stack=stack,
        max_gpus=max_gpus,
    )
    return partial(run, request, confidence=confidence, as_json=json, out=out)


@app.command()
def memory(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    pin: o.LayoutPin = None,
    layout: str | None = typer.Option(
        None,
        "--layout",
        metavar="AXES|FILE",
        help="The layout: tp=4,pp=2,... or a saved answer, layout or YAML of axes.",
    ),
    items: bool = typer.Option(False, "--items", help="List every tensor."),
    rank: int | None = typer.Option(
        None, "--rank", metavar="R", help="List this pipeline rank, not the fullest."
    ),
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    confidence: o.Confidence = o.CONFIDENCE,
    json: o.AsJson = False,
) -> Work:
    """Say what lies in memory at the peak of one configuration, byte by byte."""
    from .commands.layout_text import layout_pins
    from .commands.memory import run

    request = o.request(
        [*(layout_pins(layout) if layout else ()), *(pin or ())],
        None,
        model=model,
        cluster=cluster,
        seq_len=seq_len,
        global_batch=global_batch,
        dialect=dialect,
        precision=precision,
        optimizer=optimizer,
        max_gpus=max_gpus,
    )
    return partial(
        run, request, rank=rank, confidence=confidence, as_json=json, listed=items
    )


@app.command()
def diff(
    first: str = typer.Argument(
        metavar="A", help="A document of `memory`, `project` or `plan ... --json`."
    ),
    second: str = typer.Argument(
        metavar="B", help="Another, or a layout of the same problem: tp=4,pp=2,..."
    ),
) -> Work:
    """Say where the bytes of two configurations part, item by item."""
    from .commands.diff import run

    return partial(run, first, second)


@app.command("enumerate")
def enumerate_(
    model: o.AnyModel = None,
    cluster: o.AnyCluster = None,
    seq_len: o.AnySeqLen = None,
    global_batch: o.AnyGlobalBatch = None,
    dialect: o.AnyDialect = None,
    precision: o.AnyPrecision = None,
    pin: o.Pin = None,
    axis: o.Axis = None,
    max_gpus: o.MaxGpus = None,
    optimizer: o.AnyOptimizer = None,
    space: o.SpaceText = "default",
    engine: str = typer.Option(
        "vector",
        "--engine",
        metavar="ENGINE",
        help="vector, cpsat (the model of record), or both to compare them.",
    ),
    rules_only: bool = typer.Option(
        False, "--rules-only", help="Leave memory out: what the framework accepts."
    ),
    count: bool = typer.Option(False, "--count", help="Print the number alone."),
    top: o.Top = 10,
    json: o.AsJson = False,
    out: o.OutSet = None,
) -> Work:
    """Count and list every configuration that the rules allow and that fits.

    A space with a workload, such as mixtral-8x22b-32xmi300x, says the rest itself.
    """
    from .commands.feasible import fill, run

    given = {
        "model": model,
        "cluster": cluster,
        "seq_len": seq_len,
        "global_batch": global_batch,
        "dialect": dialect,
        "precision": precision,
        "optimizer": optimizer,
    }
    usual = {
        "dialect": o.DIALECT,
        "precision": o.PRECISION,
        "optimizer": o.OPTIMIZER,
    }
    said = fill(space, given, usual)
    request = o.request(pin, axis, **said, max_gpus=max_gpus, space=space)
    return partial(
        run,
        request,
        engine=engine,
        rules_only=rules_only,
        top=top,
        as_json=json,
        out=out,
        count=count,
    )


@app.command()
def explain(
    model: o.Model,
    cluster: o.ClusterText,
    seq_len: o.SeqLen,
    global_batch: o.GlobalBatch,
    dialect: o.Dialect = o.DIALECT,
    precision: o.Precision = o.PRECISION,
    pin: o.Pin = None,
    axis: o.Axis = None,
    max_gpus: o.MaxGpus = None,
    optimizer: o.Optimizer = o.OPTIMIZER,
    space: o.SpaceText = "default",
    why: o.Why = None,
    check: o.Check = False,
    top: o.Top = 5,
    json: o.AsJson = False,
    out: o.Out = None,
) -> Work:
    """Say why nothing fits: every conflict, every correction, exact amounts.

    With --why, say every rule that one configuration breaks, and the nearest ones
    that are legal and fit.
    """
    from .commands.explain import run

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
        max_gpus=max_gpus,
        space=space,
    )
    return partial(run, request, why=why, check=check, top=top, as_json=json, out=out)


@app.command()
def verify(
    path: str = typer.Argument(
        metavar="ANSWER.json", help="From plan, project or enumerate with --json."
    ),
    count: bool = typer.Option(
        True, help="Loop over the whole space, which takes longest."
    ),
    json: o.AsJson = False,
) -> Work:
    """Check a saved answer again, with code that knows no solver.

    Exit codes: 0 verified, 1 refuted, 2 a bad file or claims that are not covered.
    """
    from .commands.verify import run

    return partial(run, path, count=count, as_json=json)


@app.command()
def rules(dialect: o.Dialect = o.DIALECT, json: o.AsJson = False) -> Work:
    """List the rules of a dialect, each with its sentence and its source."""
    from .commands.rules import run

    return partial(run, dialect, as_json=json)


@app.command()
def catalogue(
    words: o.Entries = None,
    json: o.AsJson = False,
) -> Work:
    """List the known models, devices and clusters, show one, or add your own."""
    from .commands.catalogue import run

    return partial(run, tuple(words or ()), as_json=json)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def bench(context: typer.Context, name: str = typer.Argument(metavar="NAME")) -> Work:
    """Run a benchmark: legality, memory, pipeline or verdict, then its options."""
    from .commands.bench import run

    return partial(run, name, list(context.args))
