"""Scores of a run on named data."""

from dataclasses import dataclass
from pathlib import Path

from emhrnn.errors import ConfigError
from emhrnn.evaluation.scores import Scores
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.ngrams import Shares
from emhrnn.products.cutting import cut_otherwise
from emhrnn.products.labelled import labelled_corpus
from emhrnn.training.calibrating import validate
from emhrnn.training.data import Named
from emhrnn.training.run import Run, load_run

ALONE = {"recurrent": Shares(1.0, 0.0, 0.0, 0.0), "ngrams": Shares(0.0, 1.0, 1.0, 1.0)}


@dataclass(frozen=True)
class Evaluated:
    scores: Scores
    skipped: dict[str, int]  # rows that have no place in the scores, by reason
    repaired: dict[str, int]  # documents whose text was mended, by what was wrong


def evaluate_run(
    folder: Path, data: Named, *, segmentation: str = "learned", expert: str | None = None, progress: bool = True
) -> Evaluated:
    """Another `segmentation` than the run's own shows what its phrases do for it, one `expert` what it knows alone."""
    run = load_run(folder, weigh=expert != "recurrent")  # alone, they have no share; one of 0 would silence them
    if expert is not None:
        _silence_others(run, expert)
    if segmentation != "learned":
        cut_otherwise(run, segmentation)
    why = "to compare with; `emhrnn predict` needs none"
    with labelled_corpus(run, data, why=why, progress=progress) as corpus:
        return Evaluated(validate(run, corpus), corpus.report.skipped, corpus.report.repaired)


def _silence_others(run: Run, expert: str) -> None:
    """Experts learn apart, so that each alone is much what would have been trained without the other."""
    if expert not in ALONE:
        raise ConfigError(f"unknown expert {expert!r}; use {' or '.join(ALONE)}")
    if not isinstance(run.model, EMHRNN) or run.model.ngrams is None:
        raise ConfigError("this run is one expert; --expert needs em-hrnn with model.ngrams and one level")
    run.model.weigh(ALONE[expert])
