r"""Phrase evidence: every latent phrase speaks for the classes by itself, and all segmentations are summed exactly.

    a phrase     a run of at most K words inside a sentence, (a..b)
    evidence     e_y(a..b): what it says for class y: counts, a table and a small network (layers/evidence.py)
    cohesion     g(a..b): how willing its words are to stand together: a prior of its length, and pauses at its end

    alpha_y(t) = logsumexp over k = 1..K of alpha_y(t - k) + g(t-k+1..t) + e_y(t-k+1..t)        (layers/semi_markov.py)
    logit_y    = b_y + lambda * sum over sentences i of gamma_i alpha_y(T_i)    lambda = strength * (words / 200)^-power

gamma_i is 1, or the weight of the sentence by recurrent layers, on average 1 in a document. Users and products, where
they are read, add scores of their own to b_y.

There are 2^(T - 1) segmentations of a sentence of T words, and the sum over them costs T K. Fitting p(y | w) by its
gradient is EM: the gradient is the posterior-weighted sum over segmentations (Fisher's identity), and the posterior of
every phrase comes from one backward recursion.

With several labels a document, class y is a yes/no question: logit_y = b_y + lambda * sum of alpha_y(T) - alpha_0(T),
where alpha_0 is the sum over all segmentations without evidence.

This file is the model as it learns. evidence_reader.py is a trained one: how it predicts, and what each word adds.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, softplus
from torch.utils.checkpoint import checkpoint

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.layers.dropout import dropout
from emhrnn.layers.evidence import Scores, add_cohesion, encoded, log_partition, seen_evidence
from emhrnn.layers.phrases import UNKNOWN_WORD, PhraseIndex, distinct_words, presence_weights
from emhrnn.layers.recurrent import Bidirectional, recurrent_layer
from emhrnn.models.evidence_reader import (
    BUCKETS,
    IDS,
    USUAL_WORDS,
    AddsEvidence,
    EvidenceReader,
    Reading,
    capped,
    only,
    portions,
    segmentation_rule,
)
from emhrnn.models.model import DocumentModel, IdScores, Output, log_likelihood
from emhrnn.models.pauses import Pauses
from emhrnn.models.predictor import Inference
from emhrnn.models.seen_phrases import SeenPhrases, own_labels, rows_that_fit, saved_rows
from emhrnn.models.settings import OVERLAPPING, EvidenceConfig
from emhrnn.shapes import Float, Int64

LEAST_ROWS = 1000  # of seen phrases: fewer are no model
START_SCALE, START_LENGTH = 0.3, -0.5  # of ratios; of the prior, for each further word of a phrase
START_STRENGTH = -1.1  # a logarithm
START_PAUSES = 0.0


class Evidence(DocumentModel, AddsEvidence):
    """Learns from batches with a generator; without one, and in `infer` and `read`, a reader of its tensors answers."""

    vectors: Float[Tensor, "vocabulary size"]  # of words, frozen

    def __init__(
        self,
        config: EvidenceConfig,
        *,
        table: Float[Tensor, "vocabulary size"],
        classes: int,
        generator: torch.Generator,
        vocabulary: Sequence[str] = (),
        several: bool = False,
        authors: tuple[int, int] = (0, 0),
    ) -> None:
        """`vocabulary` are the words, for pauses and segmentations that read them. Documents may have `several` labels.
        `authors` are the numbers of users and products, for a model that reads them.

        Raises:
            ConfigError: the bound on the size has no room for phrases, or there are no users or products to read.
        """
        super().__init__()
        words, size = table.shape
        longest, encoder_size, sentence_weights = config.longest, config.encoder_size, config.sentence_weights
        self.classes, self.longest, self.presence, self.dropout = classes, longest, config.presence, config.dropout
        self.counted, self.tables, self.several = config.counts, config.tables, several
        self.overlapping = config.segmentation == OVERLAPPING
        self.table_documents, self.table_decay = config.table_documents, config.table_decay
        self.config, self.rule = config, segmentation_rule(config, vocabulary)
        self.scale = nn.Parameter(torch.full((longest, BUCKETS), START_SCALE))
        self.mixing = nn.Parameter(torch.zeros(classes, classes)) if config.mixes(classes) else None
        self.length_prior = nn.Parameter(START_LENGTH * torch.arange(longest, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(classes))
        self.strength = nn.Parameter(torch.tensor(START_STRENGTH))  # its logarithm
        self.power = nn.Parameter(torch.tensor(0.5))
        self.pauses = Pauses(vocabulary) if config.pauses else None
        self.pause_strength = nn.Parameter(torch.tensor(START_PAUSES))
        self.encoder = _Encoder(size, longest, encoder_size, classes, generator) if encoder_size else None
        self.weigher = _SentenceWeights(size, sentence_weights, generator) if sentence_weights else None
        self.ids = nn.ModuleDict()
        if config.ids:
            self.ids = nn.ModuleDict({kind: IdScores(kind, n, classes) for kind, n in zip(IDS, authors, strict=True)})
        self.register_buffer("vectors", table if config.reads_vectors else table[:0])
        others = sum(tensor.numel() for tensor in self.state_dict().values())
        most = rows_that_fit(config.megabytes, classes, besides=others)
        if most < LEAST_ROWS:
            raise ConfigError(
                f"model.megabytes = {config.megabytes:g} leaves no room for phrases beside vectors of {words:,} words "
                f"and {classes} classes; raise it, or set data.max_vocabulary or model.encoder_size=0"
            )
        self.ngrams = SeenPhrases(
            classes,
            longest=longest,
            least=config.least_documents,
            most=most,
            smoothing=config.smoothing,
            several=several,
        )
        self._index: tuple[tuple[int, int], PhraseIndex] | None = None
        self._reader: tuple[Any, list[tuple[Any, str, int, int]], EvidenceReader] | None = None  # rule, its tensors

    @property
    def row_decay(self) -> float:
        return self.table_decay

    def count(self, batches: Iterable[Batch], class_weights: Float[Tensor, " classes"] | None = None) -> None:
        """Learn which phrases there are, from training documents: before the first step, and again for new ones. The
        bias begins with the shares of the classes in the loss, in which they may have weights."""
        begin = self.ngrams.empty
        self.ngrams.add(batches)
        if self.pauses is not None:
            self.pauses.add(batches)
        if begin:
            counts = self.ngrams.statistics()
            with torch.no_grad():
                self.bias.copy_(-counts.shift if class_weights is None else class_weights.log() - counts.shift)

    def grow(self, batches: Sequence[Batch]) -> None:
        """Count more documents, and make room for phrases that are new in them. The bias of a class that is new begins
        with its share of all documents, beside those of the others."""
        known = self.ngrams.class_documents > 0
        self.ngrams.grow(batches)
        self.count(batches)
        shares = -self.ngrams.statistics().shift
        with torch.no_grad():
            begun = (self.bias - shares)[known].mean() + shares
            self.bias.copy_(torch.where(known, self.bias, begun))

    @property
    def uncounted(self) -> bool:
        return self.ngrams.empty

    def take_sizes(self, tensors: Mapping[str, Tensor]) -> None:
        """Make room for the phrases of these tensors, which are about to be loaded."""
        self.ngrams.take_sizes(saved_rows(tensors, "ngrams.keys"))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """With a generator, for training: the batch's own labels are left out of counts, and phrases are dropped."""
        if generator is None:
            logits = torch.from_numpy(self.reader.logits(batch))
            return Output(logits, logits)
        rows, weights = self._candidates(batch, generator)
        parts, first, several = [], 0, portions(batch, self.longest * self.classes, by_sentence=False)
        for part in several:
            words = slice(first, first := first + part.n_words)
            alpha = partial(self._alpha, part, rows[words], weights[words])
            # For the gradient, large batches are computed again portion by portion, or all would stay in memory.
            parts.append(checkpoint(alpha, use_reentrant=False) if len(several) > 1 else alpha())
        alphas = parts[0] if len(parts) == 1 else torch.cat(parts)
        of_documents = _sums(self.lambdas(batch)[:, None] * alphas, batch.document_of_sentence, batch.n_documents)
        logits = self.priors(batch) + of_documents
        return Output(logits, logits)

    def rationale_loss(self, batch: Batch, generator: torch.Generator) -> Float[Tensor, ""]:
        """Of documents with marked words: these alone should get the label, and sentences should weigh as they are
        marked. The mean over such documents; 0 where there is none."""
        assert batch.marked is not None
        alone = batch.only(batch.marked)
        if alone is None or not self.config.rationales:
            return self.bias.new_zeros(())
        assert alone.labels is not None
        loss = -log_likelihood(self(alone, generator).logits, torch.from_numpy(alone.labels)).mean()
        if self.weigher is not None:
            words = np.bincount(batch.sentence_of_word, weights=batch.marked, minlength=batch.n_sentences)
            of_document = np.bincount(batch.document_of_sentence, weights=words, minlength=batch.n_documents)
            target = words / np.maximum(of_document, 1)[batch.document_of_sentence]  # sums to 1 in marked documents
            shares = self.weigher(batch, self.vectors) / torch.from_numpy(
                np.diff(batch.document_offsets)[batch.document_of_sentence]
            )
            loss = loss - (torch.from_numpy(target).float() * torch.log(shares)).sum() / len(alone)
        return self.config.rationales * loss

    def infer(self, batch: Batch) -> Inference:
        return self.reader.infer(batch)

    def read(self, batch: Batch) -> Reading:
        return self.reader.read(batch)

    @property
    def reader(self) -> EvidenceReader:
        """The model as it is now, on the same memory."""
        if self._reader is not None:
            rule, held, reader = self._reader
            if rule is self.rule and all(
                (tensor := tensors[name]).data_ptr() == place and tensor._version == version
                for tensors, name, place, version in held
            ):
                return reader
        modules = [tensors for module in self.modules() for tensors in (module._parameters, module._buffers)]
        held = [
            (tensors, name, tensor.data_ptr(), tensor._version)
            for tensors in modules
            for name, tensor in tensors.items()
            if tensor is not None
        ]
        arrays = {name: tensor.numpy() for name, tensor in self.state_dict().items()}
        reader = EvidenceReader(self.config, arrays, several=self.several, fixed=self.rule)
        self._reader = (self.rule, held, reader)
        return reader

    def training_evidence(self, batch: Batch, generator: torch.Generator) -> Scores:
        """e of every candidate phrase, as training has it."""
        return self._evidence(batch, *self._candidates(batch, generator))

    def _candidates(
        self, batch: Batch, generator: torch.Generator
    ) -> tuple[Int64[Tensor, "words K"], Float[Tensor, "words K"]]:
        """The row of each candidate phrase, and what it weighs."""
        keys = self.ngrams.keys
        version = keys.data_ptr(), keys._version  # loading puts other keys into the same tensor
        if self._index is None or self._index[0] != version:
            self._index = (version, PhraseIndex(keys.numpy()))
        rows = self._index[1].rows(batch, self.longest)
        weights = torch.from_numpy(presence_weights(batch, rows, self.presence))
        return torch.from_numpy(rows), dropout(weights, self.dropout, generator)

    def _evidence(self, batch: Batch, rows: Int64[Tensor, "words K"], weights: Float[Tensor, "words K"]) -> Scores:
        if not (self.counted or self.tables):
            scores = torch.zeros(*rows.shape, self.classes)
        else:
            table = self.ngrams.table if self.tables else self.ngrams.table.detach()
            scale = self.scale if self.counted else torch.zeros_like(self.scale)
            own = own_labels(batch, self.classes)
            scores = seen_evidence(
                table, scale, self.ngrams.statistics(own), rows=rows, weights=weights,
                word_offsets=torch.from_numpy(batch.word_offsets), own=own, mixing=self.mixing,
                least=float(self.table_documents),
            )  # fmt: skip
        return scores if self.encoder is None else scores.add_(self.encoder(batch, self.vectors))

    def cohesion(self, batch: Batch) -> Float[Tensor, "words K"]:
        """g of every candidate phrase; -inf where a fixed segmentation has no such phrase."""
        g = self.length_prior.expand(batch.n_words, self.longest)
        if self.pauses is not None:
            g = g + (self.pause_strength * self.pauses(batch) * torch.from_numpy(~batch.sentence_final))[:, None]
        if self.rule is not None:
            allowed = torch.from_numpy(only(capped(self.rule(batch), self.longest), self.longest))
            g = g.masked_fill(~allowed, -torch.inf)
        return g

    def lambdas(self, batch: Batch) -> Float[Tensor, " sentences"]:
        """What the evidence of each sentence is multiplied with: 0 in documents without a known word, where nothing is
        left but the bias."""
        lengths = torch.from_numpy(batch.document_lengths)
        known = torch.from_numpy(np.logical_or.reduceat(batch.words != UNKNOWN_WORD, batch.word_offsets[:-1]))
        of_document = torch.exp(self.strength - self.power * torch.log(lengths / USUAL_WORDS)) * known
        of_sentence = of_document[torch.from_numpy(batch.document_of_sentence)]
        return of_sentence if self.weigher is None else of_sentence * self.weigher(batch, self.vectors)

    def priors(self, batch: Batch) -> Float[Tensor, "documents classes"]:
        """The logits of each document without its phrases: by the bias, its user and its product."""
        given = {"user": batch.users, "product": batch.products}
        said = (scores(given[kind]) for kind, scores in self.ids.items())
        return self.bias + sum(said, torch.zeros(batch.n_documents, self.classes))

    def _alpha(
        self, batch: Batch, rows: Int64[Tensor, "words K"], weights: Float[Tensor, "words K"]
    ) -> Float[Tensor, "sentences classes"]:
        """What each sentence says, compared over the classes before sentences are added up: the sums of long documents
        would lose digits."""
        scores = add_cohesion(self._evidence(batch, rows, weights), self.cohesion(batch))
        sums = self._bag if self.overlapping else self._partition
        said = sums(batch, scores)
        return said - (sums(batch, self.cohesion(batch)[:, :, None]) if self.several else said.mean(1, keepdim=True))

    def _partition(self, batch: Batch, scores: Scores) -> Float[Tensor, "sentences classes"]:
        """Over all segmentations."""
        return log_partition(scores, batch.sentence_offsets)

    def _bag(self, batch: Batch, scores: Scores) -> Float[Tensor, "sentences classes"]:
        """Over all candidates."""
        position = np.arange(batch.n_words) - batch.sentence_offsets[batch.sentence_of_word]
        possible = torch.from_numpy(position[:, None] >= np.arange(self.longest))  # (words, K)
        return _sums((scores * possible[:, :, None]).sum(dim=1), batch.sentence_of_word, batch.n_sentences)


