"""The same network with its phrases cut otherwise: what does it make of where they end?

Nothing is trained again. A network that leans on its phrases gets worse by other cuts, and says other things of the
same documents; one that reads past them does neither. `in_reach` bounds what any choice among these cuts could be
worth, even if it knew the labels; `label_bits` is what labels have to teach about the ends of phrases.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int64

from emhrnn.corpus import Corpus, Report
from emhrnn.errors import ConfigError
from emhrnn.evaluation import marginal
from emhrnn.evaluation.marginal import Marginal
from emhrnn.evaluation.predict import Predictions, predict, predict_documents
from emhrnn.evaluation.significance import Difference, paired_bootstrap
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.segmentation import rule
from emhrnn.products.labelled import labelled_corpus
from emhrnn.training.data import Named
from emhrnn.training.run import Run, load_run

OTHERWISE = ("none", "words", "punctuation", "random", "every-4")
DRAWN = f"mean of {marginal.DRAWN} drawn"  # by pi: no cut, but what the model says when it is asked as it is written


@dataclass(frozen=True)
class Cut:
    """One way to cut, beside the run's own."""

    name: str
    accuracy: float
    words_per_phrase: float
    differs: float  # share of documents that get another label than by the run's own phrases
    against: Difference | None  # in accuracy, from the run's own phrases; None for those

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Cuts:
    documents: int
    cuts: tuple[Cut, ...]
    always: float  # share of documents that are right however they are cut
    in_reach: float  # share of documents that some of the cuts get right
    label_bits: float  # what the label of a document tells about where its phrases end, on average
    boundary_bits: float  # what there is to tell about it
    skipped: dict[str, int]
    repaired: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cuts": [cut.to_dict() for cut in self.cuts]}


def cut_otherwise(run: Run, segmentation: str) -> None:
    """From now on the run's network cuts documents by this rule, or by its own."""
    if not isinstance(run.model, EMHRNN):
        raise ConfigError(
            f"the phrases of {run.told_model} cannot be cut otherwise; --segmentation needs em-hrnn with one level"
        )
    learned = segmentation == "learned"
    run.model.rule = None if learned else rule(segmentation, run.vocabulary.words, run.config.em.rate)


def compare_cuts(folder: Path, data: Named, *, progress: bool = True) -> Cuts:
    """Labelled documents by the run's own phrases, by the mean over drawn ones and by the rules of `OTHERWISE`.

    Raises:
        ConfigError: the run has no phrases, never learned any, or its documents have several labels.
    """
    run = load_run(folder)
    if run.multi_label:
        raise ConfigError("documents of this run have several labels; --segmentation all needs one for each")
    if run.config.model.segmentation != "learned":
        raise ConfigError(f"this run's phrases are {run.config.model.segmentation}, and were not learned; give another")
    with labelled_corpus(run, data, why="to compare with", progress=progress) as corpus:
        assert corpus.labels is not None
        learned = _predicted(run, corpus, "learned")
        assert isinstance(run.model, EMHRNN)
        drawn = Marginal(run.model, temperature=run.temperature)
        by_drawn = _found(predict_documents(drawn, corpus, multi_label=False))
        found = {"learned": learned, DRAWN: by_drawn, **{name: _predicted(run, corpus, name) for name in OTHERWISE}}
        return _compared(found, drawn, corpus.labels, corpus.report)


Found = tuple[Int64[np.ndarray, " documents"], float]  # predicted classes, words per phrase


def _predicted(run: Run, corpus: Corpus, name: str) -> Found:
    cut_otherwise(run, name)
    return _found(predict(run.model, corpus, multi_label=False))


def _found(predictions: Predictions) -> Found:
    assert predictions.phrases is not None
    return predictions.logits.argmax(axis=1), predictions.phrases.mean


def _compared(
    found: dict[str, Found], drawn: Marginal, labels: Int64[np.ndarray, " documents"], report: Report
) -> Cuts:
    right: dict[str, Bool[np.ndarray, " documents"]] = {name: one == labels for name, (one, _) in found.items()}
    own, _ = found["learned"]
    cuts = tuple(
        Cut(
            name=name,
            accuracy=float(right[name].mean()),
            words_per_phrase=length,
            differs=float((predicted != own).mean()),
            against=None if name == "learned" else paired_bootstrap(right[name][None], right["learned"][None]),
        )
        for name, (predicted, length) in found.items()
    )
    every: Sequence[np.ndarray] = [right[name] for name in right if name != DRAWN]
    always, ever = np.logical_and.reduce(every), np.logical_or.reduce(every)
    return Cuts(
        documents=len(labels),
        cuts=cuts,
        always=float(always.mean()),
        in_reach=float(ever.mean()),
        label_bits=float(torch.cat(drawn.label_bits).mean()),
        boundary_bits=float(torch.cat(drawn.boundary_bits).mean()),
        skipped=report.skipped,
        repaired=report.repaired,
    )
