"""`emhrnn paper rationales`: do people agree with the explanations?"""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Json, RunFolder


def rationales(
    run: RunFolder,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="A file of human evidence, as published.", show_default=False)
    ],
    other: Annotated[
        list[Path] | None,
        typer.Option("--other", help="Another run; may be repeated.", metavar="RUN", show_default=False),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", help="Only this method; may be repeated.", metavar="NAME", show_default=False),
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="Split of DATA.", metavar="NAME", show_default="validation or test")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The run's positive class.", metavar="NAME", show_default="guessed")
    ] = None,
    documents: Annotated[int | None, typer.Option(help="How many to draw.", metavar="N", show_default="all")] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.", metavar="FOLDER")] = Path("runs/rationales"),
    seed: Annotated[int, typer.Option(min=0, help="Of intervals, draws and random scores.", metavar="N")] = 0,
    json: Json = False,
) -> None:
    """Compare explanations with evidence that people marked: agreement with intervals, and cost.

    \b
    DATA is one of:
      ERASER movies            tokens that are evidence: AUPRC, token F1, IOU F1
      SST trees                sentiment of every phrase: sign and rank of its effect
      edited IMDB pairs        is a word that the edit replaced among the best phrases? does the label flip?
      fine-grained sentences   sign of the effect of every sentence
    \b
    Methods, where the model allows them: evidence, removal, first-order, attention, integrated gradients (em-hrnn:
    emhrnn[analysis]), weights (tfidf-lr, nb-lr), alone, random; lime only by --method.
    \b
    Example:
      emhrnn paper rationales run eraser_movies.jsonl.gz --other hn --out results

    Writes rationales.md and rationales.json; sections of other sets that are there stay.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.paper.rationales.report import RationalePlan, compare_rationales, section_markdown

    runs = [run, *(other or [])]
    given = {"part": part, "positive": positive, "documents": documents}
    options = [f"--other {folder.name}" for folder in runs[1:]] + [f"--method '{name}'" for name in method or []]
    options += [f"--{name} {value}" for name, value in given.items() if value is not None]
    plan = RationalePlan(part=part, positive=positive, documents=documents, seed=seed)
    if method:
        plan = RationalePlan(part, positive, tuple(method), documents, seed)
    command = " ".join(["emhrnn paper rationales", run.name, data.name, *options, f"--seed {seed}"])
    section = compare_rationales(runs, data, out, plan=plan, command=command)
    if json:
        print_json(section)
    else:
        say(section_markdown(data.name, section))
        say(f"This is in {out / 'rationales.md'}, as data in {out / 'rationales.json'}.")
