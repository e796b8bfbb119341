"""`emhrnn evaluate`: how good a run is on labelled data."""

from typing import Annotated

import typer

from emhrnn.cli.options import Data, Format, Json, LabelColumn, Quiet, RunFolder, Split, TextColumn


def evaluate(
    run: RunFolder,
    data: Data,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    segmentation: Annotated[
        str,
        typer.Option(
            metavar="RULE", help="Phrases as learned, or none, words, punctuation, random, every-K; all: all of them."
        ),
    ] = "learned",
    expert: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Let only the recurrent layers or the ngrams speak, with what they learned.",
            show_default="both",
        ),
    ] = None,
    confusion: Annotated[bool, typer.Option(help="Show the confusion matrix.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a run on labelled data: accuracy, macro-F1, calibration, each class, confusion, phrase lengths.

    \b
    Examples:
      emhrnn evaluate run test.csv
      emhrnn evaluate run all.parquet --split test --json
      emhrnn evaluate run test.csv --segmentation all       # what do the learned phrases do for it?
      emhrnn evaluate run test.csv --expert recurrent       # what do the recurrent layers know alone?

    A label that the run has never seen is an error. Rows without text or label are skipped, and counted on stderr.
    """
    from emhrnn.cli.printing import complain, print_json, say, tell_of_rows
    from emhrnn.cli.tables import cut_tables, score_tables
    from emhrnn.corpus import Columns
    from emhrnn.errors import ConfigError
    from emhrnn.products.cutting import compare_cuts
    from emhrnn.products.evaluating import evaluate_run
    from emhrnn.training.data import Named, learned_from

    columns = Columns(text=text_column, label=label_column)
    named = Named(path=data, format=format, columns=columns, split=split)
    if segmentation == "all":
        if expert is not None:
            raise ConfigError("--segmentation all looks at the whole model; leave out --expert")
        cuts = compare_cuts(run, named, progress=not quiet)
        skipped, repaired, facts, told = cuts.skipped, cuts.repaired, cuts.to_dict(), cut_tables(cuts)
    else:
        evaluated = evaluate_run(run, named, segmentation=segmentation, expert=expert, progress=not quiet)
        skipped, repaired = evaluated.skipped, evaluated.repaired
        facts = {**evaluated.scores.to_dict(), "skipped": skipped, "repaired": repaired}
        told = score_tables(evaluated.scores, confusion=confusion)
    tell_of_rows(str(data), skipped, repaired)
    if learned_from(run, named):
        complain(f"{data} holds documents that {run} was trained on: scores on them say little about new ones")
    if json:
        print_json(facts)
    else:
        say(told)