class _Encoder(nn.Module):
    """U^T tanh(b_k + sum over j < k of P_j x_(t-j)) of every candidate phrase, x: word vectors."""

    def __init__(self, size: int, longest: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.projection = nn.Parameter(
            torch.empty(size, longest, hidden).normal_(0, 0.5 * size**-0.5, generator=generator)
        )
        self.bias = nn.Parameter(torch.zeros(longest, hidden))
        self.output = nn.Parameter(torch.empty(hidden, classes).normal_(0, 0.1, generator=generator))

    def forward(self, batch: Batch, vectors: Float[Tensor, "vocabulary size"]) -> Scores:
        distinct, places = distinct_words(batch.words)
        words = torch.tensordot(vectors.index_select(0, torch.from_numpy(distinct)), self.projection, 1)
        return encoded(
            words, self.bias, self.output, torch.from_numpy(places), torch.from_numpy(batch.sentence_offsets)
        )


class _SentenceWeights(nn.Module):
    """gamma_i > 0 of each sentence, with a mean of 1 in each document: a bidirectional GRU over the mean word vectors
    of the sentences. All are 1 at first."""

    def __init__(self, size: int, hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        directions = [recurrent_layer("gru", size, hidden, generator) for _ in range(2)]
        self.layer = Bidirectional(*directions)
        self.score = nn.Parameter(torch.zeros(2 * hidden))

    def forward(self, batch: Batch, vectors: Float[Tensor, "vocabulary size"]) -> Float[Tensor, " sentences"]:
        means = embedding_bag(
            torch.from_numpy(batch.words), vectors, torch.from_numpy(batch.sentence_offsets[:-1]), mode="mean"
        )  # (sentences, size)
        raw = softplus(self.layer(means, batch.document_offsets) @ self.score)  # (sentences)
        document, sentences = torch.from_numpy(batch.document_of_sentence), np.diff(batch.document_offsets)
        total = raw.new_zeros(batch.n_documents).index_add(0, document, raw)
        return raw * (torch.from_numpy(sentences) / total)[document]


def _sums(
    values: Float[Tensor, "n classes"], group: Int64[np.ndarray, " n"], groups: int
) -> Float[Tensor, "m classes"]:
    return values.new_zeros(groups, values.shape[1]).index_add(0, torch.from_numpy(group), values)
