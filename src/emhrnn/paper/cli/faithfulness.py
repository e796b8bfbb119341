"""`emhrnn paper faithfulness`: are the explanations true of the model?"""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Data, Format, Json, Quiet, Report, RunFolder, Split, TextColumn
from emhrnn.paper.cli.compare import Processes


def faithfulness(
    run: RunFolder,
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.", metavar="FOLDER")] = Path(
        "runs/faithfulness"
    ),
    documents: Annotated[int, typer.Option(help="How many to draw.", metavar="N")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw and of random removal.", metavar="N")] = 0,
    figure: Annotated[bool, typer.Option(help="Draw the curves; needs emhrnn[plots].")] = True,
    report: Report = False,
    text_column: TextColumn = None,
    format: Format = None,
    split: Split = None,
    processes: Processes = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take out what the explanations call important, and see how far the predicted probability falls.

    \b
    Compared, by words, phrases and sentences, with what each costs (docs/explanations.md):
      attention             where the model looked
      weight x effect       which way it pushed: what `emhrnn explain` shows
      ... looking twice     through the word layer, and once more: `emhrnn explain --thorough`
      random                as a floor
      integrated gradients  by captum (emhrnn[analysis])
      occlusion             every word, phrase and sentence really taken out, one by one
    \b
    Example:
      emhrnn paper faithfulness run test.csv --out results

    Stopped by Ctrl-C, the same command goes on where it was. Writes faithfulness.md, .json and .svg.
    """
    import sys

    from emhrnn.cli.output import print_json, say
    from emhrnn.cores import cores
    from emhrnn.corpus import Columns
    from emhrnn.paper.faithfulness.measure import FaithfulnessPlan, measure_faithfulness
    from emhrnn.paper.faithfulness.table import to_markdown
    from emhrnn.training.data import Named

    def tell(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    table = measure_faithfulness(
        run,
        Named(path=data, format=format, columns=Columns(text=text_column, labelled=False), split=split),
        FaithfulnessPlan(documents=documents, seed=seed, figure=figure, report=report),
        out,
        command=f"emhrnn paper faithfulness {run.name} {data.name} --documents {documents} --seed {seed}",
        processes=processes or cores(),
        progress=not (quiet or json),
        say=tell,
    )
    if json:
        print_json(table.to_dict())
        return
    say(to_markdown(table))
    say(f"This is in {out / 'faithfulness.md'}, as data in {out / 'faithfulness.json'}.")
