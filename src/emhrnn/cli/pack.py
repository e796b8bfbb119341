"""`emhrnn pack`: a run as one file."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, RunFolder, option


def pack(
    run: RunFolder,
    out: Annotated[Path | None, option("File to write; it is replaced.", "FILE", shown="RUN.emhrnn")] = None,
    json: Json = False,
) -> None:
    """Write a run as one file without training data, checkpoints and paths, to move it or to send it.

    \b
    Examples:
      emhrnn pack run                              # writes run.emhrnn
      emhrnn pack run --out models/complaints.emhrnn
      emhrnn predict run.emhrnn new.csv --out labels.csv

    Every command that takes a RUN takes the file, and so does `emhrnn.load`; nothing in it is executed. Prints what
    the file still reveals about the training data: words of the vocabulary, names and counts of classes.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.training.pack import pack as write

    result = write(run, out)
    if json:
        print_json(result.to_dict())
        return
    say(f"{result.path}: {result.bytes / 1e6:.1f} MB")
    if result.left_out:
        say(f"left out: {', '.join(result.left_out)}; the command line and all paths")
    say("It still reveals about the training data:")
    for line in result.holds:
        say(f"- {line}")
