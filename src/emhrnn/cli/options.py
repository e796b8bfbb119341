"""Options that several commands share, with one name and one help text each."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from emhrnn.training.data import Named


def option(
    help: str, metavar: str | None = None, *, name: str | None = None, shown: bool | str = False, **more: Any
) -> Any:
    """An option with a value. `shown` is what the help gives as its default; True: the value."""
    return typer.Option(*([name] if name else []), help=help, metavar=metavar, show_default=shown, **more)


def flag(name: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help)


def argument(help: str, metavar: str | None = None, **more: Any) -> Any:
    """An argument, by its place."""
    return typer.Argument(help=help, metavar=metavar, show_default=False, **more)


_DATA = argument(
    "csv, tsv, json, jsonl (also .gz, .xz, .zst), xlsx, parquet, a folder per class, or a prepared corpus.", "DATA"
)
Data = Annotated[Path, _DATA]
OptionalData = Annotated[Path | None, _DATA]


def _located(run: Path) -> Path:
    from emhrnn.training.pack import located

    return located(run)


RunFolder = Annotated[
    Path,
    argument(
        "A folder made by `emhrnn train`, or a file made by `emhrnn pack`; demo: the model in the package.",
        "RUN",
        callback=_located,
    ),
]
TextColumn = Annotated[str | None, option("Column of the text.", "NAME", shown="guessed")]
LabelColumn = Annotated[str | None, option("Column of the label.", "NAME", shown="guessed")]
WeightColumn = Annotated[
    str | None, option("Column of numbers: weight of a row in training.", "NAME", shown="1 for every row")
]
Format = Annotated[
    str | None, option("csv, tsv, jsonl, xlsx, parquet, folder, datasets, tang or zhang.", "NAME", shown="guessed")
]
Encoding = Annotated[str | None, option("Encoding of text files, such as cp1252 or utf-16.", "NAME", shown="detected")]
Split = Annotated[str | None, option("Only rows with this value in the split column.", "NAME", shown="all rows")]
Settings = Annotated[
    list[str] | None,
    option("Change a setting, for example training.epochs=3; may be repeated.", "SECTION.KEY=VALUE", name="--set"),
]
ConfigFile = Annotated[Path | None, option("TOML file of settings; --set overrides it.", "FILE", shown="none")]
Preset = Annotated[
    str, option("default: the project's settings; paper: the paper's exact settings.", "NAME", shown=True)
]
Seed = Annotated[int | None, option("Same seed, same model.", "N", shown="0", min=0)]
ValidData = Annotated[Path | None, option("Validation data, in any format.", "DATA", shown="10 % of DATA")]
VectorsFile = Annotated[
    Path | None, option("Word vectors: GloVe or word2vec text, word2vec binary, .npz.", "FILE", shown="none")
]
Json = Annotated[bool, flag("--json", "Print one JSON object and nothing else on stdout.")]
Quiet = Annotated[bool, flag("--quiet", "No progress on stderr.")]
Report = Annotated[bool, flag("--report", "Only make the table of the finished runs; other processes may still train.")]


@dataclass(frozen=True)
class DataOptions:
    """How to read a data file: one parameter of a command, whose fields are options (`app.py` lists them)."""

    text_column: TextColumn = None
    label_column: LabelColumn = None
    format: Format = None
    encoding: Encoding = None
    split: Split = None

    def named(self, path: Path, *, weight: str | None = None, run: Path | None = None) -> "Named":
        """Data as described; columns that are not given are those that `run` was trained on, or guessed."""
        from emhrnn.corpus import Columns
        from emhrnn.training.data import Named
        from emhrnn.training.run import trained_columns

        trained = trained_columns(run) if run is not None else ()
        columns = Columns(text=self.text_column, label=self.label_column, weight=weight, trained=trained)
        return Named(path=path, format=self.format, columns=columns, split=self.split, encoding=self.encoding)


GUESSED = DataOptions()
