"""`emhrnn evaluate`: scores of a run on labelled data."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from emhrnn.cli.options import GUESSED, Data, DataOptions, Quiet, RunFolder
from emhrnn.cli.output import Answer, aligned, complain, counted, percent, tell_of_rows

if TYPE_CHECKING:
    from emhrnn.corpus import Report
    from emhrnn.evaluation.scores import Scores
    from emhrnn.training.data import Named

SHOWN_ERRORS = 10  # pairs of classes, where the confusion matrix is too wide
WIDTH = 100  # columns, where the output is not a terminal


def evaluate(run: RunFolder, data: Data, read: DataOptions = GUESSED, quiet: Quiet = False) -> Answer:
    """Score a run on labelled data: accuracy, macro-F1, AUC, calibration, each class, confusion matrix, phrase lengths.

    \b
    Examples:
      emhrnn evaluate run test.csv
      emhrnn evaluate run all.parquet --split test --json

    Below the accuracy are those of the most frequent class and of TF-IDF with a linear SVM on the same data, if the run
    still has its training data. AUC and AP (average precision: the area under the curve of precision and recall) are
    of each class against all others. A confusion matrix wider than the terminal becomes a list of the most frequent
    errors; --json always has all of it.

    Writes nothing: the scores go to stdout. A label that the run does not know is an error. Rows without text or label
    are skipped and counted on stderr.
    """
    from emhrnn.training.data import learned_from

    given = read.named(data, run=run)
    scores, beside, report = evaluate_run(run, given, progress=not quiet)
    tell_of_rows(str(data), report.skipped, report.repaired)
    if learned_from(run, given):
        complain(f"{data} holds documents that {run} was trained on: its scores on them say little about new ones")
    others = {name: other.accuracy for name, other in beside.items()}
    facts = {"baselines": others, "skipped": report.skipped, "repaired": report.repaired}
    return Answer(scores.to_dict() | facts, score_tables(scores, beside))


def evaluate_run(folder: Path, data: "Named", *, progress: bool = True) -> "tuple[Scores, dict[str, Scores], Report]":
    """The scores of a run; those of simple systems that learned from the same data, where the run still has it; and
    the report on the data.

    Raises:
        DataError: the data cannot be read, has no labels, or has labels that the run does not know.
    """
    from emhrnn.errors import EmhrnnError
    from emhrnn.evaluation.baselines import baselines
    from emhrnn.training.data import labelled_corpus
    from emhrnn.training.resume import open_run
    from emhrnn.training.run import load_run
    from emhrnn.training.validation import validate

    run = load_run(folder)
    with labelled_corpus(run, data, why="to compare with; `emhrnn predict` needs none", progress=progress) as corpus:
        scores = validate(run, corpus)
        try:
            beside = baselines(open_run(folder, vectors=False).train, corpus)
        except EmhrnnError:  # the training data is gone, or the run was saved without it
            beside = {}
        return scores, beside, corpus.report


def score_tables(scores: "Scores", beside: "dict[str, Scores]") -> str:
    """The scores as text: overall, beside those of simple systems, by class, and the confusion matrix."""
    parts = [
        f"documents  {scores.documents:,}",
        f"accuracy   {percent(scores.accuracy)}" + " (all labels of a document right)" * (scores.confusion is None),
        *(f"           {percent(other.accuracy)} {name}, on the same data" for name, other in beside.items()),
        f"macro-F1   {percent(scores.macro_f1)}",
        f"AUC        {_area(scores.auc)}; AP {_area(scores.average_precision)} (means over the classes)",
        f"loss       {scores.loss:.4f} nats per document",
        f"ECE        {percent(scores.ece)} (expected calibration error: mean gap between confidence and accuracy)",
    ]
    if scores.phrases is not None:
        phrases = scores.phrases
        parts.append(f"phrases    {phrases.mean:.2f} words on average, {phrases.shortest} to {phrases.longest}")
    rows = [["class", "documents", "precision", "recall", "F1", "AUC", "AP"]]
    rows += [
        [
            c.name, f"{c.documents:,}", percent(c.precision), percent(c.recall), percent(c.f1),
            _area(c.auc), _area(c.average_precision),
        ]
        for c in scores.classes
    ]  # fmt: skip
    parts += ["", aligned(rows)]
    if scores.confusion is not None:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        parts += ["", confusion_table([c.name for c in scores.classes], scores.confusion, width)]
    return "\n".join(parts)


def confusion_table(names: list[str], counts: list[list[int]], width: int) -> str:
    """The confusion matrix in at most `width` columns: with class names above the columns, or with numbers there, or as
    a list of the most frequent errors."""
    numbers = [str(number) for number in range(1, len(names) + 1)]
    cells = [[str(count) for count in row] for row in counts]
    for heads, labels in ((names, names), (numbers, [f"{i} {name}" for i, name in zip(numbers, names, strict=True)])):
        table = aligned([["", *heads], *([label, *row] for label, row in zip(labels, cells, strict=True))])
        if max(map(len, table.splitlines())) <= width:
            return f"rows: true class, columns: predicted class\n{table}"
    pairs = [(counts[i][j], i, j) for i in range(len(names)) for j in range(len(names)) if i != j and counts[i][j]]
    most = sorted(pairs, key=lambda pair: -pair[0])[:SHOWN_ERRORS]
    if not most:
        return "no errors"
    rows = [["documents", "true class", "predicted class"], *([str(n), names[i], names[j]] for n, i, j in most)]
    total = counted(sum(n for n, _, _ in pairs), "error")
    return f"most frequent of {total} (--json has all)\n{aligned(rows, {0})}"


def _area(share: float | None) -> str:
    return "-" if share is None else percent(share)
