"""How much a network depends on where its phrases end: the same network, evaluated with other segmentations.

Nothing is trained again. A network that uses its phrases gets worse with other segmentations and predicts other labels;
one that ignores them does neither. `in_reach` is an upper bound on the accuracy that any choice among these
segmentations could reach; `label_bits` is how much labels can teach about phrase ends.

Beside rules such as "every 4 words", the exact prediction of the model is estimated: p(y | w) is a sum over all Z, not
what the likeliest phrases say (docs/paper.md).

p(y | w)    = sum over Z of p(Z | w) p(y | Z, w)    by the mean over some Z that are drawn by pi
I(y; Z | w) = H(y | w) - E_Z H(y | Z, w)            bits that the label and the phrase ends have in common
H(Z | w)    = sum over words of H(pi)               bits of the phrase ends
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.evaluation.predict import BATCH_WORDS, Predictions, predict
from emhrnn.layers.semi_markov import best_cut
from emhrnn.models.evidence_reader import EvidenceReader, phrases_of
from emhrnn.models.model import DocumentModel
from emhrnn.models.output import Output
from emhrnn.models.segmentation import rule
from emhrnn.paper.em.imputation import sample_prior
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.significance import Difference, paired_bootstrap

DRAWN = 8
RULES = ("none", "words", "punctuation", "random", "every-4")
MEAN = f"mean of {DRAWN} drawn"

Found = tuple[Int64[np.ndarray, " documents"], float]  # predicted classes, words per phrase


@dataclass(frozen=True)
class SegmentationScore:
    """The network with one segmentation, compared with its learned phrases."""

    name: str
    accuracy: float
    words_per_phrase: float
    differs: float  # share of documents whose label is not that of the learned phrases
    against: Difference | None  # in accuracy, from the learned phrases; None for those

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SegmentationComparison:
    """The scores of all segmentations, and what they have in common. Shares are of documents, bits are means."""

    documents: int
    cuts: tuple[SegmentationScore, ...]
    always: float  # share that is right with every segmentation
    in_reach: float  # share that is right with at least one
    label_bits: float  # I(y; Z | w)
    boundary_bits: float  # H(Z | w)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "cuts": [cut.to_dict() for cut in self.cuts]}


def use_segmentation(model: EMHRNN, name: str, words: Sequence[str], rate: float) -> None:
    """Let the network use this rule in place of its phrases, or its "learned" phrases again. `words` is the vocabulary,
    `rate` the share of ends for "random"."""
    model.rule = None if name == "learned" else rule(name, words, rate)


def compare_segmentations(
    model: EMHRNN, corpus: Corpus, words: Sequence[str], *, rate: float, temperature: float
) -> SegmentationComparison:
    """Labelled documents with the learned phrases, the mean over drawn ones and every rule of `RULES`."""
    assert corpus.labels is not None

    def found_by(name: str) -> Found:
        use_segmentation(model, name, words, rate)
        return _found(predict(model, corpus, multi_label=False))

    own = found_by("learned")
    drawn = Marginal(model, temperature=temperature)
    mean = _found(predict(drawn, corpus, multi_label=False))
    found = {"learned": own, MEAN: mean, **{name: found_by(name) for name in RULES}}
    right = {name: predicted == corpus.labels for name, (predicted, _) in found.items()}
    cuts = tuple(
        SegmentationScore(
            name=name,
            accuracy=float(right[name].mean()),
            words_per_phrase=length,
            differs=float((predicted != own[0]).mean()),
            against=None if name == "learned" else paired_bootstrap(right[name][None], right["learned"][None]),
        )
        for name, (predicted, length) in found.items()
    )
    segmented = [right[name] for name in right if name != MEAN]
    return SegmentationComparison(
        documents=len(corpus),
        cuts=cuts,
        always=float(np.logical_and.reduce(segmented).mean()),
        in_reach=float(np.logical_or.reduce(segmented).mean()),
        label_bits=float(torch.cat(drawn.label_bits).mean()),
        boundary_bits=float(torch.cat(drawn.boundary_bits).mean()),
    )


def _found(predictions: Predictions) -> Found:
    assert predictions.phrases is not None
    return predictions.logits.argmax(axis=1), predictions.phrases.mean


@dataclass(frozen=True)
class ShownPhrases:
    """Phrase evidence: accuracy by the exact sum over all segmentations, by the best one alone, and by the one alone
    that explanations show, which ends phrases where a reader would pause. (The evidence that explanations give to the
    shown phrases is that of the sum.)"""

    documents: int
    exact: float
    best: float
    shown: float
    differs: float  # share of the documents to which the shown phrases alone give another label than the sum
    words_per_phrase: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare_shown(reader: EvidenceReader, corpus: Corpus) -> ShownPhrases:
    """Labelled documents, each with all segmentations and with the shown one alone."""
    assert corpus.labels is not None
    labels = np.empty((3, len(corpus)), dtype=np.int64)  # by the sum, by the best, by the shown phrases
    phrases = 0
    for rows in BatchPlan(corpus.lengths, words=BATCH_WORDS).in_order():
        batch = corpus.batch(rows)
        reading = reader.read(batch)
        chosen = reading.chosen[batch.document_of_sentence]
        best, *_ = best_cut(reader.potentials(batch), batch.sentence_offsets, chosen)
        alone = [cut_logits(reader, batch, z) + reading.priors for z in (best, reading.z)]
        labels[:, rows] = reading.chosen, *(logits.argmax(axis=1) for logits in alone)
        phrases += int(reading.z.sum())
    exact, best_alone, shown = (labels == corpus.labels).mean(axis=1).tolist()
    differs = float((labels[0] != labels[2]).mean())
    return ShownPhrases(len(corpus), exact, best_alone, shown, differs, int(corpus.lengths.sum()) / phrases)


def cut_logits(
    reader: EvidenceReader, batch: Batch, z: Bool[np.ndarray, " words"]
) -> Float[np.ndarray, "documents classes"]:
    """What the phrases of z say alone, up to what is the same for all classes."""
    ends, widths = phrases_of(z)
    evidence = reader.evidence(batch)[ends, widths - 1].astype(np.float64)  # (phrases, classes)
    evidence *= reader.lambdas(batch)[batch.sentence_of_word[ends]][:, None]
    logits = np.zeros((batch.n_documents, evidence.shape[1]))
    np.add.at(logits, batch.document_of_sentence[batch.sentence_of_word[ends]], evidence)
    return logits


class Marginal(DocumentModel):
    """Predicts one label per document by the mean over `drawn` segmentations of `model`. `label_bits` and
    `boundary_bits` hold one tensor per batch seen, with a value per document."""

    def __init__(self, model: EMHRNN, drawn: int = DRAWN, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.model, self.drawn, self.temperature = model, drawn, temperature
        self.generator = np.random.default_rng(0)
        self.label_bits: list[Tensor] = []
        self.boundary_bits: list[Tensor] = []

    def forward(self, batch: Batch) -> Output:
        """Logits are logarithms of the mean probabilities; the rest is that of the last segmentation."""
        states = self.model.words(batch)
        outputs = [
            self.model.encode(batch, states, sample_prior(batch, states.a, self.generator)) for _ in range(self.drawn)
        ]
        p = torch.softmax(torch.stack([output.logits for output in outputs]).double() / self.temperature, dim=2)
        self.label_bits.append(label_bits(p))
        self.boundary_bits.append(boundary_bits(batch, states.a))
        return replace(outputs[-1], logits=p.mean(0).log().to(states.a.dtype))


def label_bits(p: Float[Tensor, "drawn documents classes"]) -> Float[Tensor, " documents"]:
    """I(y; Z | w) of each document, given p(y | Z, w) of some Z. The plain estimate is too small by
    (drawn - 1) / drawn, as that of a variance is; this is corrected."""
    between = _bits(p.mean(0)).sum(1) - _bits(p).sum(2).mean(0)
    return between * len(p) / (len(p) - 1)


def boundary_bits(batch: Batch, a: Float[Tensor, " words"]) -> Float[Tensor, " documents"]:
    """H(Z | w) of each document, given the logit of pi. The ends of sentences are known."""
    pi = torch.sigmoid(a.double())
    bits = _bits(pi) + _bits(1 - pi)
    bits[torch.from_numpy(batch.sentence_final)] = 0
    return torch.segment_reduce(bits, "sum", lengths=torch.from_numpy(batch.document_lengths))


def _bits(p: Tensor) -> Tensor:
    bits: Tensor = torch.special.entr(p) / np.log(2)
    return bits
