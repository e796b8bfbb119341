"""`emhrnn paper table3` and `figures`: how EM-HRNN and MHS-RNN read their documents."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from emhrnn.cli.options import Json, LabelColumn, Preset, Quiet, Settings, TextColumn, VectorsFile, option
from emhrnn.paper.cli.compare import Processes

if TYPE_CHECKING:
    from emhrnn.paper.analysis.table3 import Pair


Em = Annotated[Path | None, option("A run of em-hrnn.", "RUN", shown="trained here")]
Mhs = Annotated[Path | None, option("A run of mhs-rnn-att.", "RUN", shown="trained here")]
Train = Annotated[Path | None, option("Data to train both on.", "DATA")]
Work = Annotated[Path, option("Folder for the runs that are trained here.", "FOLDER", shown=True)]


def table3(
    data: Annotated[Path, option("Documents to read, best not those of the training.", "DATA")],
    em: Em = None,
    mhs: Mhs = None,
    train: Train = None,
    vectors: VectorsFile = None,
    out: Annotated[Path, option("Folder for table3.md, .json.", "FOLDER", shown=True)] = Path("results"),
    work: Work = Path("runs/table3"),
    words: Annotated[
        str, option("Words to look at, with commas.", "WORDS", shown=True)
    ] = "good,bad,great,sad,excellent",
    documents: Annotated[int, option("Documents to draw.", "N", shown=True, min=1)] = 200,
    seed: Annotated[int, option("Of the draw.", "N", shown=True, min=0)] = 0,
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

    After Ctrl-C, the same command resumes training. No text of the data but short phrases is in the table.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.corpus import Columns
    from emhrnn.errors import ConfigError
    from emhrnn.paper.analysis.analyse import Question
    from emhrnn.paper.analysis.table3 import render_table3, reproduce_table3
    from emhrnn.training.data import Named

    chosen = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if not chosen:
        raise ConfigError(f"--words {words!r} names no word; give some with commas")
    named = Named(path=data, columns=Columns(text=text_column, label=label_column))
    given = _given(("--em", em), ("--mhs", mhs), ("--train", train), ("--vectors", vectors), ("--data", data))
    sets = "".join(f" --set {assignment}" for assignment in set_ or ())
    table = reproduce_table3(
        _pair(em, mhs, train, vectors, preset, set_, text_column, label_column),
        named,
        out,
        work,
        question=Question(words=chosen, documents=documents, seed=seed),
        command=f"emhrnn paper table3{given} --words {words} --documents {documents} --seed {seed}{sets}",
        processes=processes,
        progress=not quiet,
        say=_teller(quiet),
    )
    if json:
        print_json(table.to_dict())
        return
    say(render_table3(table))
    say(f"This is in {out / 'table3.md'}, as data in {out / 'table3.json'}.")


def figures(
    em: Em = None,
    mhs: Mhs = None,
    train: Train = None,
    vectors: VectorsFile = None,
    text: Annotated[Path | None, option("A file with the document.", "FILE", shown="a review of our own")] = None,
    out: Annotated[Path, option("Folder for the figures.", "FOLDER", shown=True)] = Path("results/figures"),
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
