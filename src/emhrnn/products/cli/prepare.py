"""`emhrnn prepare`: text once into word ids, so that many runs can share it."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Data, Format, Json, LabelColumn, Quiet, Split, TextColumn


def prepare(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder to write the prepared corpus to.", show_default=False)],
    min_count: Annotated[int, typer.Option(min=1, help="Words seen less often become unknown.")] = 2,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that tokenise; the result is the same.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a corpus that is already there.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse rows that would be skipped or repaired.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Turn a file of any size into a prepared corpus: split, tokenised, encoded, memory-mapped, checksummed.

    Training on a file does this by itself. Prepare when you train on the same data more than once.
    """
    from emhrnn.corpus import Columns
    from emhrnn.corpus import prepare as prepare_corpus
    from emhrnn.products.cli.printing import print_json, say

    columns = Columns(text=text_column, label=label_column)
    corpus = prepare_corpus(
        data, out, format=format, columns=columns, split=split, min_count=min_count, workers=workers,
        strict=strict, overwrite=overwrite, progress=not quiet,
    )  # fmt: skip
    if json:
        print_json({"corpus": str(out), **corpus.report.to_dict()})
    else:
        say(str(corpus.report))
        say(f"\nNext: emhrnn train {out} --out run")
