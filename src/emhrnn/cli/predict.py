"""`emhrnn predict`: labels and probabilities for files of any size."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emhrnn.cli.options import GUESSED, DataOptions, Quiet, RunFolder, argument, flag, option
from emhrnn.cli.output import Answer, counted, percent

if TYPE_CHECKING:
    from emhrnn.scoring import ScoringResult


def predict(
    run: RunFolder,
    data: Annotated[
        list[Path],
        argument(
            "Files (csv, tsv, jsonl, xlsx, parquet; also .gz, .xz, .zst), patterns, folders, saved `datasets`.",
            "DATA...",
        ),
    ],
    out: Annotated[Path, option("File to write: .parquet, .csv or .jsonl. It is replaced.", "FILE")],
    explain: Annotated[
        bool, flag("--explain", "Add the phrases for and against the label, with their effects.")
    ] = False,
    min_confidence: Annotated[
        float | None,
        option("Leave the label empty where the likeliest class has a lower probability; adds guess, confidence.", "P"),
    ] = None,
    coverage: Annotated[
        float | None, option("Add a set of labels that holds the true one with at least this chance.", "P")
    ] = None,
    top: Annotated[
        int | None, option("Write the K likeliest classes instead of the probability of all.", "K", min=1)
    ] = None,
    threshold: Annotated[
        list[str] | None,
        option(
            "Several labels: those above P, or LABEL=P; may be repeated. Two classes: LABEL=P predicts it above P.",
            "P|LABEL=P",
            shown="0.5",
        ),
    ] = None,
    keep_columns: Annotated[bool, flag("--keep-columns", "Write all columns of DATA, too.")] = False,
    mistakes: Annotated[
        Path | None,
        option("Labelled DATA: write rows whose label differs from the prediction to this .csv or .jsonl.", "FILE"),
    ] = None,
    workers: Annotated[int | None, option("Processes that score.", shown="all cores", min=1)] = None,
    restart: Annotated[bool, flag("--restart", "Start again instead of resuming an unfinished call.")] = False,
    read: DataOptions = GUESSED,
    quiet: Quiet = False,
) -> Answer:
    """Classify every row of files: one output row per input row, in the same order, with its id.

    \b
    Examples:
      emhrnn predict run new.csv --out labels.csv
      emhrnn predict run 'parts/*.jsonl.gz' --out labels.parquet --text-column body
      emhrnn predict run new.jsonl --out labels.jsonl --explain
      emhrnn predict run new.csv --out labels.csv --min-confidence 0.9 --keep-columns
      emhrnn predict run test.csv --out labels.csv --mistakes wrong.csv

    Writes FILE with the columns id (the id column of DATA, else the row number from 0), label, and p_CLASS for every
    class. A row that cannot be scored (broken, no text, no words) has an empty label, and FILE.errors.jsonl says why.

    FILE appears when all rows are scored. Until then FILE.unfinished holds the results so far: after Ctrl-C, kill or a
    power failure the same command resumes, and FILE is the same byte for byte.
    """
    import time

    from emhrnn.cores import cores
    from emhrnn.corpus import Columns
    from emhrnn.errors import ConfigError
    from emhrnn.scoring import score
    from emhrnn.scoring.chunks import Data

    if read.label_column is not None and mistakes is None:
        raise ConfigError("--label-column is for labelled data; give --mistakes FILE, too, or leave it out")
    began = time.perf_counter()
    columns = Columns(text=read.text_column, label=read.label_column, labelled=mistakes is not None)
    named = Data(paths=tuple(data), format=read.format, columns=columns, split=read.split, encoding=read.encoding)
    try:
        scored = score(
            run, named, out,
            explain=explain, min_confidence=min_confidence, coverage=coverage, top=top,
            threshold=thresholds_of(threshold or []), keep_columns=keep_columns, mistakes=mistakes,
            workers=workers or cores(), restart=restart, progress=not quiet,
        )  # fmt: skip
    except KeyboardInterrupt:
        kept = out.with_name(out.name + ".unfinished").exists()
        state = "is not complete; the same command resumes it" if kept else "was not written"
        raise KeyboardInterrupt(f"{out} {state}") from None
    seconds = time.perf_counter() - began
    expected = expected_abstention(run, min_confidence)
    facts = {
        "out": str(out), "rows": scored.rows, "unscored": scored.unscored, "repaired": scored.repaired,
        "words": scored.words, "before": scored.before,
        "errors": scored.errors and str(scored.errors), "seconds": seconds,
        "abstained": scored.abstained, "expected": expected, "labels_in_sets": scored.labels,
        "judged": scored.judged, "wrong": scored.wrong,
    }  # fmt: skip
    rate = f", {(scored.rows - scored.before) / seconds:,.0f} rows/s"
    again = f" ({scored.before:,} of them by an earlier call)" if scored.before else ""
    lines = [f"{counted(scored.rows, 'row')}{again} to {out} in {seconds:.1f} s{rate}"]
    lines += decided(scored, min_confidence, expected, coverage, mistakes)
    if scored.errors is not None:
        rows = [f"{counted(scored.unscored, 'row')} could not be scored"] if scored.unscored else []
        if scored.repaired:
            was = "was" if scored.repaired == 1 else "were"
            rows.append(f"{counted(scored.repaired, 'row')} {was} repaired (bytes that are not UTF-8, or NUL)")
        lines.append(f"{', '.join(rows)}; {scored.errors} lists each")
    return Answer(facts, "\n".join(lines))


def thresholds_of(given: list[str]) -> float | dict[str, float] | None:
    """`0.3`, or `LABEL=0.3` any number of times.

    Raises:
        ConfigError: something else.
    """
    from emhrnn.errors import ConfigError

    if not given:
        return None
    pairs = [one.rpartition("=") for one in given]
    try:
        named = {label: float(value) for label, _, value in pairs}
    except ValueError:
        raise ConfigError(f"--threshold is {' '.join(given)!r}; give a number, or LABEL=NUMBER") from None
    if "" in named and len(given) > 1:
        raise ConfigError("--threshold is given for all labels and again; give one number, or LABEL=NUMBER each time")
    return named.get("", named)


def expected_abstention(run: Path, confidence: float | None) -> dict[str, Any] | None:
    """What abstaining gave on the data that the run was calibrated on, at the nearest level that was recorded: share of
    documents with a label, and of these, those that are right."""
    from emhrnn.training.run import read_metrics

    recorded = ((read_metrics(run) or {}).get("calibration") or {}).get("abstentions")
    if confidence is None or not recorded:
        return None
    return dict(min(recorded, key=lambda level: abs(level["confidence"] - confidence)))


def decided(
    scored: "ScoringResult",
    confidence: float | None,
    expected: dict[str, Any] | None,
    coverage: float | None,
    mistakes: Path | None,
) -> list[str]:
    """What came of the options that decide, in a line each."""
    lines, rows = [], scored.rows - scored.unscored
    if confidence is not None and rows:
        share = percent(1 - scored.abstained / rows)
        lines.append(f"{share} have a label; {counted(scored.abstained, 'row')} below {confidence:g} have only a guess")
        if expected is not None and expected["accuracy"] is not None:
            lines.append(
                f"on the data it was calibrated on, {percent(expected['coverage'])} reached "
                f"{expected['confidence']:g}, and {percent(expected['accuracy'])} of those were right"
            )
    if coverage is not None and rows:
        lines.append(f"sets of labels hold {scored.labels / rows:.2f} labels on average")
    if mistakes is not None:
        right = percent(1 - scored.wrong / scored.judged) if scored.judged else "none"
        lines.append(
            f"{right} of {counted(scored.judged, 'labelled row')} right; {counted(scored.wrong, 'mistake')} "
            f"in {mistakes}"
        )
    return lines
