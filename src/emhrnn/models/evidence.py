r"""Phrase evidence: every latent phrase speaks for the classes by itself, and all segmentations are summed exactly.

    a phrase     a run of at most K words inside a sentence, (a..b)
    evidence     e_y(a..b): what it says for class y: counts, a table and a small network (layers/evidence.py)
    cohesion     g(a..b): how willing its words are to stand together: a prior of its length, and pauses at its end

    alpha_y(t) = logsumexp over k = 1..K of alpha_y(t - k) + g(t-k+1..t) + e_y(t-k+1..t)        (layers/semi_markov.py)
    logit_y    = b_y + lambda * sum over sentences of alpha_y(T)         lambda = strength * (words / 200)^-power

There are 2^(T - 1) segmentations of a sentence of T words, and the sum over them costs T K. Fitting p(y | w) by its
gradient is EM: the gradient is the posterior-weighted sum over segmentations (Fisher's identity), and the posterior of
every phrase comes from one backward recursion.

With several labels a document, class y is a yes/no question: logit_y = b_y + lambda * sum of alpha_y(T) - alpha_0(T),
where alpha_0 is the sum over all segmentations without evidence.

The explanation is the model: the best segmentation of the predicted class, and for each of its phrases lambda * e_y.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.layers.dropout import dropout
from emhrnn.layers.evidence import Scores, buckets_of, encoded, gathered, seen_evidence
from emhrnn.layers.phrases import MOST_WORDS, NONE, PhraseIndex, repeats
from emhrnn.layers.semi_markov import best_cut, log_partition
from emhrnn.models.output import Output
from emhrnn.models.pauses import Pauses
from emhrnn.models.seen_phrases import SeenPhrases, own_labels, rows_that_fit, saved_rows

BUCKETS = 12  # of the number of documents with a phrase: 1, 2-3, 4-7, ...
USUAL_WORDS = 200  # of a document, for which lambda is `strength`
AT_ONCE = 40_000_000  # numbers of candidates x classes that are held at a time: 160 MB
START_SCALE, START_LENGTH = 0.3, -0.5  # of ratios; of the prior, for each further word of a phrase


class Evidence(nn.Module):
    """A batch to logits; `read` gives the segmentation and the evidence of each phrase, too."""

    def __init__(
        self,
        *,
        table: Float[Tensor, "vocabulary size"],
        classes: int,
        generator: torch.Generator,
        longest: int = 4,
        counted: bool = True,
        tables: bool = True,
        encoder_size: int = 32,
        presence: float = 1.0,
        pauses: Sequence[str] = (),
        several: bool = False,
        dropout: float = 0.0,
        least: int = 2,
        smoothing: float = 1.0,
        megabytes: float = 200.0,
        rule: Callable[[Batch], Bool[np.ndarray, " words"]] | None = None,
        overlapping: bool = False,
    ) -> None:
        """`pauses` are the words of the vocabulary, none for a model without them. `rule` replaces the sum over all
        segmentations by one fixed segmentation, `overlapping` by the sum of the evidence of all candidates (ablations).

        Raises:
            ConfigError: no part of the evidence is on, or the bound on the size has no room for phrases.
        """
        super().__init__()
        if not (counted or tables or encoder_size):
            raise ConfigError("evidence without counts, tables and encoder says nothing; switch one of them on")
        vocabulary, size = table.shape
        self.classes, self.longest, self.presence, self.dropout = classes, longest, presence, dropout
        self.counted, self.tables, self.several, self.rule = counted, tables, several, rule
        self.overlapping = overlapping
        most = rows_that_fit(megabytes, classes, besides=vocabulary * size if encoder_size else 0)
        if most < 1000:
            raise ConfigError(
                f"model.megabytes = {megabytes:g} leaves no room for phrases beside vectors of {vocabulary:,} words "
                f"and {classes} classes; raise it, or set data.max_vocabulary or model.encoder_size=0"
            )
        self.ngrams = SeenPhrases(
            classes, longest=longest, least=least, most=most, smoothing=smoothing, several=several
        )
        self.scale = nn.Parameter(torch.full((longest, BUCKETS), START_SCALE))
        self.length_prior = nn.Parameter(START_LENGTH * torch.arange(longest, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(classes))
        self.strength = nn.Parameter(torch.zeros(()))  # its logarithm
        self.power = nn.Parameter(torch.tensor(0.5))
        self.pauses = Pauses(pauses) if pauses else None
        self.encoder = _Encoder(table, longest, encoder_size, classes, generator) if encoder_size else None
        self._phrases: PhraseIndex | None = None
        self._folded: tuple[tuple[int, ...], Tensor] | None = None

    def learning_rate_scales(self) -> dict[str, float]:
        """By parameter name, the share of the learning rate."""
        return {"ngrams.table": 1.0}

    def count(self, batches: Iterable[Batch]) -> None:
        """Learn which phrases there are, from training documents: before the first step, and again for new ones."""
        begin = self.ngrams.empty
        self.ngrams.add(batches)
        if self.pauses is not None:
            self.pauses.add(batches)
        if begin:
            counts = self.ngrams.statistics()
            with torch.no_grad():
                self.bias.copy_(-counts.shift)

    @property
    def uncounted(self) -> bool:
        return self.ngrams.empty

    def take_sizes(self, tensors: Mapping[str, Tensor]) -> None:
        """Make room for the phrases of these tensors, which are about to be loaded."""
        self.ngrams.take_sizes(saved_rows(tensors, "ngrams.keys"))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        parts = [
            self._logits(part, self.potentials(part, self.evidence(part, generator)))
            for part in _portions(batch, self.longest * self.classes)
        ]
        logits = parts[0] if len(parts) == 1 else torch.cat(parts)
        return Output(logits, logits)

    def evidence(self, batch: Batch, generator: torch.Generator | None = None) -> Scores:
        """e of every candidate phrase. With a generator, for training: the batch's own labels are left out of counts,
        and seen phrases are dropped."""
        rows = self._index().rows(batch, self.longest)  # (words, K)
        weights = (rows != NONE).float()
        if self.presence:
            weights = weights * repeats(batch, rows).clamp_min(1).float().pow(-self.presence)
        weights = dropout(weights, self.dropout, generator)
        if generator is None:
            scores = gathered(self._said(), rows, weights)
        elif not (self.counted or self.tables):
            scores = torch.zeros(*rows.shape, self.classes)
        else:
            table = self.ngrams.table if self.tables else self.ngrams.table.detach()
            scale = self.scale if self.counted else torch.zeros_like(self.scale)
            scores = seen_evidence(
                table, scale, self.ngrams.statistics(), rows=rows, weights=weights,
                word_offsets=torch.from_numpy(batch.word_offsets), own=own_labels(batch, self.classes),
            )  # fmt: skip
        return scores if self.encoder is None else scores + self.encoder(batch)

    def cohesion(self, batch: Batch) -> Float[Tensor, "words K"]:
        """g of every candidate phrase; -inf where a fixed segmentation has no such phrase."""
        g = self.length_prior.expand(batch.n_words, self.longest)
        if self.pauses is not None:
            g = g + (self.pauses(batch) * torch.from_numpy(~batch.sentence_final))[:, None]
        if self.rule is not None:
            g = g.masked_fill(~only(capped(self.rule(batch), self.longest), self.longest), -torch.inf)
        return g

    def potentials(self, batch: Batch, evidence: Scores) -> Scores:
        return evidence + self.cohesion(batch)[:, :, None]

    def lambdas(self, batch: Batch) -> Float[Tensor, " documents"]:
        lengths = torch.from_numpy(batch.document_lengths)
        return torch.exp(self.strength - self.power * torch.log(lengths / USUAL_WORDS))

    @torch.no_grad()
    def read(self, batch: Batch) -> "Reading":
        """Logits and, of the best segmentation of the predicted class, what each phrase says."""
        return Reading.of(self, batch)

    def _logits(self, batch: Batch, scores: Scores) -> Float[Tensor, "documents classes"]:
        offsets = torch.from_numpy(batch.sentence_offsets)
        if self.overlapping:
            inside = torch.arange(batch.n_words) - offsets[:-1].repeat_interleave(offsets.diff())  # position
            possible = inside[:, None] >= torch.arange(self.longest)  # (words, K)
            sums = (scores * possible[:, :, None]).sum(dim=1)  # (words, classes)
            sentence = torch.from_numpy(batch.sentence_of_word)
            alpha = torch.zeros(batch.n_sentences, self.classes).index_add(0, sentence, sums)
        else:
            alpha = log_partition(scores, offsets)  # (sentences, classes)
        # Differences of classes, before they are added up: the sums of long documents would lose digits.
        if self.several:
            alpha = alpha - log_partition(self.cohesion(batch)[:, :, None], offsets)
        else:
            alpha = alpha - alpha.mean(dim=1, keepdim=True)
        return self.bias + self.lambdas(batch)[:, None] * _sums(alpha, batch.document_of_sentence, batch.n_documents)

    def _index(self) -> PhraseIndex:
        if self._phrases is None or self._phrases.keys is not self.ngrams.keys:
            self._phrases = PhraseIndex(self.ngrams.keys)
        return self._phrases

    def _said(self) -> Float[Tensor, "rows classes"]:
        """What each seen phrase says: the counts' part and the table's in one. Kept until one of them changes."""
        seen = self.ngrams
        version = (id(seen.table), *(part._version for part in (seen.table, self.scale, seen.counts)))
        if self._folded is None or self._folded[0] != version:
            self._folded = (version, self._fold())
        return self._folded[1]

    @torch.no_grad()
    def _fold(self) -> Float[Tensor, "rows classes"]:
        seen, counts = self.ngrams, self.ngrams.statistics()
        said = seen.table.detach().clone() if self.tables else torch.zeros_like(seen.table)
        if not self.counted or not len(said):
            return said
        width = seen.keys & (MOST_WORDS - 1)
        ratios, documents = counts.ratios(torch.arange(len(said)), None, None)
        return said + self.scale.detach()[width, buckets_of(documents, BUCKETS)][:, None] * ratios


class _Encoder(nn.Module):
    """U^T tanh(b_k + sum over j < k of P_j x_(t-j)) of every candidate phrase, with frozen word vectors x."""

    vectors: Float[Tensor, "vocabulary size"]

    def __init__(
        self,
        vectors: Float[Tensor, "vocabulary size"],
        longest: int,
        hidden: int,
        classes: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        size = vectors.shape[1]
        self.register_buffer("vectors", vectors)
        self.projection = nn.Parameter(
            torch.empty(size, longest, hidden).normal_(0, 0.5 * size**-0.5, generator=generator)
        )
        self.bias = nn.Parameter(torch.zeros(longest, hidden))
        self.output = nn.Parameter(torch.empty(hidden, classes).normal_(0, 0.1, generator=generator))
        self._table: tuple[int, Tensor] | None = None  # P x of all words, and for which version of P
        self._read = 0  # words since P has changed

    def forward(self, batch: Batch) -> Scores:
        words, places = self._projected(batch.words)
        return encoded(words, self.bias, self.output, places, torch.from_numpy(batch.sentence_offsets))

    def _projected(
        self, words: Int64[np.ndarray, " words"]
    ) -> tuple[Float[Tensor, "distinct K hidden"], Int64[Tensor, " words"]]:
        """P x of words, and where each word's is. Of the whole vocabulary, as soon as that pays."""
        if torch.is_grad_enabled():
            return self._of_distinct(words)
        version = self.projection._version
        if self._table is None or self._table[0] != version:
            self._read = len(words) + (self._read if self._table is None else 0)
            if self._read < len(self.vectors):
                return self._of_distinct(words)
            self._table = (version, torch.tensordot(self.vectors, self.projection.detach(), 1))
        return self._table[1], torch.from_numpy(words)

    def _of_distinct(
        self, words: Int64[np.ndarray, " words"]
    ) -> tuple[Float[Tensor, "distinct K hidden"], Int64[Tensor, " words"]]:
        distinct, places = np.unique(words, return_inverse=True)
        return torch.tensordot(self.vectors[torch.from_numpy(distinct)], self.projection, 1), torch.from_numpy(places)


