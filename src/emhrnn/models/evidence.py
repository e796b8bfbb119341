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

The explanation is the model. What word t adds to the logits is the mean of what it adds when its sentence is read from
the left and from the right, over all segmentations, where beta_y(t) is the same log-sum over the words behind t:

    w_y(t) = lambda gamma_i / 2 * [ alpha_y(t) - alpha_y(t - 1)  +  beta_y(t - 1) - beta_y(t) ]

A phrase has the sum over its words. Both differences telescope, so that the phrases of any segmentation add up to their
sentence, and sentences and bias to the logits, for every class. So the shown segmentation is free to read well: it is
the best one of the predicted class, with ends where a reader would pause. Inside phrases of a fixed segmentation alpha
is -inf, and their words share them evenly.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, softplus
from torch.utils.checkpoint import checkpoint

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.layers.dropout import dropout
from emhrnn.layers.evidence import Scores, buckets_of, encoded, gathered, seen_evidence, with_cohesion
from emhrnn.layers.packing import pack
from emhrnn.layers.phrases import MOST_WORDS, UNKNOWN_WORD, PhraseIndex, distinct_words, presence_weights
from emhrnn.layers.recurrent import Bidirectional, recurrent_layer
from emhrnn.layers.semi_markov import best_cut, increments, log_partition
from emhrnn.models.identity import IdScores
from emhrnn.models.model import DocumentModel
from emhrnn.models.output import Output
from emhrnn.models.pauses import Pauses
from emhrnn.models.row import ModelConfig
from emhrnn.models.seen_phrases import SeenPhrases, own_labels, rows_that_fit, saved_rows
from emhrnn.models.segmentation import PAPER_RATE, check_rule, rule

BUCKETS = 12  # of the number of documents with a phrase: 1, 2-3, 4-7, ...
USUAL_WORDS = 200  # of a document, for which lambda is `strength`
AT_ONCE = 40_000_000  # numbers of candidates x classes of a portion: 160 MB, and about 800 MB for its gradient
IDS = ("user", "product")
LEAST_ROWS = 1000  # of seen phrases: fewer are no model
START_SCALE, START_LENGTH = 0.3, -0.5  # of ratios; of the prior, for each further word of a phrase
START_STRENGTH = -1.1  # a logarithm
START_PAUSES = 0.0
# Of the segmentation that explanations show, chosen on CoNLL-2000 (docs/explanations.md). Logits do not depend on them.
READING_PAUSES = 0.6  # times the log-odds of a pause, at each end of a phrase
READING_UNKNOWN = 4.0  # off these log-odds for each unknown word beside the end: what they are is anyone's guess
READING_LENGTH = 1.5  # off for each phrase, so that short ones are joined


OVERLAPPING = "overlapping"  # a segmentation that is none: all candidate phrases, as a bag


class EvidenceConfig(ModelConfig):
    """Settings of evidence."""

    name: str = Field("evidence", description="the model; `emhrnn models` lists them")
    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    longest: int = Field(6, ge=1, le=8, description="most words of a phrase")
    counts: bool = Field(True, description="log-count ratios of seen phrases")
    tables: bool = Field(True, description="a learned vector for each seen phrase")
    encoder_size: int = Field(32, ge=0, description="units of the phrase encoder on word vectors; 0 = none")
    presence: float = Field(0.5, ge=0, le=1, description="1 = a phrase counts once a document, 0 = each time it occurs")
    smoothing: float = Field(1.0, gt=0, description="documents of each class that are added to counts")
    least_documents: int = Field(2, ge=1, description="phrases of fewer training documents are unseen")
    table_documents: int = Field(
        10, ge=1, description="phrases of fewer training documents have counts alone, no learned vector"
    )
    megabytes: float = Field(200.0, gt=0, description="largest model file; rare phrases are left out for it")
    sentence_weights: int = Field(
        32, ge=0, description="units of recurrent layers that weigh sentences; 0 = all weigh the same"
    )
    pauses: bool = Field(True, description="phrases tend to end where readers pause")
    ids: bool = Field(False, description="read users and products, too")
    id_count: int = Field(
        5, ge=1, description="ids: users and products of fewer training documents are read as the average"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="share of candidate phrases that a training step leaves out")
    segmentation: str = Field(
        "learned", description="learned, or an ablation: none, words, punctuation, random, every-K, overlapping"
    )
    rate: float = Field(PAPER_RATE, gt=0, lt=1, description="segmentation = random: share of words that end a phrase")

    @model_validator(mode="after")
    def _consistent(self) -> "EvidenceConfig":
        if not (self.counts or self.tables or self.encoder_size):
            raise ConfigError("evidence without counts, tables and encoder says nothing; switch one of them on")
        if self.segmentation not in ("learned", OVERLAPPING):
            check_rule(self.segmentation)
        return self


