"""The last act of training: the best weights are in the model, their probabilities are put right."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import BatchPlan
from emhrnn.errors import DataError
from emhrnn.evaluation.calibration import Calibration, Labels, Logits, fit_temperature
from emhrnn.evaluation.experts import Said, fit_shares
from emhrnn.evaluation.phrases import PhraseLengths
from emhrnn.evaluation.predict import BATCH_WORDS, Predictions
from emhrnn.evaluation.scores import Scores, score
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.ngrams import NGrams, Shares
from emhrnn.training.job import ALONE, Job
from emhrnn.training.run import Run, save_weights
from emhrnn.training.validation import predict_together


def validate(run: Run, corpus: Corpus, job: Job = ALONE) -> Scores:
    """Scores of the run as it is, on labelled data of its own classes."""
    return _score(run, corpus, predict_together(job, run, corpus))


def validate_epoch(run: Run, valid: Corpus, job: Job = ALONE) -> Scores:
    """Scores of the run as it would be if training ended here: with the shares of its experts, and no temperature."""
    predictions = predict_together(job, run, valid)
    if not run.config.training.calibrate:
        return _score(run, valid, predictions)
    return _rescored(run, valid, _weighed(run, valid, predictions.logits, job)[1], predictions.phrases)


def end_training(
    run: Run, valid: Corpus, folder: Path | None, epoch: int, job: Job = ALONE
) -> tuple[Scores, Calibration | None]:
    """Calibrate, if the settings want it; the scores are those after."""
    if not run.config.training.calibrate:
        run.temperature = 1.0
        return validate(run, valid, job), None
    return calibrate(run, valid, folder, epoch, job)


def calibrate(run: Run, valid: Corpus, folder: Path | None, epoch: int, job: Job = ALONE) -> tuple[Scores, Calibration]:
    """Give the run its temperature, and its experts their shares, and keep both with the weights; the scores are those
    after."""
    run.uncalibrate()
    predictions = predict_together(job, run, valid)
    before = _score(run, valid, predictions)
    shares, logits = _weighed(run, valid, predictions.logits, job)
    run.temperature, remark = fit_temperature(logits, _labels(valid))
    after = _rescored(run, valid, logits, predictions.phrases)
    if shares is not None:
        run.weigh(shares)
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
        shares=None if shares is None else asdict(shares),
    )


def _weighed(run: Run, valid: Corpus, logits: Logits, job: Job) -> tuple[Shares | None, Logits]:
    """The shares of the experts, where there are several, and the logits with them: as the first process finds them,
    for machines of different kinds round differently."""
    if not isinstance(run.model, EMHRNN) or run.model.ngrams is None:
        return None, logits
    shares, weighed = torch.empty(4, dtype=torch.float64), torch.empty(logits.shape)
    if job.first:
        said = _said(run.model.ngrams, valid, logits)
        fitted, _remark = fit_shares(said, _labels(valid))  # the temperature's remark says the same
        shares.copy_(torch.from_numpy(fitted))
        weighed.copy_(torch.from_numpy(np.tensordot(fitted.astype(np.float32), said, axes=1)))
    job.copy_first([shares, weighed])
    return Shares(*shares.tolist()), weighed.numpy()


def _said(ngrams: NGrams, valid: Corpus, logits: Logits) -> Said:
    """What each expert says, the recurrent layers first."""
    apart = np.empty((3, *logits.shape), dtype=np.float32)
    with torch.inference_mode():
        for rows in BatchPlan(valid.lengths, words=BATCH_WORDS).in_order():
            apart[:, rows] = ngrams.apart(valid.batch(rows)).numpy()
    return np.concatenate([[logits - apart.sum(axis=0)], apart])


def _rescored(run: Run, corpus: Corpus, logits: Logits, phrases: PhraseLengths | None) -> Scores:
    shown = run.probabilities(torch.from_numpy(logits)).numpy()
    return _score(run, corpus, Predictions(shown, logits, phrases))


def _score(run: Run, corpus: Corpus, predictions: Predictions) -> Scores:
    return score(predictions.probabilities, _labels(corpus), run.classes, predictions.phrases)


def _labels(corpus: Corpus) -> Labels:
    if corpus.labels is None:
        raise DataError("the data has no labels, so there is nothing to compare predictions with; give a label column")
    return corpus.labels
