"""Few documents are cross-validated: none is held out, and none is scored by a model that has learned from it."""

from pathlib import Path

import numpy as np
import pytest

import emhrnn
from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import everyday_reviews
from emhrnn.errors import CheckpointError, ConfigError
from emhrnn.training.arrays import load_arrays
from emhrnn.training.config import make_config
from emhrnn.training.progress import Epoch
from emhrnn.training.run import read_metrics
from emhrnn.training.validation import FILE, FOLDS, LEAST, MOST, fold_numbers, with_folds
from tests.behaviour.commands import write_rows
from tests.training.kill import check_equal

SETTINGS = {"training.threads": 1, "training.epochs": 6}
ROWS = [(review.text, review.label) for review in everyday_reviews(90, seed=0)]


def folds(labels: list[object], **settings: object) -> int:
    corpus = Corpus.from_texts([f"text number{i}" for i in range(len(labels))], labels)
    return with_folds(make_config(settings=settings), corpus).data.folds


def test_which_data_is_cross_validated() -> None:
    few = ["a", "b"] * LEAST
    assert folds(few) == FOLDS
    assert folds(few, **{"data.validation": 0.1}) == 0
    assert folds(few, **{"data.folds": 0}) == 0
    assert folds(few, **{"data.folds": 3}) == 3
    assert folds(few, **{"model.name": "tfidf-lr"}) == 0
    assert folds([*few, "c"]) == 0
    assert folds([["a"], ["b"]] * LEAST) == 0
    assert folds(few[: LEAST - 1]) == 0
    assert folds(["a", "b"] * MOST) == 0


def test_no_model_scores_what_it_has_learned(tmp_path: Path) -> None:
    """Labels are random, so that only a model that has seen a text can know its label."""
    labels = np.random.default_rng(0).permutation(["a", "b"] * 60).tolist()
    data = write_rows(tmp_path / "a.csv", [(f"word{i} other{i} word{i}", label) for i, label in enumerate(labels)])
    settings = SETTINGS | {"model.least_documents": 1, "data.min_count": 1}
    done = emhrnn.train(data, tmp_path / "run", settings=settings, progress=False)
    assert done.model.run.config.data.folds == FOLDS
    assert done.fitted.scores.documents == 120
    assert done.fitted.scores.accuracy < 0.65
    assert done.fitted.calibration is not None
    assert done.fitted.calibration.documents == 120
    assert done.fitted.epochs[-1].epoch == done.fitted.best.epoch
    assert len(done.train) == 120
    stored = load_arrays(tmp_path / "run" / "checkpoint" / FILE)[0]["logits"]
    assert stored.shape == (6, 120, 2)
    assert len(set(fold_numbers(done.model.run.config, done.train).tolist())) == FOLDS


def test_it_resumes_bit_for_bit_and_refuses_what_it_cannot(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.csv", ROWS)
    settings = SETTINGS | {"training.checkpoint_seconds": 0, "training.metric": "accuracy"}
    whole = emhrnn.train(data, tmp_path / "whole", settings=settings, progress=False)

    assert whole.fitted.best.epoch > 1

    def stop(epoch: Epoch) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        emhrnn.train(data, tmp_path / "run", settings=settings, progress=False, on_epoch=stop)
    again = emhrnn.train(None, tmp_path / "run", resume=True, progress=False)
    check_equal(tmp_path / "whole", tmp_path / "run")
    assert again.fitted.scores == whole.fitted.scores
    finished = emhrnn.train(None, tmp_path / "run", resume=True, progress=False)
    assert finished.fitted.scores.to_dict() == (read_metrics(tmp_path / "run") or {})["valid"]
    with pytest.raises(ConfigError, match="another folder"):
        emhrnn.train(None, tmp_path / "run", resume=True, progress=False, settings={"training.epochs": 9})
    (tmp_path / "run" / "checkpoint" / FILE).unlink()
    with pytest.raises(CheckpointError, match="missing"):
        emhrnn.train(None, tmp_path / "run", resume=True, progress=False)
