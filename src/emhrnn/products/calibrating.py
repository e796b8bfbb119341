"""The probabilities of a run, fitted anew to labelled data of its user's choice."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from emhrnn.corpus import Corpus, Report
from emhrnn.errors import DataError
from emhrnn.evaluation.calibration import FEWEST, Calibration
from emhrnn.files import write_json, write_text
from emhrnn.training.calibrating import calibrate
from emhrnn.training.card import card_of, markdown
from emhrnn.training.checkpoint import load_tensors
from emhrnn.training.data import Named, labelled_corpus, learned_from
from emhrnn.training.lock import locked
from emhrnn.training.run import CARD, METRICS, WEIGHTS, load_run, read_description, save_weights


def calibrate_run(folder: Path, data: Named, *, progress: bool = True) -> tuple[Calibration, Report]:
    """Begins with the weights as they were learned, so that doing it twice is doing it once. What it came to, and
    the report of the data.

    Raises:
        DataError: the data cannot be used, or cannot decide; the run is left as it was.
    """
    read_description(folder)  # is it a run?
    with locked(folder):  # before it is read: whoever has it may be about to write
        run = load_run(folder, weigh=False)
        _, note = load_tensors(folder / WEIGHTS)
        why = "to be fitted to; calibration needs one for every document"
        with labelled_corpus(run, data, why=why, progress=progress) as corpus:
            _check_classes(folder, data, corpus)
            if learned_from(folder, data):
                raise DataError(
                    f"cannot calibrate {folder} to {data.path}: it holds documents that the run has learned from, and "
                    "is surer of than of new ones; give others. The run is left as it was"
                )
            _, calibration = calibrate(run, corpus, None, note.get("epoch", 0))
            if calibration.undecided:
                raise DataError(
                    f"cannot calibrate {folder} to {data.path}: {calibration.undecided}; give {FEWEST} documents or "
                    "more, some of which it gets wrong. The run is left as it was"
                )
            save_weights(folder, run, note.get("epoch", 0))
            calibration = replace(calibration, source=data.path.resolve().name)
            if (folder / METRICS).is_file():  # else it is still in training, or learned bit by bit
                metrics = json.loads((folder / METRICS).read_text(encoding="utf-8"))
                metrics |= {"calibration": calibration.to_dict(), "stale": ["valid"]}  # scores are of before
                write_text(folder / CARD, markdown(card_of(folder, metrics)))
                write_json(folder / METRICS, metrics)
    return calibration, corpus.report


def _check_classes(folder: Path, data: Named, corpus: Corpus) -> None:
    """Raise a DataError for documents of one class: whatever says that class more often fits them better."""
    found = np.flatnonzero(corpus.class_counts)
    if not corpus.multi_label and len(found) == 1:
        raise DataError(
            f"cannot calibrate {folder} to {data.path}: all its documents are of the class "
            f"{corpus.classes[found[0]]!r}; give documents of several classes. The run is left as it was"
        )
