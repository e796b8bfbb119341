"""The last act of training: the best weights are in the model, their probabilities are put right."""

from pathlib import Path

import torch

from emhrnn.corpus import Corpus
from emhrnn.errors import DataError
from emhrnn.evaluation.calibration import Calibration, fit_temperature
from emhrnn.evaluation.predict import Predictions
from emhrnn.evaluation.scores import Scores, score
from emhrnn.training.job import ALONE, Job
from emhrnn.training.run import Run, save_weights
from emhrnn.training.validation import predict_together


def validate(run: Run, corpus: Corpus, job: Job = ALONE) -> Scores:
    """Scores of the run as it is, on labelled data of its own classes."""
    return _score(run, corpus, predict_together(job, run, corpus))


def calibrate(
    run: Run, valid: Corpus, folder: Path | None, epoch: int, job: Job = ALONE
) -> tuple[Scores, Calibration | None]:
    """Give the run its temperature, if it is to have one, and keep it with the weights; the scores are those after."""
    run.temperature = 1.0
    predictions = predict_together(job, run, valid)
    before = _score(run, valid, predictions)
    if not run.config.training.calibrate or valid.labels is None:
        return before, None
    run.temperature, remark = fit_temperature(predictions.logits, valid.labels)
    shown = run.probabilities(torch.from_numpy(predictions.logits)).numpy()
    after = _score(run, valid, Predictions(shown, predictions.logits, predictions.phrases))
    if folder is not None:
        save_weights(folder, run, epoch)
    return after, Calibration(
        temperature=run.temperature,
        documents=len(valid),
        loss_before=before.loss,
        loss_after=after.loss,
        ece_before=before.ece,
        ece_after=after.ece,
        before=before.reliability,
        after=after.reliability,
        remark=remark,
    )


def _score(run: Run, corpus: Corpus, predictions: Predictions) -> Scores:
    if corpus.labels is None:
        raise DataError("the data has no labels, so there is nothing to compare predictions with; give a label column")
    return score(predictions.probabilities, corpus.labels, run.classes, predictions.phrases)
