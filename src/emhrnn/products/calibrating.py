"""The probabilities of a finished run, fitted anew to labelled data of its user's choice."""

import json
import tempfile
from pathlib import Path

from emhrnn.errors import CheckpointError, DataError
from emhrnn.evaluation.calibration import Calibration
from emhrnn.files import write_json, write_text
from emhrnn.training.calibrating import calibrate
from emhrnn.training.card import card_of, markdown
from emhrnn.training.data import Named, check_ids, other_corpus
from emhrnn.training.lock import locked
from emhrnn.training.run import CARD, METRICS, load_run


def calibrate_run(folder: Path, data: Named, *, progress: bool = True) -> tuple[Calibration, dict[str, int]]:
    """Begins with the weights as they were learned, so that doing it twice is doing it once. What it came to, and the
    rows that were skipped, by reason."""
    run = load_run(folder, weigh=False)
    if not (folder / METRICS).is_file():
        raise CheckpointError(f"{folder}: its training has not finished; `emhrnn train --resume {folder}` goes on")
    with locked(folder), tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        corpus = other_corpus(
            data, Path(scratch) / "corpus",
            vocabulary=run.vocabulary, classes=run.classes, text=run.text,
            users=run.users, products=run.products, progress=progress,
        )  # fmt: skip
        if not corpus.labelled:
            raise DataError(f"{data.path} has no labels, and calibration needs one for every document")
        check_ids(run.config, data.path, corpus.report.columns)
        metrics = json.loads((folder / METRICS).read_text(encoding="utf-8"))
        _scores, calibration = calibrate(run, corpus, folder, metrics["best_epoch"])
        metrics["calibration"] = calibration.to_dict()
        write_text(folder / CARD, markdown(card_of(folder, metrics)))
        write_json(folder / METRICS, metrics)
    return calibration, corpus.report.skipped
