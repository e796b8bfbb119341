"""`emhrnn predict`: labels and probabilities for a file of any size."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Data, Format, Json, Quiet, RunFolder, Split, TextColumn


def predict(
    run: RunFolder,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="File to write: .parquet, .csv or .jsonl. It is replaced if it is there.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    text_column: TextColumn = None,
    format: Format = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify every row of a file: one row out for each row in, in the same order, with its id.

    \b
    Examples:
      emhrnn predict run new.csv --out labels.csv
      emhrnn predict run new.jsonl.gz --out labels.parquet --text-column body

    Columns out: id (the id column of DATA, else the row number from 0), label, and p_CLASS for every class. A row
    without words gets the prediction for one unknown word. FILE appears only when all rows are scored.
    """
    import time

    from emhrnn.corpus import Columns
    from emhrnn.products.cli.printing import print_json, say
    from emhrnn.products.scoring import check_out, score_file
    from emhrnn.training.data import Named

    check_out(out, data)
    from emhrnn.training.run import load_run

    began = time.perf_counter()
    named = Named(path=data, format=format, columns=Columns(text=text_column, labelled=False), split=split)
    try:
        scored = score_file(load_run(run), named, out, progress=not quiet)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{out} was not written") from None
    seconds = time.perf_counter() - began
    if json:
        print_json({"out": str(out), "rows": scored.rows, "words": scored.words, "seconds": seconds})
    else:
        say(f"{scored.rows:,} rows to {out} in {seconds:.1f} s, {scored.words / seconds:,.0f} words/s")
