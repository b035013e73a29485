"""The options that several commands share, each with its help."""

from typing import Annotated, Any

import typer

from .request import (
    DEFAULT_DIALECT,
    DEFAULT_OPTIMIZER,
    DEFAULT_PRECISION,
    Request,
    assignment,
)

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A name of the catalogue, a config.json or its folder, or a YAML file.",
    ),
]
ClusterText = Annotated[
    str,
    typer.Option(
        "--cluster",
        metavar="CLUSTER",
        help="NODESxGPUS:DEVICE such as 8x8:h100, a name, or a YAML file.",
    ),
]
SeqLen = Annotated[
    int, typer.Option("--seq-len", metavar="TOKENS", help="Tokens of one sequence.")
]
GlobalBatch = Annotated[
    int,
    typer.Option(
        "--global-batch", metavar="SEQUENCES", help="Sequences of one step, all GPUs."
    ),
]
Dialect = Annotated[
    str, typer.Option(metavar="NAME@RELEASE", help="Whose rules must be met.")
]
Precision = Annotated[
    str, typer.Option(metavar="FORMAT", help="Number format of matrix products.")
]
Optimizer = Annotated[
    str, typer.Option(metavar="NAME", help="Recipe of bytes per parameter.")
]
Pin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="AXIS=VALUE", help="Allow only this value; repeat."),
]
LayoutPin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="AXIS=VALUE", help="One axis of the layout; repeat."),
]
Axis = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="AXIS=V1,V2",
        help="Replace the values of an axis of the space; repeat.",
    ),
]
SpaceText = Annotated[
    str,
    typer.Option("--space", metavar="SPACE", help="A shipped space or a YAML file."),
]
MaxGpus = Annotated[
    int | None,
    typer.Option(
        "--max-gpus",
        metavar="N",
        help="Use at most N devices: whole nodes, or a part of one.",
        show_default=False,
    ),
]
_LEFT = "; where the space has a workload, its own."


def _maybe(option: str, metavar: str, text: str) -> Any:
    return typer.Option(option, metavar=metavar, help=text + _LEFT, show_default=False)


AnyModel = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="A name of the catalogue, a config.json or its folder, or a YAML file"
        + _LEFT,
        show_default=False,
    ),
]
AnyCluster = Annotated[
    str | None,
    _maybe("--cluster", "CLUSTER", "NODESxGPUS:DEVICE, a name, or a YAML file"),
]
AnySeqLen = Annotated[int | None, _maybe("--seq-len", "TOKENS", "Tokens of a sequence")]
AnyGlobalBatch = Annotated[
    int | None,
    _maybe("--global-batch", "SEQUENCES", "Sequences of one step, all GPUs"),
]
AnyDialect = Annotated[
    str | None, _maybe("--dialect", "NAME@RELEASE", "Whose rules must be met")
]
AnyPrecision = Annotated[
    str | None, _maybe("--precision", "FORMAT", "Number format of matrix products")
]
AnyOptimizer = Annotated[
    str | None, _maybe("--optimizer", "NAME", "Recipe of bytes per parameter")
]
OutSet = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="DIR|FILE.parquet",
        help="Also write the set to this folder, or as one Parquet file.",
    ),
]
StackText = Annotated[
    str,
    typer.Option(
        "--stack",
        metavar="NAME",
        help="A stack layer for calibrated step times, such as nemo-hopper-dense.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Also write the results to this folder."),
]
Entries = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND] [NAME] | add FILE",
        help="A kind (models, devices, fabrics, clusters), an entry to show whole with "
        "its sources, or the YAML file of an entry to add.",
    ),
]
Why = Annotated[
    str | None,
    typer.Option(
        "--why",
        metavar="AXIS=VALUE,...",
        help="One configuration; axes left out take the value of a plain launch.",
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Re-solve each conflict and correction.")
]
Confidence = Annotated[
    float,
    typer.Option(
        "--confidence",
        metavar="P",
        help="How sure the verdict on memory is to be, above 0 and below 1.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        metavar="WHAT",
        help="tokens (tokens/s/GPU, the default), step-time, train-time, cost (per "
        "token) or energy (per token).",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="LIMIT",
        help="A limit that answers keep: headroom>=4GiB, gpus<=512 (halves of the "
        "cluster are looked at), step-time<=10, tokens>=400, mfu>=0.4, train-time, "
        "cost, energy.",
    ),
]
Stages = Annotated[
    bool,
    typer.Option(
        "--stages",
        help="Choose layers and recomputation stage by stage in promising skeletons.",
    ),
]
StageSeconds = Annotated[
    float,
    typer.Option("--seconds", metavar="S", help="CPU seconds for --stages."),
]
BatchTolerance = Annotated[
    float,
    typer.Option(
        "--batch-tolerance",
        metavar="SHARE",
        help="Look at global batches this far away too, 0.1 for 10 %.",
    ),
]
TrainTokens = Annotated[
    float | None,
    typer.Option(
        "--train-tokens", metavar="N", help="Tokens of the training, for train-time."
    ),
]
Price = Annotated[
    float | None,
    typer.Option("--price", metavar="P", help="Price of a device an hour, for cost."),
]
Watts = Annotated[
    float | None,
    typer.Option("--watts", metavar="W", help="Power of a device, for energy."),
]
Top = Annotated[int, typer.Option("--top", metavar="K", help="Rows to show at most.")]

CONFIDENCE = 0.99
DIALECT, PRECISION, OPTIMIZER = DEFAULT_DIALECT, DEFAULT_PRECISION, DEFAULT_OPTIMIZER


def request(pins: list[str] | None, axes: list[str] | None, **rest: object) -> Request:
    """Collect a command's options into one request.

    Raises
    ------
    InputError
        If an option is not ``AXIS=VALUE``, or names an axis twice.
    """
    from ..models.errors import InputError

    found: dict[str, dict[str, str]] = {"--pin": {}, "--axis": {}}
    for option, texts in (("--pin", pins), ("--axis", axes)):
        for text in texts or ():
            name, value = assignment(option, text)
            if name in found[option]:
                raise InputError(
                    f"{option} takes each axis once, got {name} twice"
                    + ("; list values as --axis vpp=1,2" if option == "--axis" else "")
                )
            found[option][name] = value
    lists = {name: text.split(",") for name, text in found["--axis"].items()}
    return Request(pins=found["--pin"], axes=lists, **rest)  # type: ignore[arg-type]
