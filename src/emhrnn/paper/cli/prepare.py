"""`emhrnn paper prepare`: text once into word ids, so that many runs can share it."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Data, Format, Json, LabelColumn, Quiet, Split, TextColumn, WeightColumn


def prepare(
    data: Data,
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the prepared corpus.", metavar="FOLDER", show_default=False)
    ],
    like: Annotated[
        Path | None,
        typer.Option(
            help="Use the words, classes and text settings of this run, to evaluate it on DATA.",
            metavar="RUN",
            show_default="none",
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    weight_column: WeightColumn = None,
    format: Format = None,
    split: Split = None,
    min_count: Annotated[
        int,
        typer.Option(min=1, help="Words seen less often are lost for good; training has its own limit.", metavar="N"),
    ] = 1,
    lowercase: Annotated[bool, typer.Option(help="Read words in lower case.")] = True,
    max_sentence_words: Annotated[
        int | None, typer.Option(min=1, help="Cut longer sentences.", metavar="N", show_default="no cap")
    ] = None,
    max_sentences: Annotated[
        int | None, typer.Option(min=1, help="Cut longer documents.", metavar="N", show_default="no cap")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a corpus that is at --out.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse rows that would be skipped or repaired.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Turn a file of any size into a prepared corpus: split, tokenised, encoded, memory-mapped, checksummed.

    \b
    Examples:
      emhrnn paper prepare reviews.jsonl.gz --out reviews.corpus
      emhrnn paper prepare test.csv --out test.corpus --like run

    Training on a file does this by itself; prepare when you use the same data more than once. The report counts the
    rows that were skipped (no text, no label), repaired (broken UTF-8, NUL) or cut (docs/data.md).
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.corpus import Columns, TextSettings
    from emhrnn.corpus import prepare as prepare_corpus
    from emhrnn.text import TextLimits

    columns = Columns(text=text_column, label=label_column, weight=weight_column)
    limits = TextLimits(max_words_per_sentence=max_sentence_words, max_sentences=max_sentences)
    vocabulary, classes, text = None, None, TextSettings(lowercase=lowercase, limits=limits)
    if like is not None:
        from emhrnn.training.run import load_run

        if text != TextSettings() or min_count != 1:
            from emhrnn.errors import ConfigError

            raise ConfigError("--like takes words and text settings from the run; leave out the others")
        run = load_run(like)
        vocabulary, classes, text = run.vocabulary, run.classes, run.text
    corpus = prepare_corpus(
        data, out, format=format, columns=columns, split=split, vocabulary=vocabulary, classes=classes, text=text,
        min_count=min_count, strict=strict, overwrite=overwrite, progress=not quiet,
    )  # fmt: skip
    if json:
        print_json({"corpus": str(out), **corpus.report.to_dict()})
        return
    say(str(corpus.report))
    words = ["train", str(out), "--out", "run"] if like is None else ["evaluate", str(like), str(out)]
    say(f"\nNext: emhrnn {shlex.join(words)}")