class Evidence(DocumentModel):
    """A batch to logits; `read` gives the segmentation and the evidence of each phrase, too."""

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
        self.overlapping, self.table_documents = config.segmentation == OVERLAPPING, config.table_documents
        self.rule: Callable[[Batch], Bool[np.ndarray, " words"]] | None = None  # one segmentation for the sum over all
        if config.segmentation not in ("learned", OVERLAPPING):
            self.rule = rule(config.segmentation, vocabulary, config.rate)
        needs_vectors = bool(encoder_size or sentence_weights)
        self.scale = nn.Parameter(torch.full((longest, BUCKETS), START_SCALE))
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
        self.register_buffer("vectors", table if needs_vectors else table[:0])
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
        self._phrases: tuple[int, PhraseIndex] | None = None
        self._folded: tuple[tuple[int, ...], Tensor, Tensor] | None = None

    def learning_rate_scales(self) -> dict[str, float]:
        """By parameter name, the share of the learning rate."""
        return {"ngrams.table": 1.0}

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

    @property
    def uncounted(self) -> bool:
        return self.ngrams.empty

    def take_sizes(self, tensors: Mapping[str, Tensor]) -> None:
        """Make room for the phrases of these tensors, which are about to be loaded."""
        self.ngrams.take_sizes(saved_rows(tensors, "ngrams.keys"))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        training = generator is not None
        rows, weights = self._candidates(batch, generator)
        portions = _portions(batch, self.longest * self.classes, training=training)
        parts, first = [], 0
        for part in portions:
            words = slice(first, first := first + part.n_words)
            alpha = partial(self._alpha, part, rows[words], weights[words], training=training)
            # For the gradient, large batches are computed again portion by portion, or all would stay in memory.
            parts.append(checkpoint(alpha, use_reentrant=False) if training and len(portions) > 1 else alpha())
        logits = self._added(batch, parts[0] if len(parts) == 1 else torch.cat(parts), self.lambdas(batch))
        return Output(logits, logits)

    def evidence(self, batch: Batch, generator: torch.Generator | None = None) -> Scores:
        """e of every candidate phrase. With a generator, for training: the batch's own labels are left out of counts,
        and seen phrases are dropped."""
        return self._evidence(batch, *self._candidates(batch, generator), training=generator is not None)

    def _candidates(
        self, batch: Batch, generator: torch.Generator | None
    ) -> tuple[Int64[Tensor, "words K"], Float[Tensor, "words K"]]:
        """The row of each candidate phrase, and what it weighs."""
        rows = self._index().rows(batch, self.longest)
        return rows, dropout(presence_weights(batch, rows, self.presence), self.dropout, generator)

    def _evidence(
        self, batch: Batch, rows: Int64[Tensor, "words K"], weights: Float[Tensor, "words K"], *, training: bool
    ) -> Scores:
        if not training:
            scores = gathered(self._said(), rows, weights)
        elif not (self.counted or self.tables):
            scores = torch.zeros(*rows.shape, self.classes)
        else:
            table = self.ngrams.table if self.tables else self.ngrams.table.detach()
            scale = self.scale if self.counted else torch.zeros_like(self.scale)
            own = own_labels(batch, self.classes)
            scores = seen_evidence(
                table, scale, self.ngrams.statistics(own), rows=rows, weights=weights,
                word_offsets=torch.from_numpy(batch.word_offsets), own=own, least=float(self.table_documents),
            )  # fmt: skip
        return scores if self.encoder is None else scores + self.encoder(batch, self.vectors)

    def cohesion(self, batch: Batch) -> Float[Tensor, "words K"]:
        """g of every candidate phrase; -inf where a fixed segmentation has no such phrase."""
        g = self.length_prior.expand(batch.n_words, self.longest)
        if self.pauses is not None:
            g = g + (self.pause_strength * self.pauses(batch) * torch.from_numpy(~batch.sentence_final))[:, None]
        if self.rule is not None:
            g = g.masked_fill(~only(capped(self.rule(batch), self.longest), self.longest), -torch.inf)
        return g

    def potentials(self, batch: Batch, evidence: Scores) -> Scores:
        return with_cohesion(evidence, self.cohesion(batch))

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
        said = sum(self.said_by(batch).values(), torch.zeros(batch.n_documents, self.classes))
        return self.bias + said

    def said_by(self, batch: Batch) -> dict[str, Float[Tensor, "documents classes"]]:
        """What the user and the product of each document add, where the model reads them."""
        given = {"user": batch.users, "product": batch.products}
        return {kind: scores(given[kind]) for kind, scores in self.ids.items()}

    @torch.no_grad()
    def read(self, batch: Batch) -> "Reading":
        """Logits, what each word adds to them, and the segmentation to show."""
        return Reading.of(self, batch)

    def _alpha(
        self, batch: Batch, rows: Int64[Tensor, "words K"], weights: Float[Tensor, "words K"], *, training: bool
    ) -> Float[Tensor, "sentences classes"]:
        """What each sentence says, compared over the classes."""
        scores = self.potentials(batch, self._evidence(batch, rows, weights, training=training))
        sums = self._bag if self.overlapping else self._partition
        free = sums(batch, self.cohesion(batch)[:, :, None]) if self.several else None
        return _compared(sums(batch, scores), free)

    def _told(
        self, batch: Batch, scores: Scores
    ) -> tuple[Float[Tensor, "documents classes"], Float64[Tensor, "words classes"]]:
        """The same logits, and what each word adds to them: in double precision, in which what is level is 0."""
        alpha, words = self._increments(batch, scores)
        if self.several:
            free, free_words = self._increments(batch, self.cohesion(batch)[:, :, None])
            alpha, words = _compared(alpha, free), _compared(words, free_words)
        else:
            alpha, words = _compared(alpha), _compared(words)
        lambdas = self.lambdas(batch)
        of_words = lambdas.index_select(0, torch.from_numpy(batch.sentence_of_word))
        return self._added(batch, alpha, lambdas), words * of_words[:, None]

    def _added(
        self, batch: Batch, alpha: Float[Tensor, "sentences classes"], lambdas: Float[Tensor, " sentences"]
    ) -> Float[Tensor, "documents classes"]:
        return self.priors(batch) + _sums(lambdas[:, None] * alpha, batch.document_of_sentence, batch.n_documents)

    def _increments(
        self, batch: Batch, scores: Scores
    ) -> tuple[Float[Tensor, "sentences classes"], Float64[Tensor, "words classes"]]:
        """alpha of every sentence, and what each word adds to it."""
        if self.overlapping:
            return self._bag(batch, scores), self._shares(batch, scores)
        alpha, left = increments(scores, batch.sentence_offsets)
        _, right = increments(scores, batch.sentence_offsets, from_right=True)
        words = (left.double() + right) / 2
        if self.rule is not None:  # alpha is -inf inside phrases
            ends, widths = phrases_of(capped(self.rule(batch), self.longest))
            phrase = np.repeat(np.arange(len(ends)), widths)
            evenly = _sums(words, phrase, len(ends)) / torch.from_numpy(widths)[:, None]  # (phrases, classes)
            words = evenly.index_select(0, torch.from_numpy(phrase))
        return alpha, words

    def _partition(self, batch: Batch, scores: Scores) -> Float[Tensor, "sentences classes"]:
        """Over all segmentations."""
        return log_partition(scores, batch.sentence_offsets)

    def _bag(self, batch: Batch, scores: Scores) -> Float[Tensor, "sentences classes"]:
        """Over all candidates."""
        return _sums(self._possible(batch, scores).sum(dim=1), batch.sentence_of_word, batch.n_sentences)

    def _shares(self, batch: Batch, scores: Scores) -> Float64[Tensor, "words classes"]:
        """Of each word, in all candidates: their words share them evenly."""
        scores = self._possible(batch, scores)
        words = torch.zeros_like(scores[:, 0], dtype=torch.float64)
        for k in range(1, self.longest + 1):
            for before in range(min(k, batch.n_words)):
                words[: batch.n_words - before] += scores[before:, k - 1] / k
        return words

    def _possible(self, batch: Batch, scores: Scores) -> Scores:
        """0 for candidates that reach over the start of their sentence."""
        position = np.arange(batch.n_words) - batch.sentence_offsets[batch.sentence_of_word]
        possible = torch.from_numpy(position[:, None] >= np.arange(self.longest))  # (words, K)
        return scores * possible[:, :, None]

    def _shown(self, batch: Batch, scores: Scores, chosen: Int64[Tensor, " documents"]) -> Bool[np.ndarray, " words"]:
        """The ends of the best segmentation of the chosen classes, where a reader would pause."""
        of_word = chosen.index_select(
            0, torch.from_numpy(np.repeat(np.arange(batch.n_documents), batch.document_lengths))
        )
        own = scores.gather(2, of_word[:, None, None].expand(-1, self.longest, 1))  # (words, K, 1)
        if self.pauses is not None:
            unknown = torch.from_numpy(batch.words == UNKNOWN_WORD)
            odds = self.pauses(batch) - READING_UNKNOWN * (unknown.float() + unknown.roll(-1))
            inside = torch.from_numpy(~batch.sentence_final)
            own = own + (READING_PAUSES * odds * inside - READING_LENGTH)[:, None, None]
        z: np.ndarray = best_cut(own, batch.sentence_offsets)[0].squeeze(1).numpy()
        return z

    def _index(self) -> PhraseIndex:
        keys = self.ngrams.keys
        if self._phrases is None or self._phrases[0] != keys._version or self._phrases[1].keys is not keys:
            self._phrases = (keys._version, PhraseIndex(keys))  # loading puts other keys into the same tensor
        return self._phrases[1]

    def _said(self) -> Float[Tensor, "rows classes"]:
        """What each seen phrase says: the counts' part and the table's in one. Kept until one of them changes."""
        seen = self.ngrams
        version = tuple(part._version for part in (seen.table, self.scale, seen.counts))
        if self._folded is None or self._folded[0] != version or self._folded[1] is not seen.table:
            self._folded = (version, seen.table, self._fold())
        return self._folded[2]

    @torch.no_grad()
    def _fold(self) -> Float[Tensor, "rows classes"]:
        seen, counts = self.ngrams, self.ngrams.statistics()
        said = seen.table.detach().clone() if self.tables else torch.zeros_like(seen.table)
        if not self.counted or not len(said):
            return said
        width = seen.keys & (MOST_WORDS - 1)
        ratios, documents = counts.ratios(torch.arange(len(said)))
        return said + self.scale.detach()[width, buckets_of(documents, BUCKETS)][:, None] * ratios


