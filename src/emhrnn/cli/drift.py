"""`emhrnn drift`: have the documents changed since training?"""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Encoding, Format, RunFolder, Split, TextColumn, argument
from emhrnn.cli.output import Answer, aligned, percent


def drift(
    run: RunFolder,
    data: Annotated[Path, argument("New documents, as for `emhrnn predict`; they need no labels.", "DATA")],
    text_column: TextColumn = None,
    format: Format = None,
    encoding: Encoding = None,
    split: Split = None,
) -> Answer:
    """Compare words and labels of new documents with those that a run was trained on.

    \b
    Examples:
      emhrnn drift run this-week.csv
      emhrnn drift run.emhrnn new.jsonl --json

    Words: Jensen-Shannon divergence of the shares of documents that have each word, 0 to 1 bit; above 0.05 is drift.
    Labels: PSI of predicted shares beside those of training; above 0.1 is drift, above 0.25 it is large. Both only
    where they are above what chance gives for so many documents. Writes nothing.
    """
    from emhrnn.corpus import Columns, Source
    from emhrnn.drift import drift as compare
    from emhrnn.training.run import load_run, read_description, trained_columns

    columns = Columns(text=text_column, labelled=False, trained=trained_columns(run))
    source = Source(data, format=format, columns=columns, split=split, encoding=encoding, lenient=True)
    report = compare(load_run(run), read_description(run), source)
    lines = [f"{report.documents:,} documents; {percent(report.unknown)} of their words are not in the vocabulary"]
    for name, value, chance, unit in (
        ("words", report.words, report.words_by_chance, "bits"),
        ("labels", report.labels, report.labels_by_chance, "PSI"),
    ):
        if value is None:
            lines.append(f"{name:<7} not known: this run has no counts of them")
            continue
        state = "DRIFT" if name in report.drifted else "as in training"
        lines.append(f"{name:<7} {value:.3f} {unit} ({chance:.3f} by chance): {state}")
    if report.changed:
        rows = [["word", "in training", "now"]]
        rows += [[change.word, percent(change.before), percent(change.now)] for change in report.changed]
        lines.append(f"\nWords that changed most, by the share of documents that have them\n{aligned(rows)}")
    if report.classes:
        pairs = sorted(report.classes.items(), key=lambda pair: -abs(pair[1][1] - pair[1][0]))[:10]
        rows = [["label", "in training", "now"], *([name, percent(a), percent(b)] for name, (a, b) in pairs)]
        lines.append(f"\nLabels, by their share\n{aligned(rows)}")
    if report.drifted:
        lines.append("\nLabel some of these documents: `emhrnn evaluate` says whether the drift matters")
    return Answer(report.to_dict(), "\n".join(lines))
