r"""A product of experts: any network, and the scores of words and pairs beside it.

    logits  =  a * logits of the network  +  b * common words  +  c * rare words  +  d * pairs

Network and n-grams are trained apart: each is fitted to the labels as if the other were not there. Fitted together,
words and pairs memorise the training documents, and nothing is left for the network to explain. The shares a, b, c, d
are fitted on validation data, from which none of the experts has learned:

    minimise    sum over documents of -log p(label) + 1/2 sum_e (share_e - 1)^2        convex in the shares, all >= 0

The plain product (all shares 1) counts twice what several experts know, and over-weights an expert that memorised its
training documents. The normal prior around 1 decides where documents are few.

N-grams are a linear classifier on a bag of words and pairs of neighbouring words, which is hard to beat on long
documents. Pairs share hashed buckets and do not cross the end of a sentence. All scores begin at zero.

    d  =  sum over the words t of a document of (u[w_t] + u[w_{t-1} w_t]) / sqrt(words of the document)
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.calibration import Labels, undecided
from emhrnn.layers.dropout import dropout
from emhrnn.models.fitting import labels_of
from emhrnn.models.model import DocumentModel, Output
from emhrnn.models.row import Builder, Facts
from emhrnn.paper.models.layers import WordInputs
from emhrnn.paper.models.rows import BucketsConfig, NGramsConfig
from emhrnn.shapes import Bool, Float, Float64, Int64

if TYPE_CHECKING:  # the table of models imports this file, and training imports the table
    from emhrnn.training.config import Config
    from emhrnn.training.distributed import Processes
    from emhrnn.training.loop import LabelLoss, Objective

PACE = 50.0  # learning rate, times that of the rest: of the first step, later ones are shorter (RowAdagrad)
COMMON = 3_000  # words, which come first in the vocabulary. Rarer ones have learned in few steps
MIX = (2654435761, 40503)  # about 2^32 and 2^16 by the golden ratio: of a pair's first and second word
EXPERTS = ("network", "common", "rare", "pairs")
MOST_SCORES = 50_000_000  # of pairs of words for classes: 200 MB
MOST = 10.0  # share of an expert. What lies above comes from a few documents
ENOUGH = 50_000  # documents, from all over the data: more would not move the shares, and would take memory
_CLOSE_LOSS = 1e-9  # to the least, per document

ExpertLogits = Float[np.ndarray, "experts documents classes"]


class NGrams(nn.Module):
    """Scores of the classes by the words and pairs of each document."""

    def __init__(self, vocabulary: int, buckets: int, classes: int) -> None:
        super().__init__()
        self.vocabulary, self.buckets = vocabulary, buckets
        self.table = nn.Parameter(torch.zeros(vocabulary + buckets, classes))  # words, then buckets of pairs
        self.places = WordInputs()

    def forward(
        self, batch: Batch, p: float = 0.0, generator: torch.Generator | None = None
    ) -> Float[Tensor, "documents classes"]:
        """With a generator, each place is left out with probability p, its word and the pair that ends there."""
        place = dropout(self.per_place(batch), p, generator)
        return self._of_words(batch, place) + self._of_pairs(batch, place)

    def apart(self, batch: Batch) -> Float[Tensor, "3 documents classes"]:
        """The scores by common words, by rare words and by pairs."""
        place, common = self.per_place(batch), torch.from_numpy(batch.words < COMMON)
        words = self._of_words(batch, place * common), self._of_words(batch, place * ~common)
        return torch.stack([*words, self._of_pairs(batch, place)])

    def per_place(self, batch: Batch) -> Float[Tensor, " words"]:
        """1 / sqrt(words of the document), of each word."""
        lengths = torch.from_numpy(batch.document_lengths)
        place: Tensor = self.places(lengths.to(self.table.dtype).rsqrt().repeat_interleave(lengths)[:, None])
        return place.squeeze(1)

    def rows_of_pairs(self, batch: Batch, second: Int64[np.ndarray, " pairs"]) -> Int64[Tensor, " pairs"]:
        """The bucket of each pair, given where its second word is."""
        mixed = batch.words[second - 1] * MIX[0] + batch.words[second] * MIX[1]
        return torch.from_numpy(self.vocabulary + mixed % self.buckets)

    def _of_words(self, batch: Batch, place: Float[Tensor, " words"]) -> Float[Tensor, "documents classes"]:
        return self._sums(torch.from_numpy(batch.words), batch.word_offsets, place)

    def _of_pairs(self, batch: Batch, place: Float[Tensor, " words"]) -> Float[Tensor, "documents classes"]:
        second = np.delete(np.arange(batch.n_words), batch.sentence_offsets[:-1])  # words that end a pair
        before = batch.word_offsets - batch.document_offsets  # the first word of a sentence ends none
        return self._sums(self.rows_of_pairs(batch, second), before, place[torch.from_numpy(second)])

    def _sums(
        self, rows: Int64[Tensor, " n"], offsets: Int64[np.ndarray, " documents_plus_1"], place: Float[Tensor, " n"]
    ) -> Float[Tensor, "documents classes"]:
        # A sparse gradient, as that of the word vectors.
        return F.embedding_bag(
            rows, self.table, torch.from_numpy(offsets[:-1]), mode="sum", per_sample_weights=place, sparse=True
        )


class ProductOfExperts(DocumentModel):
    """A network, or none, and n-grams. The shares are 1 until they are fitted."""

    share: Float64[Tensor, " experts"]

    def __init__(self, network: DocumentModel | None, ngrams: NGrams, dropout: float) -> None:
        """`dropout` is that of the n-grams; the network has its own."""
        super().__init__()
        self.network, self.ngrams, self.dropout = network, ngrams, dropout
        self.register_buffer("share", torch.ones(len(EXPERTS) - (network is None), dtype=torch.float64))

    @property
    def shares(self) -> dict[str, Tensor]:
        return dict(zip(EXPERTS[-len(self.share) :], self.share, strict=True))

    def forward(self, batch: Batch) -> Output:
        """The weighted product; what else the network tells stays as it is."""
        return self._product(batch, None if self.network is None else self.network(batch))

    def encode_phrases(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> Output:
        return self._product(batch, None if self.network is None else self.network.encode_phrases(batch, z))

    def _product(self, batch: Batch, output: Output | None) -> Output:
        logits = torch.tensordot(self.share.to(self.ngrams.table.dtype), self._apart(batch, output), dims=1)
        return Output(logits, logits) if output is None else replace(output, logits=logits)

    def _apart(self, batch: Batch, output: Output | None) -> Float[Tensor, "experts documents classes"]:
        ngrams = self.ngrams.apart(batch)
        return ngrams if output is None else torch.cat([output.logits[None], ngrams])

    @torch.inference_mode()
    def fit_shares(self, batches: Iterable[Batch]) -> None:
        """Fit the shares to labelled documents; all are 1 where these cannot decide."""
        logits, labels = [], []
        for batch in batches:
            output = None if self.network is None else self.network(batch)
            logits.append(self._apart(batch, output).numpy())
            labels.append(labels_of([batch]))
        self.share.copy_(torch.from_numpy(best_shares(np.concatenate(logits, axis=1), np.concatenate(labels))))

    def learning_rate_scales(self) -> dict[str, float]:
        own = {} if self.network is None else self.network.learning_rate_scales()
        return {"ngrams.table": PACE, **{f"network.{name}": scale for name, scale in own.items()}}

    @property
    def segments(self) -> bool:
        return self.network is not None and self.network.segments

    def make_objective(
        self, config: "Config", label_loss: "LabelLoss", corpus: Corpus, job: "Processes", *, known: int
    ) -> "ProductObjective":
        """The network's own objective, and that of the n-grams."""
        from emhrnn.training.loop import make_objective

        own = None if self.network is None else make_objective(self.network, config, corpus, job, known=known)
        return ProductObjective(self, own, label_loss, config.training.seed, job)


