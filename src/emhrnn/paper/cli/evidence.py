"""`emhrnn paper evidence`: learned against fixed segmentations of phrase evidence."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, flag, option


def evidence(
    report: Annotated[bool, flag("--report", "Write the report of the records that are there.")] = False,
    results: Annotated[Path, option("Folder with the records.", "FOLDER", shown=True)] = Path("results"),
    out: Annotated[Path | None, option("Folder to write to.", "FOLDER", shown="the results")] = None,
    json: Json = False,
) -> None:
    """Learned segmentations of phrase evidence against fixed ones, and beside the rows of table 2, with paired tests.

    \b
    Each set is a comparison in RESULTS/evidence-SET, made by
      emhrnn compare SET=FILE --models 'learned=evidence,words=evidence[model.segmentation=words],...' \\
          --reference learned --out RESULTS/evidence-SET
    Example:
      emhrnn paper evidence --report

    Writes evidence.md and evidence.json from these records and those of RESULTS/table2. Nothing is trained.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import ConfigError
    from emhrnn.paper.evidence import report_evidence

    if not report:
        raise ConfigError("this command only reports; give --report, and train new sets with `emhrnn compare`")
    out = out or results
    found = report_evidence(results, out, command="emhrnn paper evidence --report")
    if json:
        print_json(found.to_dict())
    else:
        say(f"{', '.join(one.name for one in found.sets)}: {out / 'evidence.md'}, as data {out / 'evidence.json'}")
