"""`emhrnn paper prepare`: text once into word ids, so that many runs can share it."""

import shlex
from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Data, Format, Json, LabelColumn, Quiet, Split, TextColumn, WeightColumn, flag, option


def prepare(
    data: Data,
    out: Annotated[Path, option("Folder for the prepared corpus.", "FOLDER")],
    like: Annotated[
        Path | None,
        option("Use the words, classes and text settings of this run, to evaluate it on DATA.", "RUN", shown="none"),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    weight_column: WeightColumn = None,
    format: Format = None,
    split: Split = None,
    min_count: Annotated[
        int, option("Words seen less often are lost for good; training has its own limit.", "N", shown=True, min=1)
    ] = 1,
    lowercase: Annotated[bool, option("Read words in lower case.", shown=True)] = True,
    max_sentence_words: Annotated[int | None, option("Cut longer sentences.", "N", shown="no cap", min=1)] = None,
    max_sentences: Annotated[int | None, option("Cut longer documents.", "N", shown="no cap", min=1)] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace a corpus that is at --out.")] = False,
    strict: Annotated[bool, flag("--strict", "Refuse rows that would be skipped or repaired.")] = False,
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
    from emhrnn.text.language import AUTO

    columns = Columns(text=text_column, label=label_column, weight=weight_column)
    limits = TextLimits(max_words_per_sentence=max_sentence_words, max_sentences=max_sentences)
    vocabulary, classes, text = None, None, TextSettings(language=AUTO, lowercase=lowercase, limits=limits)
    if like is not None:
        from emhrnn.training.run import load_run

        if text != TextSettings(language=AUTO) or min_count != 1:
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
