"""`emhrnn compare`: several systems on several sets of data, under one protocol."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Format, Json, Keep, LabelColumn, Quiet, Report, Settings, TextColumn


def compare(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="PATH or NAME=PATH: files or folders as `emhrnn train` takes them, or folders with one file for each "
            "part (train..., dev..., test...).",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the table and all runs.", metavar="FOLDER", show_default=False)
    ],
    models: Annotated[
        list[str],
        typer.Option(
            "--models",
            help="Rows: a,b,c; may be repeated. A row is MODEL, MODEL[section.key=value,...] or NAME=MODEL[...].",
            metavar="ROWS",
            show_default=False,
        ),
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each row; training.seed is the first.", metavar="N")] = 3,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", help="Test data of DATA, if it has none of its own: PATH or NAME=PATH.", metavar="DATA"),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="The row that the others are compared with.", metavar="NAME", show_default="the first"),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Runs at a time; they share the cores.", metavar="N", show_default="the cores"),
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Pretrained word vectors for all rows.", metavar="FILE", show_default=False)
    ] = None,
    preset: Annotated[str, typer.Option(help="default, or paper: the letter of the paper.")] = "default",
    config: Annotated[Path | None, typer.Option(help="Settings as TOML.", metavar="FILE", show_default=False)] = None,
    set_: Settings = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    report: Report = False,
    keep: Keep = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train every row on every set, and write table.md, table.json and table.html with error bars and significance.

    \b
    Examples:
      emhrnn compare reviews.csv --models tfidf-lr,hn-att,em-hrnn --out comparison
      emhrnn compare yelp=y.jsonl.gz imdb=i.parquet --models tfidf-svm,em-hrnn --seeds 5 --out c
      emhrnn compare imdb=train.jsonl --test imdb=test.jsonl --models tfidf-lr,em-hrnn --out c
      emhrnn compare reviews.csv --models "em-hrnn,words=em-hrnn[model.segmentation=words]" --out c

    All rows see the same documents: those that a split column (train, dev or valid, test) names, else 80/10/10 %, drawn
    once. All use the same words, vectors and settings, except for what a row sets in brackets. Ctrl-C, kill and reboot
    lose nothing: the same command goes on, row by row and within each training. More rows, sets and seeds can be added
    to the same folder. A run that fails stops no other; the exit code is then 2, and the table tells why.
    """
    from emhrnn.cli.output import complain, end_if_failed, print_json, say
    from emhrnn.cores import cores
    from emhrnn.corpus import Columns
    from emhrnn.paper.cli.comparison_tables import comparison_tables
    from emhrnn.paper.comparison.compare import Protocol
    from emhrnn.paper.comparison.compare import compare as run
    from emhrnn.paper.comparison.data import data_sets
    from emhrnn.paper.comparison.rows import parse_rows

    table = run(
        data_sets(data, test or [], format=format, columns=Columns(text=text_column, label=label_column)),
        parse_rows(models),
        out,
        protocol=Protocol(
            seeds=seeds, preset=preset, config=config, assignments=tuple(set_ or ()), vectors=vectors
        ),
        reference=reference,
        processes=processes or cores(),
        report=report,
        kept=keep,
        progress=not quiet,
        say=(lambda _: None) if quiet else complain,
    )  # fmt: skip
    if json:
        print_json(table.to_dict())
    else:
        say(comparison_tables(table))
        say(f"\nAs a page: {out / 'table.html'}; as data: {out / 'table.json'}; as Markdown: {out / 'table.md'}")
    end_if_failed(table.failed)