@dataclass(frozen=True, eq=False)
class Reading:
    """How the model reads a batch: logits by all segmentations; and one segmentation, the best of the predicted class,
    with what its phrases say. `evidence` times lambda adds up to `cut_logits - bias`, for every class."""

    logits: Float[Tensor, "documents classes"]
    chosen: Int64[Tensor, " documents"]  # the predicted class; of several labels, the likeliest
    z: Bool[np.ndarray, " words"]  # true where a phrase ends
    scores: Scores  # e of every candidate phrase, times the document's lambda
    phrases: Float[Tensor, "phrases classes"]  # of the phrases of z
    cut_logits: Float[Tensor, "documents classes"]  # of z alone
    bias: Float[Tensor, " classes"]

    @classmethod
    def of(cls, model: Evidence, batch: Batch) -> "Reading":
        evidence = model.evidence(batch)
        potentials = model.potentials(batch, evidence)
        logits = model._logits(batch, potentials)
        chosen = logits.argmax(dim=1)
        of_sentence = chosen[torch.from_numpy(batch.document_of_sentence)]
        z = best_cut(potentials, torch.from_numpy(batch.sentence_offsets), of_sentence)[0].numpy()
        document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
        scores = evidence * model.lambdas(batch)[torch.from_numpy(document)][:, None, None]
        ends, widths = phrases_of(z)
        phrases = scores[torch.from_numpy(ends), torch.from_numpy(widths - 1)]  # (phrases, classes)
        cut = model.bias + _sums(phrases, document[ends], batch.n_documents)
        return cls(logits, chosen, z, scores, phrases, cut, model.bias.detach())


