"""`emhrnn predict`: labels and probabilities for a file of any size."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Data, Format, Json, Quiet, RunFolder, Split, TextColumn


def predict(
    run: RunFolder,
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="File to write: .parquet, .csv or .jsonl.", show_default=False)],
    text_column: TextColumn = None,
    format: Format = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify every row of a file: one row out for each row in, in the same order, with its id.

    Rows without words get the prediction for one unknown word, so that rows in and rows out are the same.
    """
    import time

    from emhrnn.corpus import Columns
    from emhrnn.products.cli.printing import print_json, say
    from emhrnn.products.scoring import score_file
    from emhrnn.training.data import Named
    from emhrnn.training.run import load_run

    began = time.perf_counter()
    columns = Columns(text=text_column, labelled=False)
    scored = score_file(
        load_run(run), Named(path=data, format=format, columns=columns, split=split), out, progress=not quiet
    )
    seconds = time.perf_counter() - began
    if json:
        print_json({"out": str(out), "rows": scored.rows, "words": scored.words, "seconds": seconds})
    else:
        say(f"{scored.rows:,} rows to {out} in {seconds:.1f} s, {scored.words / seconds:,.0f} words/s")
