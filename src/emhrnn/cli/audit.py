"""`emhrnn audit`: rows of labelled data that are probably wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from emhrnn.cli.options import GUESSED, Data, DataOptions, Json, Quiet, option

if TYPE_CHECKING:
    from emhrnn.audit import AuditReport

BOM = "\ufeff"  # or Excel takes UTF-8 for another encoding
SHOWN, WIDTH = 15, 60  # rows of a table in the terminal; characters of a text


def audit(
    data: Data,
    out: Annotated[
        Path | None, option("Write the suspects to a .csv to edit; with --corrections, the corrected data.", "FILE")
    ] = None,
    html: Annotated[Path | None, option("Write the report as one page.", "FILE")] = None,
    label_studio: Annotated[
        Path | None, option("Write the suspects as tasks (.json), and the interface beside them (.xml).", "FILE")
    ] = None,
    prodigy: Annotated[Path | None, option("Write the suspects as tasks (.jsonl).", "FILE")] = None,
    corrections: Annotated[
        Path | None,
        option(
            "Apply corrections: the edited .csv or .xlsx, or an export of Label Studio (.json) or Prodigy (.jsonl).",
            "FILE",
        ),
    ] = None,
    run: Annotated[
        Path | None, option("Judge the rows with this run, which was trained on other rows; nothing is trained.", "RUN")
    ] = None,
    limit: Annotated[int, option("Suspects and outliers to list.", "N", shown=True, min=1)] = 60,
    folds: Annotated[
        int | None,
        option("Folds of DATA; models of the other folds judge each.", "K", shown="10; 20 below 1,500 rows", min=2),
    ] = None,
    seed: Annotated[int, option("Same seed, same result.", "N", shown=True, min=0)] = 0,
    read: DataOptions = GUESSED,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find rows of labelled data to look at: unlikely labels, near-duplicates, outliers, classes that look alike.

    \b
    Examples:
      emhrnn audit reviews.csv                                   # a table in the terminal
      emhrnn audit reviews.csv --out suspects.csv --html audit.html
      emhrnn audit reviews.csv --corrections suspects.csv --out clean.csv
      emhrnn audit reviews.csv --label-studio tasks.json
      emhrnn audit new.csv --run run                             # run judges: seconds, and no torch

    A label is suspicious where models that were trained without the row give it a low probability. Fill the column
    new_label of suspects.csv, leave it empty where the label is right, and give the file back with --corrections. DATA
    itself is never changed.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.errors import ConfigError
    from emhrnn.files import write_text
    from emhrnn.training.pack import located

    run = None if run is None else located(run)
    given = read.named(data, run=run)
    if corrections is not None:
        from emhrnn.audit.report import corrected, corrections_in

        if out is None:
            raise ConfigError("--corrections needs a file for the corrected data; give --out FILE")
        rows, changed = corrected(given, corrections_in(corrections), out)
        if json:
            print_json({"out": str(out), "rows": rows, "changed": changed})
        else:
            say(f"{rows:,} rows to {out}, {changed:,} of them with another label")
        return
    if out is not None and out.suffix.lower() != ".csv":
        raise ConfigError(f"{out} is no .csv file; the suspects are written as csv, to be edited: give such a name")
    from emhrnn.audit import audit as find
    from emhrnn.audit.report import label_studio_config, report_page, to_csv, to_label_studio, to_prodigy

    judge = None
    if run is not None:
        from emhrnn.training.data import learned_from
        from emhrnn.training.run import load_run

        if learned_from(run, given):
            raise ConfigError(f"{run} was trained on {data}, so it cannot judge its labels; leave out --run")
        judge = load_run(run)
    report = find(given, folds=folds, limit=limit, seed=seed, progress=not quiet, run=judge)
    files = {out: to_csv, html: report_page, label_studio: to_label_studio, prodigy: to_prodigy}
    for path, written in files.items():
        if path is not None:
            write_text(path, BOM * (path == out) + written(report))
    if label_studio is not None:
        write_text(label_studio.with_suffix(".xml"), label_studio_config(report))
    if json:
        print_json(report.to_dict())
        return
    say(report_text(report))
    for path in files:
        if path is not None:
            say(f"see {path}")


def report_text(report: "AuditReport") -> str:
    """The report for the terminal."""
    from emhrnn.audit.report import summary
    from emhrnn.cli.output import aligned
    from emhrnn.explain.escape import visible
    from emhrnn.explain.page import percent

    lines = [summary(report)]
    if report.suspects:
        rows = [["row", "label", "suggested", "p(label)", "text"]]
        rows += [
            [str(s.row), visible(s.label), visible(s.suggested) + " !" * s.likely, percent(s.p_label), short(s.text)]
            for s in report.suspects[:SHOWN]
        ]
        lines += ["", "Labels that are unlikely, the least likely first (!: probably an error)", aligned(rows, {0, 3})]
    if report.alike:
        pairs = [[visible(p.one), visible(p.other), percent(p.accuracy), f"{p.documents:,}"] for p in report.alike]
        lines += ["", "Classes that are hard to tell apart (50% is chance)"]
        lines.append(aligned([["class", "class", "told apart", "documents"], *pairs[:SHOWN]], {2, 3}))
    if report.duplicates:
        lines += ["", "Near-duplicates, by row (*: with different labels)"]
        lines += [
            ("* " if group in report.conflicts else "  ") + ", ".join(map(str, group[:12]))
            for group in (*report.conflicts, *(g for g in report.duplicates if g not in report.conflicts))
        ][:SHOWN]
    if report.outliers:
        odd = [["row", "why", "text"], *([str(o.row), o.why, short(o.text)] for o in report.outliers[:SHOWN])]
        lines += ["", "Documents unlike the others", aligned(odd, {0})]
    return "\n".join(lines)


def short(text: str) -> str:
    """The beginning of a text on one line."""
    from emhrnn.explain.escape import visible

    line = visible(" ".join(text[: 4 * WIDTH].split()))
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "\u2026"
