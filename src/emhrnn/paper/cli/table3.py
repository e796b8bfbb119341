"""`emhrnn paper table3` and `figures`: how EM-HRNN and MHS-RNN read their documents."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Data, Json, LabelColumn, Quiet, TextColumn, argument, named, option

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
    seed: Annotated[int, option("Of the draw.", "N", shown=True, min=0)] = 0,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Table 3: phrase lengths, attention and decisive words of EM-HRNN and MHS-RNN, beside the paper's numbers.

    \b
    Example:
      emhrnn train train.jsonl --model em-hrnn --vectors glove.npz --out em
      emhrnn train train.jsonl --model mhs-rnn-att --vectors glove.npz --out mhs
      emhrnn paper table3 em mhs test.jsonl

    No text of the data but short phrases is in the table.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import ConfigError
    from emhrnn.paper.analysis.analyse import Question
    from emhrnn.paper.analysis.table3 import render_table3, reproduce_table3

    chosen = tuple(dict.fromkeys(word.strip() for word in words.split(",") if word.strip()))
    if not chosen:
        raise ConfigError(f"--words {words!r} names no word; give some with commas")
    given = f"{em.name} {mhs.name} {data.name} --words {words} --documents {documents} --seed {seed}"
    table = reproduce_table3(
        em,
        mhs,
        named(data, text_column, label_column, None),
        out,
        question=Question(words=chosen, documents=documents, seed=seed),
        command=f"emhrnn paper table3 {given}",
        progress=not quiet,
    )
    if json:
        print_json(table.to_dict())
        return
    say(render_table3(table))
    say(f"This is in {out / 'table3.md'}, as data in {out / 'table3.json'}.")


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

    EM and MHS are runs as for `emhrnn paper table3`. Writes figure4.svg, figure5.svg, figures.html, figures.txt and
    figures.json.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import DataError
    from emhrnn.explain.terminal import print_explanation
    from emhrnn.paper.analysis.figures import draw_figures

    if text is not None and not text.is_file():
        raise DataError(f"{text} is no file; give the document's file with --text")
    content = None if text is None else text.read_bytes().decode("utf-8-sig", errors="replace")
    command = f"emhrnn paper figures {em.name} {mhs.name}" + ("" if text is None else f" --text {text.name}")
    found = draw_figures(em, mhs, out, command=command, text=content)
    if json:
        print_json(found.to_dict())
        return
    for explanation in (found.mhs, found.em):
        print_explanation(explanation)
        say("")
    say(f"As drawings: {out / 'figure4.svg'}, {out / 'figure5.svg'}; as a page: {out / 'figures.html'}")
