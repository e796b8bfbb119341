"""`emhrnn paper chunks`: learned phrases beside a linguist's."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, RunFolder, argument, option


def chunks(
    run: RunFolder,
    conll: Annotated[Path, argument("conll2000.zip, or a file of its format.", "CONLL")],
    other: Annotated[list[Path] | None, option("Another run; may be repeated.", "RUN")] = None,
    part: Annotated[str, option("train or test, of a zip.", "NAME", shown=True)] = "test",
    out: Annotated[Path, option("Folder to write to.", "FOLDER", shown=True)] = Path("runs/chunks"),
    seed: Annotated[int, option("Of the random segmentation.", "N", shown=True, min=0)] = 0,
    json: Json = False,
) -> None:
    """Do phrase ends that were learned from labels alone agree with gold chunks? Precision, recall, F1.

    \b
    Beside the run, at the same rate where that can be: random, every K words, punctuation, every word.
    Example:
      emhrnn paper chunks run conll2000.zip --out results

    Ends of sentences are left out. Writes chunks.md and chunks.json.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.paper.chunks import chunk_table

    runs = [run, *(other or [])]
    names = " ".join([run.name, conll.name, *(f"--other {folder.name}" for folder in runs[1:])])
    table = chunk_table(
        runs, conll, part, out, command=f"emhrnn paper chunks {names} --part {part} --seed {seed}", seed=seed
    )
    if json:
        print_json(table.to_dict())
    else:
        say(table.to_markdown())
        say(f"This is in {out / 'chunks.md'}, as data in {out / 'chunks.json'}.")
