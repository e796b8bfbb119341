"""Scores of a run on named data."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from emhrnn.errors import DataError
from emhrnn.evaluation.scores import Scores
from emhrnn.training.calibrating import validate
from emhrnn.training.data import Named, check_ids, other_corpus
from emhrnn.training.run import load_run


@dataclass(frozen=True)
class Evaluated:
    scores: Scores
    skipped: dict[str, int]  # rows that have no place in the scores, by reason


def evaluate_run(folder: Path, data: Named, *, progress: bool = True) -> Evaluated:
    """A label that the run has never seen is an error: no prediction could be right about it."""
    run = load_run(folder)
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        corpus = other_corpus(
            data, Path(scratch) / "corpus",
            vocabulary=run.vocabulary, classes=run.classes, text=run.text,
            users=run.users, products=run.products, progress=progress,
        )  # fmt: skip
        if not corpus.labelled:
            raise DataError(f"{data.path} has no labels to compare with; `emhrnn predict` needs none")
        check_ids(run.config, data.path, corpus.report.columns)
        return Evaluated(validate(run, corpus), corpus.report.skipped)
