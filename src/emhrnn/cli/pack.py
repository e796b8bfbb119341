"""`emhrnn pack`: a run as one file."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import RunFolder, option
from emhrnn.cli.output import Answer


def pack(
    run: RunFolder,
    out: Annotated[Path | None, option("File to write; it is replaced.", "FILE", shown="RUN.emhrnn")] = None,
) -> Answer:
    """Write a run as one file without training data, checkpoints and paths, to move it or to send it.

    \b
    Examples:
      emhrnn pack run                              # writes run.emhrnn
      emhrnn pack run --out models/complaints.emhrnn
      emhrnn predict run.emhrnn new.csv --out labels.csv

    Every command that takes a RUN takes the file, and so does `emhrnn.load`; nothing in it is executed. Prints what
    the file still reveals about the training data: words of the vocabulary, names and counts of classes.
    """
    from emhrnn.training.pack import pack as write

    result = write(run, out)
    lines = [f"{result.path}: {result.bytes / 1e6:.1f} MB"]
    if result.left_out:
        lines.append(f"left out: {', '.join(result.left_out)}; the command line and all paths")
    lines += ["It still reveals about the training data:", *(f"- {line}" for line in result.holds)]
    return Answer(result.to_dict(), "\n".join(lines))