class ProductObjective:
    """Both experts learn in one step, each by its own loss."""

    def __init__(
        self,
        model: ProductOfExperts,
        network: "Objective | None",
        label_loss: "LabelLoss",
        seed: int,
        job: "Processes",
    ) -> None:
        self.model, self.network, self.label_loss, self.seed, self.job = model, network, label_loss, seed, job

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]:
        from emhrnn.training.loop import label_part
        from emhrnn.training.schedule import Purpose, torch_generator

        noise = self.job.noise(torch_generator(self.seed, Purpose.NGRAMS, step))
        ngrams = label_part(self.label_loss, self.job, self.model.ngrams(batch, self.model.dropout, noise), batch)
        if self.network is None:
            return ngrams, {}
        loss, notes = self.network.loss(batch, epoch, step)
        return loss + ngrams - ngrams.detach(), notes  # the loss that is shown is the network's

    def end_epoch(self) -> dict[str, float]:
        return {} if self.network is None else self.network.end_epoch()

    def settled(self, epoch: int) -> bool:
        return self.network is None or self.network.settled(epoch)

    def state_dict(self) -> dict[str, Tensor]:
        return {} if self.network is None else self.network.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        if self.network is not None:
            self.network.load_state_dict(state)


def best_shares(logits: ExpertLogits, labels: Labels) -> Float64[np.ndarray, " experts"]:
    """The share of each expert; all are 1 where the documents cannot decide."""
    ones = np.ones(len(logits))
    some = slice(None, None, 1 + len(labels) // (ENOUGH + 1))
    x, labels = logits[:, some].astype(np.float64), labels[some]
    if undecided(x.sum(axis=0), labels):
        return ones
    fitted = minimize(
        _loss, ones, args=(x, labels), jac=True, method="L-BFGS-B", bounds=[(0, MOST)] * len(x),
        options={"ftol": _CLOSE_LOSS, "gtol": _CLOSE_LOSS},
    )  # fmt: skip
    best: np.ndarray = fitted.x
    return best


def _loss(shares: Float64[np.ndarray, " experts"], x: ExpertLogits, labels: Labels) -> tuple[float, np.ndarray]:
    """What is minimised, by document, and its gradient: that of a document is E[x_e] - x_e of the label."""
    logits = np.tensordot(shares, x, axes=1)  # (documents, classes)
    if labels.ndim == 2:
        loss = (np.logaddexp(0, logits) - (labels > 0.5) * logits).sum()
        wrong = np.exp(-np.logaddexp(0, -logits)) - (labels > 0.5)  # sigmoid, without overflow
    else:
        true = np.arange(len(labels)), labels
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        loss = -log_p[true].sum()
        wrong = np.exp(log_p)
        wrong[true] -= 1
    gradient = np.tensordot(x, wrong, axes=2)  # (experts,)
    n = len(labels)
    return float(loss + 0.5 * ((shares - 1) ** 2).sum()) / n, (gradient + shares - 1) / n


def build_product(
    network: Builder, config: Any, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int
) -> ProductOfExperts:
    """A network and n-grams beside it."""
    built = network(config, facts, table, vocabulary, seed)
    return ProductOfExperts(built, _ngrams(config, facts, vocabulary), config.dropout)


def build_ngrams(
    config: NGramsConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int
) -> ProductOfExperts:
    """N-grams alone."""
    return ProductOfExperts(None, _ngrams(config, facts, vocabulary), config.dropout)


def _ngrams(config: BucketsConfig, facts: Facts, vocabulary: Sequence[str]) -> NGrams:
    """Each bucket has a score for each class, so that many classes share fewer buckets."""
    buckets = min(config.buckets, max(MOST_SCORES // facts.classes, 1))
    return NGrams(len(vocabulary), buckets, facts.classes)
