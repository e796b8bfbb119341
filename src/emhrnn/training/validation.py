"""Predictions of a corpus by all processes of a job: each takes some documents."""

import numpy as np
import torch

from emhrnn.corpus import Corpus
from emhrnn.evaluation.phrases import PhraseLengths
from emhrnn.evaluation.predict import Predictions
from emhrnn.training.job import Job
from emhrnn.training.run import Run


def predict_together(job: Job, run: Run, corpus: Corpus) -> Predictions:
    """The same for every process."""
    if job.size == 1 or len(corpus) < job.size:  # too few to share: all of them predict all
        return run.predict(corpus)
    mine = np.arange(job.rank, len(corpus), job.size)
    part = run.predict(corpus.select(mine))
    whole = torch.zeros(2, len(corpus), len(run.classes))
    whole[:, torch.from_numpy(mine)] = torch.from_numpy(np.stack([part.probabilities, part.logits]))
    probabilities, logits = job.total(whole).numpy()
    return Predictions(probabilities, logits, _phrases(job, part.phrases))


def _phrases(job: Job, part: PhraseLengths | None) -> PhraseLengths | None:
    longest, any_phrases = job.largest([part.longest if part is not None else 0, part is not None])
    if not any_phrases:
        return None
    histogram = torch.zeros(longest + 1, dtype=torch.int64)
    if part is not None:
        histogram[1 : part.longest + 1] = torch.tensor(part.histogram)
    return PhraseLengths.of(job.total(histogram).numpy())
