"""`emhrnn calibrate`: recalibrate the probabilities of a run on new labelled data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from emhrnn.cli.options import GUESSED, Data, DataOptions, Quiet, RunFolder, flag, option
from emhrnn.cli.output import Answer, aligned, percent, tell_of_rows

if TYPE_CHECKING:
    from emhrnn.evaluation.calibration import Calibration


def calibrate(
    run: RunFolder,
    data: Data,
    out: Annotated[
        Path | None, option("Leave RUN as it is, and write the calibrated model to this new folder.", "FOLDER")
    ] = None,
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would change.")] = False,
    read: DataOptions = GUESSED,
    quiet: Quiet = False,
) -> Answer:
    """Recalibrate the probabilities of a run on labelled data that it was not trained on. Training ends with a
    calibration on the validation data. Calibrate again if your documents have changed since, with a few hundred
    labelled new ones.

    \b
    Examples:
      emhrnn calibrate run this-year.csv
      emhrnn calibrate run this-year.csv --dry-run
      emhrnn calibrate run all.parquet --split valid

    Fits the temperature of the probabilities, the sets of labels of `predict --coverage` and, for a network with
    n-grams, the share of each expert. Shows what abstaining (`predict --min-confidence`) would give on DATA. Updates
    model.safetensors, metrics.json and card.md in RUN. The trained weights do not change, so the command is idempotent.
    """
    from emhrnn.training.validation import calibrate_run

    given = read.named(data, run=run)
    fitted, report = calibrate_run(run, given, out=out, dry_run=dry_run, progress=not quiet)
    tell_of_rows(str(data), report.skipped, report.repaired)
    lines = [f"temperature {fitted.temperature:.3f}" + (f" ({fitted.remark})" if fitted.remark else "")]
    if fitted.shares is not None:
        lines.append("shares      " + ", ".join(f"{name} {share:.2f}" for name, share in fitted.shares.items()))
    lines.append(f"loss        {fitted.loss_before:.4f} -> {fitted.loss_after:.4f} on {fitted.documents:,} documents")
    lines.append(f"ECE         {fitted.ece_before:.4f} -> {fitted.ece_after:.4f}")
    if fitted.abstentions:
        lines.append(f"\n{abstention_table(fitted)}\n")
    lines.append("Nothing was written." if dry_run else f"Written to {out or run}.")
    facts = {**fitted.to_dict(), "skipped": report.skipped, "repaired": report.repaired}
    return Answer(facts, "\n".join(lines))


def abstention_table(fitted: "Calibration") -> str:
    """What abstaining below each confidence gives, as text."""
    rows = [["min-confidence", "have a label", "of these right"]]
    for level in fitted.abstentions:
        right = "-" if level.accuracy is None else percent(level.accuracy)
        rows.append([f"{level.confidence:g}", percent(level.coverage), right])
    return aligned(rows, {0, 1, 2})
