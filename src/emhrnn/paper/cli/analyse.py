"""`emhrnn paper analyse`, `table3` and `figures`: how one run, or two, read their documents."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emhrnn.cli.options import Format, Json, LabelColumn, Quiet, Settings, Split, TextColumn
from emhrnn.paper.cli.compare import Preset, Processes, VectorsFile

if TYPE_CHECKING:
    from emhrnn.paper.analysis.table3 import Pair


PAPER_WORDS = "good,bad,great,sad,excellent"
Words = Annotated[
    str, typer.Option(help="Words to look at, with commas; or auto: those most tied to each class.", metavar="WORDS")
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="Only so many rows, drawn at random with the seed.", metavar="N", show_default="all"),
]


def analyse(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN [RUN2] DATA", help="One run or two, then the data.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write to.", metavar="FOLDER", show_default=False)
    ] = None,
    words: Words = PAPER_WORDS,
    documents: Annotated[
        int, typer.Option(min=1, help="Documents to draw for the comparison of two runs.", metavar="N")
    ] = 200,
    sample: Sample = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw, and of left and right in judge.html.")] = 0,
    votes: Annotated[
        Path | None,
        typer.Option(
            help="Count the votes that judge.html saved; --out is the folder of its analysis.", metavar="FILE"
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How models read: phrase lengths, attention of words against chance, decisive words, phrases that move a class.

    \b
    Examples:
      emhrnn paper analyse run test.csv --out analysis
      emhrnn paper analyse run other-run test.csv --out analysis --words auto
      emhrnn paper analyse --votes votes.json --out analysis

    Writes report.html, report.md and report.json. With two runs also judge.html: documents in which they name different
    decisive words, for a person to judge blind; it saves votes.json, which the last command counts. Works with models
    that weigh words and sentences (`emhrnn models`). Labels are used where there are some.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import ConfigError

    if out is None:
        raise ConfigError("no folder to write to; give one with --out FOLDER")
    if votes is not None:
        from emhrnn.files import write_json
        from emhrnn.paper.analysis.judge import VERDICT, count_votes

        if paths:
            raise ConfigError("votes are counted without runs and data; give --votes FILE --out FOLDER alone")
        verdict = count_votes(votes, out)
        write_json(out / VERDICT, verdict.to_dict())
        print_json(verdict.to_dict()) if json else say(str(verdict))
        return
    if paths is None or not 2 <= len(paths) <= 3:
        raise ConfigError(f"{len(paths or ())} paths were given; give one run or two, then the data")

    from emhrnn.corpus import Columns
    from emhrnn.files import check_free
    from emhrnn.paper.analysis.analyse import Question
    from emhrnn.paper.analysis.analyse import analyse as run
    from emhrnn.paper.analysis.report import terminal_tables, write_analysis
    from emhrnn.training.data import Named

    check_free(out, overwrite=True)
    data = Named(path=paths[-1], format=format, columns=Columns(text=text_column, label=label_column), split=split)
    names = " ".join(path.name for path in paths)
    analysis = run(
        paths[:-1],
        data,
        Question(words=_words_of(words), documents=documents, seed=seed, sample=sample),
        command=f"emhrnn paper analyse {names} --words {words} --documents {documents} --seed {seed}"
        + (f" --sample {sample}" if sample else ""),
        progress=not quiet,
    )
    write_analysis(analysis, out)
    if json:
        print_json(analysis.to_dict())
        return

    say(terminal_tables(analysis))
    say(f"\nAs a page: {out / 'report.html'}; as data: {out / 'report.json'}; as Markdown: {out / 'report.md'}")
    if analysis.agreement is not None and analysis.disagreements:
        say(f"{len(analysis.disagreements)} disagreements to judge: {out / 'judge.html'}")


def _words_of(text: str) -> tuple[str, ...] | None:
    from emhrnn.errors import ConfigError

    if text.strip() == "auto":
        return None
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise ConfigError(f"--words {text!r} names no word; give some with commas, or auto")
    return words


Em = Annotated[Path | None, typer.Option("--em", help="A run of em-hrnn.", metavar="RUN", show_default="trained here")]
Mhs = Annotated[
    Path | None, typer.Option("--mhs", help="A run of mhs-rnn-att.", metavar="RUN", show_default="trained here")
]
Train = Annotated[
    Path | None, typer.Option("--train", help="Data to train both on.", metavar="DATA", show_default=False)
]
Work = Annotated[Path, typer.Option("--work", help="Folder for the runs that are trained here.", metavar="FOLDER")]


def table3(
    data: Annotated[Path, typer.Option("--data", help="Documents to read, best not those of the training.")],
    em: Em = None,
    mhs: Mhs = None,
    train: Train = None,
    vectors: VectorsFile = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for table3.md, .json.", metavar="FOLDER")] = Path(
        "results"
    ),
    work: Work = Path("runs/table3"),
    words: Words = PAPER_WORDS,
    documents: Annotated[int, typer.Option(min=1, help="Documents to draw.", metavar="N")] = 200,
    sample: Sample = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.")] = 0,
    votes: Annotated[
        Path | None, typer.Option(help="Votes that WORK/analysis/judge.html saved.", metavar="FILE", show_default=False)
    ] = None,
    preset: Preset = "default",
    set_: Settings = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    processes: Processes = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Table 3: phrase lengths, attention and decisive words of EM-HRNN and MHS-RNN, beside the paper's numbers.

    \b
    Examples:
      emhrnn paper table3 --train train.jsonl --data test.jsonl --vectors glove.npz --set training.epochs=5
      emhrnn paper table3 --em run --mhs other-run --data test.jsonl

    The whole analysis, with judge.html, is written to WORK/analysis. Stopped by Ctrl-C, the same command goes on
    training where it was. No text of the data but short phrases is in the table.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.corpus import Columns
    from emhrnn.paper.analysis.analyse import Question
    from emhrnn.paper.analysis.report import terminal_tables
    from emhrnn.paper.analysis.table3 import reproduce_table3
    from emhrnn.training.data import Named

    named = Named(path=data, columns=Columns(text=text_column, label=label_column))
    given = _given(
        ("--em", em), ("--mhs", mhs), ("--train", train), ("--vectors", vectors), ("--data", data), ("--votes", votes)
    )
    sets = "".join(f" --set {assignment}" for assignment in set_ or ())
    table = reproduce_table3(
        _pair(em, mhs, train, vectors, preset, set_, text_column, label_column),
        named,
        out,
        work,
        question=Question(words=_words_of(words), documents=documents, seed=seed, sample=sample),
        votes=votes,
        command=f"emhrnn paper table3{given} --words {words} --documents {documents} --seed {seed}"
        + (f" --sample {sample}" if sample else "")
        + sets,
        processes=processes,
        progress=not quiet,
        say=_teller(quiet),
    )
    if json:
        print_json(table.to_dict())
        return

    say(terminal_tables(table.analysis))
    say(f"\nBeside the paper's numbers: {out / 'table3.md'}; as data: {out / 'table3.json'}")
    say(f"The whole analysis: {work / 'analysis' / 'report.html'}")


def figures(
    em: Em = None,
    mhs: Mhs = None,
    train: Train = None,
    vectors: VectorsFile = None,
    text: Annotated[
        Path | None,
        typer.Option("--text", help="A file with the document.", metavar="FILE", show_default="a review of our own"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the figures.", metavar="FOLDER")] = Path(
        "results/figures"
    ),
    work: Work = Path("runs/table3"),
    preset: Preset = "default",
    set_: Settings = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    processes: Processes = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Figures 4 and 5: one document under MHS-RNN and under EM-HRNN, // between phrases, colour by attention.

    \b
    Examples:
      emhrnn paper figures --em run --mhs other-run
      emhrnn paper figures --train train.jsonl --vectors glove.npz --text review.txt

    With the same --train, --set and --work as `paper table3`, its runs are used. Writes figure4.svg, figure5.svg,
    figures.html, figures.txt and figures.json.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.cores import cores
    from emhrnn.errors import DataError
    from emhrnn.explain.terminal import print_explanation
    from emhrnn.paper.analysis.figures import draw_figures

    if text is not None and not text.is_file():
        raise DataError(f"{text} is no file; give the document's file with --text")
    content = None if text is None else text.read_bytes().decode("utf-8-sig", errors="replace")
    pair = _pair(em, mhs, train, vectors, preset, set_, text_column, label_column)
    folders = pair.folders(work, processes=processes or cores(), progress=not quiet, say=_teller(quiet))
    given = _given(("--em", em), ("--mhs", mhs), ("--train", train), ("--vectors", vectors), ("--text", text))
    found = draw_figures(*folders, out, command=f"emhrnn paper figures{given}", text=content)
    if json:
        print_json(found.to_dict())
        return
    for explanation in (found.mhs, found.em):
        print_explanation(explanation)
        say("")
    say(f"As drawings: {out / 'figure4.svg'}, {out / 'figure5.svg'}; as a page: {out / 'figures.html'}")


def _pair(
    em: Path | None,
    mhs: Path | None,
    train: Path | None,
    vectors: Path | None,
    preset: str,
    assignments: list[str] | None,
    text_column: str | None,
    label_column: str | None,
) -> "Pair":
    from emhrnn.paper.analysis.table3 import Pair

    return Pair(em, mhs, train, vectors, preset, tuple(assignments or ()), text_column, label_column)


def _given(*options: tuple[str, Path | None]) -> str:
    """As typed, but without the folders of this machine."""
    return "".join(f" {name} {path.name}" for name, path in options if path is not None)


def _teller(quiet: bool) -> Callable[[str], None]:
    from emhrnn.cli.output import complain

    return (lambda _: None) if quiet else complain