class _Encoder(nn.Module):
    """U^T tanh(b_k + sum over j < k of P_j x_(t-j)) of every candidate phrase, x: word vectors."""

    def __init__(self, size: int, longest: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.projection = nn.Parameter(
            torch.empty(size, longest, hidden).normal_(0, 0.5 * size**-0.5, generator=generator)
        )
        self.bias = nn.Parameter(torch.zeros(longest, hidden))
        self.output = nn.Parameter(torch.empty(hidden, classes).normal_(0, 0.1, generator=generator))
        self._table: Tensor | None = None  # P x of all words
        self._version, self._read = -1, 0  # of P, and words since then

    def forward(self, batch: Batch, vectors: Float[Tensor, "vocabulary size"]) -> Scores:
        words, places = self._projected(batch.words, vectors)
        return encoded(words, self.bias, self.output, places, torch.from_numpy(batch.sentence_offsets))

    def _projected(
        self, words: Int64[np.ndarray, " words"], vectors: Float[Tensor, "vocabulary size"]
    ) -> tuple[Float[Tensor, "distinct K hidden"], Int64[Tensor, " words"]]:
        """P x of words, and where each word's is: of the whole vocabulary as soon as so many words were read."""
        version = self.projection._version
        if version != self._version:
            self._version, self._read, self._table = version, 0, None
        self._read += len(words)
        if torch.is_grad_enabled() or self._read < len(vectors):
            distinct, places = distinct_words(torch.from_numpy(words))
            return torch.tensordot(vectors.index_select(0, distinct), self.projection, 1), places
        if self._table is None:
            self._table = torch.tensordot(vectors, self.projection.detach(), 1)
        return self._table, torch.from_numpy(words)


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
        raw = softplus(self._states(means, batch.document_offsets) @ self.score)  # (sentences)
        document, sentences = torch.from_numpy(batch.document_of_sentence), np.diff(batch.document_offsets)
        total = raw.new_zeros(batch.n_documents).index_add(0, document, raw)
        return raw * (torch.from_numpy(sentences) / total)[document]

    def _states(
        self, x: Float[Tensor, "sentences size"], offsets: Int64[np.ndarray, " documents_plus_1"]
    ) -> Float[Tensor, "sentences both_hidden"]:
        if torch.is_grad_enabled():
            return self.layer(x, offsets)  # type: ignore[no-any-return]
        # All inputs in one product. Else each step of a single long document would read their weights from memory, too,
        # and a word would cost more in a long document than in a short one.
        ahead, behind = self.layer.forward_layer, self.layer.backward_layer
        return torch.cat(
            [
                ahead.forward_projected(ahead.project(x), pack(offsets)),
                behind.forward_projected(behind.project(x), pack(offsets, reverse=True)),
            ],
            dim=1,
        )


@dataclass(frozen=True, eq=False)
class Reading:
    """How the model reads a batch: logits, what each word adds to them, and one segmentation, which reads well. `words`
    of a document add up to `logits - priors`, for every class, and so do `phrases`."""

    logits: Float[Tensor, "documents classes"]
    chosen: Int64[Tensor, " documents"]  # the predicted class; of several labels, the likeliest
    z: Bool[np.ndarray, " words"]  # true where a phrase ends
    words: Float64[Tensor, "words classes"]
    bias: Float[Tensor, " classes"]
    said_by: Mapping[str, Float[Tensor, "documents classes"]]  # what user and product add, where the model reads them

    @property
    def phrases(self) -> Float64[Tensor, "phrases classes"]:
        """Of the phrases of z, the sums over their words."""
        ends, widths = phrases_of(self.z)
        return _sums(self.words, np.repeat(np.arange(len(ends)), widths), len(ends))

    @property
    def priors(self) -> Float[Tensor, "documents classes"]:
        """The logits without any phrase."""
        return self.bias + sum(self.said_by.values(), torch.zeros_like(self.logits))

    @classmethod
    def of(cls, model: Evidence, batch: Batch) -> "Reading":
        potentials = model.potentials(batch, model.evidence(batch))
        logits, words = model._told(batch, potentials)
        chosen = logits.argmax(dim=1)
        z = model._shown(batch, potentials, chosen)
        return cls(logits, chosen, z, words, model.bias.detach(), model.said_by(batch))


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


def _compared(said: Float[Tensor, "n classes"], free: Float[Tensor, "n 1"] | None = None) -> Float[Tensor, "n classes"]:
    """With what is said without evidence, or with the mean of the classes. Done before sentences or words are added up:
    the sums of long documents would lose digits."""
    return said - (said.mean(dim=1, keepdim=True) if free is None else free)


def _portions(batch: Batch, per_word: int, *, training: bool) -> list[Batch]:
    """The batch in parts of whole sentences, none larger than AT_ONCE numbers, but for single sentences that are. For
    training, in parts of whole documents, which have labels."""
    most = max(AT_ONCE // per_word, 1)
    if batch.n_words <= most:
        return [batch]
    if not training:
        each = np.arange(batch.n_sentences + 1)
        batch = Batch(batch.words, batch.sentence_offsets, document_offsets=each, rows=each[:-1])
    offsets, cuts = batch.word_offsets, [0]
    while cuts[-1] < batch.n_documents:
        end = int(np.searchsorted(offsets, offsets[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return [batch.part(begin, end) for begin, end in pairwise(cuts)]
