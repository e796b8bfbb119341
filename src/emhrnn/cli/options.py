"""Options that several commands share, with one name and one help text each."""

from pathlib import Path
from typing import Annotated

import typer

_DATA = typer.Argument(
    metavar="DATA",
    help="csv, tsv, jsonl (also .gz, .xz, .zst), parquet, Tang's .ss, a folder per class, or a prepared corpus.",
    show_default=False,
)
Data = Annotated[Path, _DATA]
OptionalData = Annotated[Path | None, _DATA]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder made by `emhrnn train`.", show_default=False)]
TextColumn = Annotated[
    str | None, typer.Option("--text-column", help="Column of the text.", show_default="guessed", metavar="NAME")
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", help="Column of the label.", show_default="guessed", metavar="NAME")
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight-column",
        help="Column of numbers: weight of a row in training.",
        show_default="1 for every row",
        metavar="NAME",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="csv, tsv, jsonl, parquet, folder, datasets, tang or zhang.",
        show_default="guessed",
        metavar="NAME",
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split", help="Only rows with this value in the split column.", show_default="all rows", metavar="NAME"
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Change a setting, for example training.epochs=3; may be repeated.",
        metavar="SECTION.KEY=VALUE",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]
Keep = Annotated[
    Path | None,
    typer.Option(
        "--keep",
        help="An earlier table of the same data, as JSON: its rows without a run are kept, marked †.",
        metavar="TABLE",
        show_default=False,
    ),
]
Report = Annotated[
    bool, typer.Option("--report", help="Only make the table of the finished runs; other processes may still train.")
]
