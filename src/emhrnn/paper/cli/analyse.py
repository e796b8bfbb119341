"""`emhrnn paper analyse`: how one run, or two, read their documents."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Format, Json, LabelColumn, Quiet, Split, TextColumn


def analyse(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN [RUN2] DATA", help="One run or two, then the data.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to write to.", metavar="FOLDER", show_default=False)
    ] = None,
    words: Annotated[
        str,
        typer.Option(help="Words to look at, with commas; or auto: those most tied to each class.", metavar="WORDS"),
    ] = "good,bad,great,sad,excellent",
    documents: Annotated[
        int, typer.Option(min=1, help="Documents to draw for the comparison of two runs.", metavar="N")
    ] = 200,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Only so many rows, drawn at random with the seed.", metavar="N", show_default="all"),
    ] = None,
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
        from emhrnn.paper.analysis.votes import VERDICT, count_votes

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
    from emhrnn.paper.analysis.analyse import analyse as run
    from emhrnn.paper.analysis.passing import Question
    from emhrnn.paper.analysis.writing import write_analysis
    from emhrnn.training.data import Named

    check_free(out, overwrite=True)
    data = Named(path=paths[-1], format=format, columns=Columns(text=text_column, label=label_column), split=split)
    names = " ".join(path.name for path in paths)
    analysis = run(
        paths[:-1],
        data,
        Question(words=words_of(words), documents=documents, seed=seed, sample=sample),
        command=f"emhrnn paper analyse {names} --words {words} --documents {documents} --seed {seed}"
        + (f" --sample {sample}" if sample else ""),
        progress=not quiet,
    )
    write_analysis(analysis, out)
    if json:
        print_json(analysis.to_dict())
        return
    from emhrnn.paper.cli.analysis_tables import analysis_tables

    say(analysis_tables(analysis))
    say(f"\nAs a page: {out / 'report.html'}; as data: {out / 'report.json'}; as Markdown: {out / 'report.md'}")
    if analysis.agreement is not None and analysis.disagreements:
        say(f"{len(analysis.disagreements)} disagreements to judge: {out / 'judge.html'}")


def words_of(text: str) -> tuple[str, ...] | None:
    from emhrnn.errors import ConfigError

    if text.strip() == "auto":
        return None
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not words:
        raise ConfigError(f"--words {text!r} names no word; give some with commas, or auto")
    return words
