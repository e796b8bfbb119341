"""`emhrnn compare` and `emhrnn paper table2`: several systems on several sets of data, under one protocol."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Format, Json, Keep, LabelColumn, Quiet, Report, Settings, TextColumn

Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", min=1, help="Runs at a time; they share the cores.", metavar="N", show_default="the cores"
    ),
]
VectorsFile = Annotated[
    Path | None,
    typer.Option("--vectors", help="Pretrained word vectors for all rows.", metavar="FILE", show_default=False),
]
Preset = Annotated[str, typer.Option(help="default, or paper: the paper's exact settings.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few documents and epochs: to see that it runs, not to quote.")]


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
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            min=2,
            help="K-fold cross-validation: pool all rows of DATA, also of a split column, and test each row once.",
            metavar="K",
            show_default="one split",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="The row that the others are compared with.", metavar="NAME", show_default="the first"),
    ] = None,
    processes: Processes = None,
    vectors: VectorsFile = None,
    preset: Preset = "default",
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
      emhrnn compare small.csv --models tfidf-lr,evidence --folds 5 --out c
      emhrnn compare reviews.csv --models "em-hrnn,words=em-hrnn[model.segmentation=words]" --out c

    All rows see the same documents: those that a split column (train, dev or valid, test) names, else 80/10/10 %, drawn
    once. All use the same words, vectors and settings, except for what a row sets in brackets. Ctrl-C, kill and reboot
    lose nothing: the same command goes on, row by row and within each training. More rows, sets and seeds can be added
    to the same folder. A run that fails stops no other; the exit code is then 2, and the table tells why.
    """
    from emhrnn.cli.output import complain, end_if_failed, print_json, say
    from emhrnn.cores import cores
    from emhrnn.corpus import Columns
    from emhrnn.paper.comparison.compare import Protocol
    from emhrnn.paper.comparison.compare import compare as run
    from emhrnn.paper.comparison.data import data_sets
    from emhrnn.paper.comparison.report import terminal_tables
    from emhrnn.paper.comparison.rows import parse_rows

    table = run(
        data_sets(
            data, test or [], format=format, columns=Columns(text=text_column, label=label_column), folds=folds
        ),
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
        say(terminal_tables(table))
        say(f"\nAs a page: {out / 'table.html'}; as data: {out / 'table.json'}; as Markdown: {out / 'table.md'}")
    end_if_failed(table.failed)


def table2(
    data: Annotated[
        Path,
        typer.Option("--data", help="Folder that holds the data sets, under their published names.", metavar="FOLDER"),
    ] = Path("data"),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for table2.md and table2.json.",
            metavar="FOLDER",
            show_default="results; quick: the work",
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option("--work", help="Folder for all runs.", metavar="FOLDER", show_default="runs/table2[-quick]"),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--sets", help="Only this set, by name; may be repeated.", metavar="NAME", show_default="all"),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            help="Only this row, by its name in the paper or in the table; may be repeated.",
            metavar="NAME",
            show_default="all",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each row.", metavar="N")] = 3,
    quick: Quick = False,
    vectors: VectorsFile = None,
    pretrained: Annotated[
        Path | None,
        typer.Option(
            help="Folder with weights for the row Bert-base, or with a smaller encoder, which stands in for it "
            "and is called by the folder's name.",
            metavar="FOLDER",
            show_default="no such row",
        ),
    ] = None,
    frozen: Annotated[
        bool,
        typer.Option(
            "--frozen",
            help="Only fit a linear head on what the encoder of --pretrained says of 128 word pieces: for CPUs. The "
            "row's name ends in ', frozen', and it is no row of the paper.",
        ),
    ] = False,
    processes: Processes = None,
    preset: Preset = "default",
    set_: Settings = None,
    report: Report = False,
    keep: Keep = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Table 2: all rows of the paper, with TF-IDF and fastText, on its sets or on stand-ins.

    \b
    Examples:
      emhrnn paper table2 --data sets --vectors glove.npz
      emhrnn paper table2 --data sets --sets yelp-2013 --rows HN-ATT --rows 'EM-HRNN with local bootstrap'
      emhrnn paper table2 --data sets --quick
      emhrnn paper table2 --data sets --pretrained all-MiniLM-L6-v2 --frozen --rows 'all-MiniLM-L6-v2, frozen'

    Known in --data: yelp-2013-train.txt.ss with -dev and -test (likewise 2014, 2015), yahoo_answers_csv,
    amazon_review_full_csv, yelp_review_full_csv, yelp_academic_dataset_review.json, Amazon's reviews_*.json.gz; and
    stand-ins (docs/compare.md). The report keeps the paper's numbers, those of the papers it cites, and ours apart, and
    says which may be compared. Stopped by Ctrl-C, the same command goes on where it was. A run that fails stops no
    other; the exit code is then 2, and the table tells why.
    """
    from emhrnn.cli.output import complain, end_if_failed, print_json, say
    from emhrnn.cores import cores
    from emhrnn.paper.comparison.compare import Protocol
    from emhrnn.paper.comparison.report import terminal_tables
    from emhrnn.paper.table2.report import reproduce_table2

    work = work or Path("runs/table2-quick" if quick else "runs/table2")
    out = out or (work if quick else Path("results"))  # a quick table must not replace the real one
    result = reproduce_table2(
        data,
        out,
        work=work,
        protocol=Protocol(
            seeds=1 if quick else seeds, preset=preset, assignments=tuple(set_ or ()), vectors=vectors
        ),
        sets=sets or (),
        rows=rows or (),
        pretrained=pretrained,
        frozen=frozen,
        quick=quick,
        processes=processes or cores(),
        report=report,
        kept=keep,
        progress=not quiet,
        say=(lambda _: None) if quiet else complain,
    )  # fmt: skip
    if json:
        print_json(result.to_dict())
    else:
        say(terminal_tables(result.table))
        say(f"\nBeside the paper's numbers: {out / 'table2.md'}; as data: {out / 'table2.json'}")
    end_if_failed(result.table.failed)
