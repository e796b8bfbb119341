"""`emhrnn paper check`."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Json, argument


def check(
    root: Annotated[Path, argument("Folder of a checkout; by default this one.", "FOLDER")] = Path("."),
    json: Json = False,
) -> None:
    """Check that every figure which the README and the docs state stands in the kept records.

    \b
    Example:
      emhrnn paper check

    Recomputes table 2 and the report of phrase evidence from their runs, and looks up each figure in per cent or points
    in the results that its paragraph names. The exit code is 1 if one differs or has no record. Nothing is trained.
    """
    from dataclasses import asdict

    from emhrnn.cli.output import print_json, say
    from emhrnn.paper.check import check_records

    problems = check_records(root)
    if json:
        print_json({"problems": [asdict(problem) for problem in problems]})
    else:
        for problem in problems:
            say(str(problem))
        say(f"{len(problems)} figures or tables differ from the records." if problems else "All figures have a record.")
    if problems:
        raise typer.Exit(1)
