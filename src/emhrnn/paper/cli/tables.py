"""`emhrnn compare`, and `emhrnn paper table1`, `table2`, `table3` and `figures`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from emhrnn.cli.options import (
    ConfigFile,
    Data,
    DataOptions,
    Format,
    Json,
    LabelColumn,
    Preset,
    Quiet,
    Report,
    Settings,
    TextColumn,
    VectorsFile,
    argument,
    flag,
    option,
)
from emhrnn.cli.output import Answer, complain, print_json, report_at, say
from emhrnn.cores import cores

if TYPE_CHECKING:
    from emhrnn.paper.comparison.table import ComparisonTable


Processes = Annotated[int | None, option("Runs at a time; they share the cores.", "N", shown="the cores", min=1)]
Quick = Annotated[bool, flag("--quick", "Few documents and epochs: to see that it runs, not to quote.")]
DATA = argument(
    "PATH or NAME=PATH: files or folders as `emhrnn train` takes them, or folders with one file for each part "
    "(train..., dev..., test...).",
    "DATA...",
)
MODELS = option(
    "Rows: a,b,c; may be repeated. A row is MODEL, MODEL[section.key=value,...] or NAME=MODEL[...].", "ROWS"
)
FOLDS = option(
    "K-fold cross-validation: pool all rows of DATA, also of a split column, and test each row once.",
    "K", shown="one split", min=2,
)  # fmt: skip
LIMIT = option("A slice: at most so many rows of train, valid and test, drawn with seed 0.", "N,N,N", shown="all rows")
PRETRAINED = option(
    "Folder with weights for the row Bert-base, or with a smaller encoder, which stands in for it and is called by the "
    "folder's name: fine-tuned in one row; in another frozen, under a linear head.",
    "FOLDER", shown="no such row",
)  # fmt: skip


def compare(
    data: Annotated[list[str], DATA],
    out: Annotated[Path, option("Folder for the table and all runs.", "FOLDER")],
    models: Annotated[list[str], MODELS],
    seeds: Annotated[int, option("Runs of each row; training.seed is the first.", "N", shown=True, min=1)] = 3,
    test: Annotated[
        list[str] | None, option("Test data of DATA, if it has none of its own: PATH or NAME=PATH.", "DATA")
    ] = None,
    folds: Annotated[int | None, FOLDS] = None,
    limit: Annotated[str | None, LIMIT] = None,
    reference: Annotated[
        str | None, option("The row that the others are compared with.", "NAME", shown="the first")
    ] = None,
    processes: Processes = None,
    vectors: VectorsFile = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    set_: Settings = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    report: Report = False,
    quiet: Quiet = False,
) -> Answer:
    """Train every row on every set, and write table.md and table.json with error bars and significance.

    \b
    Examples:
      emhrnn compare reviews.csv --models evidence,tfidf-lr,hn-att --out comparison
      emhrnn compare yelp=y.jsonl.gz imdb=i.parquet --models tfidf-svm,em-hrnn --seeds 5 --out c
      emhrnn compare imdb=train.jsonl --test imdb=test.jsonl --models tfidf-lr,em-hrnn --out c
      emhrnn compare small.csv --models tfidf-lr,evidence --folds 5 --out c
      emhrnn compare reviews.csv --models "em-hrnn,words=em-hrnn[model.segmentation=words]" --out c

    All rows see the same documents: those that a split column (train, dev or valid, test) names, else 80/10/10 %, drawn
    once. All use the same words, vectors and settings, except for what a row sets in brackets. After Ctrl-C, kill or
    reboot, the same command resumes, also within a training. More rows, sets and seeds can be added to the same folder.
    If a run fails, the others continue; the exit code is then 2, and the table says why.
    """
    from emhrnn.corpus import Columns
    from emhrnn.paper.comparison import Protocol, data_sets
    from emhrnn.paper.comparison import compare as run
    from emhrnn.paper.comparison.rows import parse_rows
    from emhrnn.paper.jobs import HowToRun

    columns = Columns(text=text_column, label=label_column)
    table = run(
        data_sets(data, test or [], format=format, columns=columns, folds=folds, limit=limit),
        parse_rows(models),
        out,
        protocol=Protocol(seeds, preset, config, tuple(set_ or ()), vectors),
        how=HowToRun(processes or cores(), report, None if quiet else complain),
        reference=reference,
    )
    return _answer(table, table.to_dict(), f"As Markdown: {out / 'table.md'}; as data: {out / 'table.json'}")


def table2(
    data: Annotated[
        Path, option("Folder that holds the data sets, under their published names.", "FOLDER", shown=True)
    ] = Path("data"),
    out: Annotated[
        Path | None,
        option("Folder for table2.md, table2.json and frontier.svg.", "FOLDER", shown="results; quick: the work"),
    ] = None,
    work: Annotated[Path | None, option("Folder for all runs.", "FOLDER", shown="runs/table2[-quick]")] = None,
    sets: Annotated[list[str] | None, option("Only this set, by name; may be repeated.", "NAME", shown="all")] = None,
    rows: Annotated[
        list[str] | None,
        option("Only this row, by its name in the paper or in the table; may be repeated.", "NAME", shown="all"),
    ] = None,
    seeds: Annotated[int, option("Runs of each row.", "N", shown=True, min=1)] = 3,
    quick: Quick = False,
    vectors: VectorsFile = None,
    pretrained: Annotated[Path | None, PRETRAINED] = None,
    processes: Processes = None,
    preset: Preset = "default",
    set_: Settings = None,
    report: Report = False,
    quiet: Quiet = False,
) -> Answer:
    """Table 2: all rows of the paper, with TF-IDF and fastText, on its sets or on stand-ins.

    \b
    Examples:
      emhrnn paper table2 --data sets --vectors glove.npz
      emhrnn paper table2 --data sets --sets yelp-2013 --rows HN-ATT --rows 'EM-HRNN with local bootstrap'
      emhrnn paper table2 --data sets --quick
      emhrnn paper table2 --data sets --pretrained all-MiniLM-L6-v2 --rows 'all-MiniLM-L6-v2, fine-tuned'

    Known in --data: yelp-2013-train.txt.ss with -dev and -test (likewise 2014, 2015), yahoo_answers_csv,
    amazon_review_full_csv, yelp_review_full_csv, yelp_academic_dataset_review.json, Amazon's reviews_*.json.gz; and
    stand-ins (docs/compare.md). The report keeps the paper's numbers, those of the papers it cites, and ours apart, and
    says which may be compared. After Ctrl-C, the same command resumes. If a run fails, the others continue; the exit
    code is then 2, and the table says why.
    """
    from emhrnn.paper.comparison import Protocol
    from emhrnn.paper.jobs import HowToRun
    from emhrnn.paper.table2 import reproduce_table2

    work = work or Path("runs/table2-quick" if quick else "runs/table2")
    out = out or (work if quick else Path("results"))  # a quick table must not replace the real one
    result = reproduce_table2(
        data,
        out,
        work=work,
        how=HowToRun(processes or cores(), report, None if quiet else complain),
        protocol=Protocol(1 if quick else seeds, preset, None, tuple(set_ or ()), vectors),
        sets=sets or (),
        rows=rows or (),
        pretrained=pretrained,
        quick=quick,
    )
    told = f"Beside the paper's numbers: {out / 'table2.md'}; as data: {out / 'table2.json'}"
    return _answer(result.table, result.to_dict(), told)


def _answer(table: "ComparisonTable", facts: dict[str, object], where: str) -> Answer:
    from emhrnn.paper.comparison.table import terminal_tables

    return Answer(facts, f"{terminal_tables(table)}\n\n{where}", table.failed)


READINGS = "independent,state,vocabulary"
METHODS = "hm-rnn,mhs-rnn,window-1,window-2,window-5,local,exact,printed-q,true-z"


def table1(
    reading: Annotated[str, option("Some of these, with commas.", "NAMES", shown=True)] = READINGS,
    methods: Annotated[str, option("Some of these, with commas.", "NAMES", shown=True)] = METHODS,
    seeds: Annotated[int, option("Worlds to average over: seeds 10, 11, ...", "N", shown=True, min=1)] = 5,
    quick: Quick = False,
    out: Annotated[
        Path | None, option("Folder to write to.", "FOLDER", shown="results; of a part or quick: the work")
    ] = None,
    work: Annotated[Path | None, option("Folder for the finished runs.", "FOLDER", shown="runs/table1[-quick]")] = None,
    figures: Annotated[bool, option("Draw the figure; needs emhrnn[plots].", shown=True)] = True,
    report: Report = False,
    processes: Processes = None,
    quiet: Quiet = False,
) -> Answer:
    """Table 1: which share of simulated phrase ends does each method recover?

    \b
    Readings of the paper's text (docs/simulation.md):
      independent   z is a coin toss: nothing to learn, every method must stay at chance
      state         z follows from the teacher's word states; the rest of the network is known
      vocabulary    z follows from the token; everything is learned from the labels alone
    \b
    Examples:
      emhrnn paper table1
      emhrnn paper table1 --reading vocabulary --methods exact,local --seeds 2

    About an hour on two cores; with --quick, a few minutes on one. After Ctrl-C, the same command resumes. Writes
    table1.md, table1.json and a figure.
    """
    from emhrnn.paper.jobs import HowToRun
    from emhrnn.paper.simulation import SimulationPlan, SimulationSizes, simulate

    part = reading != READINGS or methods != METHODS
    work = work or Path("runs/table1-quick" if quick else "runs/table1")
    out = out or (work if quick or part else Path("results"))  # a quick table or a part must not replace the real one
    table = simulate(
        SimulationPlan(
            readings=_names(reading),
            methods=_names(methods),
            seeds=seeds,
            sizes=SimulationSizes.quick() if quick else SimulationSizes(),
            figures=figures,
        ),
        out,
        work,
        HowToRun(processes or cores(), report, None if quiet else complain),
    )
    failed = [failure.partition(": ")[0] for failure in table.failures]
    return Answer(table.to_dict(), f"{table.to_markdown()}\n{report_at(out, 'table1')}", failed)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


Em = Annotated[Path, argument("A run of em-hrnn.", "EM")]
Mhs = Annotated[Path, argument("A run of mhs-rnn-att.", "MHS")]


def table3(
    em: Em,
    mhs: Mhs,
    data: Data,
    out: Annotated[Path, option("Folder for table3.md, .json.", "FOLDER", shown=True)] = Path("results"),
    words: Annotated[
        str, option("Words to look at, with commas.", "WORDS", shown=True)
    ] = "good,bad,great,sad,excellent",
    documents: Annotated[int, option("Documents to draw.", "N", shown=True, min=1)] = 200,
    seed: Annotated[int, option("Seed of the draw.", "N", shown=True, min=0)] = 0,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    quiet: Quiet = False,
) -> Answer:
    """Table 3: phrase lengths, attention and decisive words of EM-HRNN and MHS-RNN, beside the paper's numbers.

    \b
    Example:
      emhrnn train train.jsonl --model em-hrnn --vectors glove.npz --out em
      emhrnn train train.jsonl --model mhs-rnn-att --vectors glove.npz --out mhs
      emhrnn paper table3 em mhs test.jsonl

    The table contains no text of the data, except short phrases.
    """
    from emhrnn.errors import ConfigError
    from emhrnn.paper.analysis.table3 import render_table3, reproduce_table3

    chosen = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if not chosen:
        raise ConfigError(f"--words {words!r} names no word; give some with commas")
    table = reproduce_table3(
        em,
        mhs,
        DataOptions(text_column, label_column).named(data),
        out,
        words=chosen,
        documents=documents,
        seed=seed,
        progress=not quiet,
    )
    return Answer(table.to_dict(), f"{render_table3(table)}\n{report_at(out, 'table3')}")


def figures(
    em: Em,
    mhs: Mhs,
    text: Annotated[Path | None, option("A file with the document.", "FILE", shown="a generated review")] = None,
    out: Annotated[Path, option("Folder for the figures.", "FOLDER", shown=True)] = Path("results/figures"),
    json: Json = False,
) -> None:
    """Figures 4 and 5: one document under MHS-RNN and under EM-HRNN, // between phrases, colour by attention.

    \b
    Examples:
      emhrnn paper figures em mhs
      emhrnn paper figures em mhs --text review.txt

    EM and MHS are runs as for `emhrnn paper table3`. Writes figures.html, figures.txt and figures.json.
    """
    from emhrnn.errors import DataError
    from emhrnn.explain.terminal import print_explanation
    from emhrnn.paper.analysis.table3 import draw_figures

    if text is not None and not text.is_file():
        raise DataError(f"{text} is not a file; give the document's file with --text")
    content = None if text is None else text.read_bytes().decode("utf-8-sig", errors="replace")
    found = draw_figures(em, mhs, out, text=content)
    if json:
        print_json(found.to_dict())
        return
    for explanation in (found.mhs, found.em):
        print_explanation(explanation)
        say("")
    say(f"As a page: {out / 'figures.html'}; as data: {out / 'figures.json'}")
