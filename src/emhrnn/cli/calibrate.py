"""`emhrnn calibrate`: how sure a run is, fitted to other labelled data."""

from emhrnn.cli.options import Data, Format, Json, LabelColumn, Quiet, RunFolder, Split, TextColumn


def calibrate(
    run: RunFolder,
    data: Data,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit how sure a run is to labelled data that it has not learned from. Training ends with this, on its validation
    data; do it again where the documents have changed and labels of some hundred new ones are at hand.

    \b
    Examples:
      emhrnn calibrate run this-year.csv
      emhrnn calibrate run all.parquet --split valid

    Fitted are the temperature of the probabilities and, for em-hrnn with n-grams, how much its recurrent layers, its
    common and rare words and its pairs have to say. Weights stay as they were learned: doing this twice is doing it
    once.
    """
    from emhrnn.cli.output import print_json, say, tell_of_rows
    from emhrnn.corpus import Columns
    from emhrnn.training.calibration import calibrate_run
    from emhrnn.training.data import Named

    columns = Columns(text=text_column, label=label_column)
    named = Named(path=data, format=format, columns=columns, split=split)
    fitted, report = calibrate_run(run, named, progress=not quiet)
    tell_of_rows(str(data), report.skipped, report.repaired)
    if json:
        print_json({**fitted.to_dict(), "skipped": report.skipped, "repaired": report.repaired})
        return
    say(f"temperature {fitted.temperature:.3f}" + (f" ({fitted.remark})" if fitted.remark else ""))
    if fitted.shares is not None:
        say("shares      " + ", ".join(f"{name} {share:.2f}" for name, share in fitted.shares.items()))
    say(f"loss        {fitted.loss_before:.4f} -> {fitted.loss_after:.4f} on {fitted.documents:,} documents")
    say(f"ECE         {fitted.ece_before:.4f} -> {fitted.ece_after:.4f}")