def phrases_of(z: Bool[np.ndarray, " words"]) -> tuple[Int64[np.ndarray, " phrases"], Int64[np.ndarray, " phrases"]]:
    """The last word of each phrase, and how many words it has."""
    ends = np.flatnonzero(z)
    return ends, np.diff(ends, prepend=-1)


def capped(z: Bool[np.ndarray, " words"], longest: int) -> Bool[np.ndarray, " words"]:
    """The same phrases; those of more than `longest` words are cut into such."""
    ends, widths = phrases_of(z)
    position = np.arange(len(z)) - np.repeat(ends - widths + 1, widths)  # in its phrase
    parts: np.ndarray = z | (position % longest == longest - 1)
    return parts


def only(z: Bool[np.ndarray, " words"], longest: int) -> Bool[Tensor, "words K"]:
    """True at the candidates that are phrases of z."""
    ends, widths = phrases_of(z)
    allowed = torch.zeros(len(z), longest, dtype=torch.bool)
    allowed[torch.from_numpy(ends), torch.from_numpy(widths - 1)] = True
    return allowed


def _sums(
    values: Float[Tensor, "n classes"], group: Int64[np.ndarray, " n"], groups: int
) -> Float[Tensor, "m classes"]:
    return values.new_zeros(groups, values.shape[1]).index_add(0, torch.from_numpy(group), values)


def _portions(batch: Batch, per_word: int) -> Iterable[Batch]:
    """The batch in parts of whole documents, none larger than AT_ONCE numbers, but for single documents that are."""
    most = max(AT_ONCE // per_word, 1)
    if batch.n_words <= most:
        return [batch]
    portion = batch.word_offsets[1:] // most  # documents that end in the same stretch of words go together
    cuts = [0, *(np.flatnonzero(np.diff(portion)) + 1).tolist(), batch.n_documents]
    return [batch.part(begin, end) for begin, end in pairwise(cuts)]
