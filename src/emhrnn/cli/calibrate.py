"""`emhrnn calibrate`: recalibrate the probabilities of a run on new labelled data."""

from emhrnn.cli.options import Data, Encoding, Format, Json, LabelColumn, Quiet, RunFolder, Split, TextColumn, named


def calibrate(
    run: RunFolder,
    data: Data,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    encoding: Encoding = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recalibrate the probabilities of a run on labelled data that it was not trained on. Training ends with a
    calibration on the validation data. Calibrate again if your documents have changed since, with a few hundred
    labelled new ones.

    \b
    Examples:
      emhrnn calibrate run this-year.csv
      emhrnn calibrate run all.parquet --split valid

    Fits the temperature of the probabilities and, for a network with n-grams, the share of each expert. Updates
    model.safetensors, metrics.json and card.md in RUN. The trained weights do not change, so the command is idempotent.
    """
    from emhrnn.cli.output import print_json, say, tell_of_rows
    from emhrnn.training.calibration import calibrate_run

    given = named(data, text_column, label_column, format, split, encoding=encoding)
    fitted, report = calibrate_run(run, given, progress=not quiet)
    tell_of_rows(str(data), report.skipped, report.repaired)
    if json:
        print_json({**fitted.to_dict(), "skipped": report.skipped, "repaired": report.repaired})
        return
    say(f"temperature {fitted.temperature:.3f}" + (f" ({fitted.remark})" if fitted.remark else ""))
    if fitted.shares is not None:
        say("shares      " + ", ".join(f"{name} {share:.2f}" for name, share in fitted.shares.items()))
    say(f"loss        {fitted.loss_before:.4f} -> {fitted.loss_after:.4f} on {fitted.documents:,} documents")
    say(f"ECE         {fitted.ece_before:.4f} -> {fitted.ece_after:.4f}")
