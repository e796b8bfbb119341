"""`emhrnn evaluate`: how good a run is on labelled data."""

from typing import Annotated

import typer

from emhrnn.products.cli.options import Data, Format, Json, LabelColumn, Quiet, RunFolder, Split, TextColumn


def evaluate(
    run: RunFolder,
    data: Data,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    confusion: Annotated[bool, typer.Option(help="Show the confusion matrix.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a run on labelled data: accuracy, macro-F1, each class, confusion, phrase lengths."""
    from emhrnn.corpus import Columns
    from emhrnn.products.cli.printing import print_json, say
    from emhrnn.products.cli.tables import score_tables
    from emhrnn.products.evaluating import evaluate_run
    from emhrnn.training.data import Named

    columns = Columns(text=text_column, label=label_column)
    scores = evaluate_run(run, Named(path=data, format=format, columns=columns, split=split), progress=not quiet)
    if json:
        print_json(scores.to_dict())
    else:
        say(score_tables(scores, confusion=confusion))
