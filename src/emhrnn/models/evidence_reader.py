r"""Phrase evidence in a trained model: logits, and what each word adds to them. NumPy and the native kernels alone.

evidence.py has the model and its training. The explanation is the model: what word t adds to the logits is the mean of
what it adds when its sentence is read from the left and from the right, over all segmentations, where beta_y(t) is the
same log-sum as alpha_y(t) over the words after t:

    w_y(t) = lambda gamma_i / 2 * [ alpha_y(t) - alpha_y(t - 1)  +  beta_y(t - 1) - beta_y(t) ]

A phrase has the sum over its words. Both differences telescope, so that the phrases of any segmentation add up to their
sentence, and sentences and bias to the logits, for every class. So the shown segmentation is free to read well: it is
the best one of the predicted class, with ends where a reader would pause. Inside phrases of a fixed segmentation alpha
is -inf, and their words share them evenly.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from emhrnn.cores import threads
from emhrnn.corpus.batch import Batch
from emhrnn.layers.native import Kernels, kernels
from emhrnn.layers.native.library import check_index
from emhrnn.layers.order import Order
from emhrnn.layers.phrase_scores import (
    GRUWeights,
    PhraseEncoder,
    Scores,
    add_cohesion,
    segment_means,
    segment_sums,
    table_scores,
)
from emhrnn.layers.phrases import MOST_WORDS, UNKNOWN_WORD, Candidates, PhraseIndex, distinct_words, presence_weights
from emhrnn.layers.semi_markov import best_cut, forward_pass, increments
from emhrnn.models.predictor import UNKNOWN_ID, Inference, Predictor, check_ids
from emhrnn.models.row import Facts
from emhrnn.models.segmentation import rule
from emhrnn.models.settings import OVERLAPPING, EvidenceConfig
from emhrnn.shapes import Bool, Float, Float32, Float64, Int64

BUCKETS = 12  # of the number of documents with a phrase: 1, 2-3, 4-7, ...
USUAL_WORDS = 200  # of a document, for which lambda is `strength`
AT_ONCE = 40_000_000  # numbers of candidates x classes of a portion: 160 MB, and about 800 MB for its gradient
IDS = ("user", "product")
# Of the segmentation that explanations show, chosen on CoNLL-2000 (docs/trust.md). Logits do not depend on them.
READING_PAUSES = 0.6  # times the log-odds of a pause, at each end of a phrase
READING_UNKNOWN = 4.0  # off these log-odds for each unknown word beside the end: what they are is anyone's guess
READING_LENGTH = 1.5  # off for each phrase, so that short ones are joined
READING = np.array([READING_PAUSES, READING_UNKNOWN, READING_LENGTH], dtype=np.float32)

Arrays = Mapping[str, np.ndarray]
Rule = Callable[[Batch], Bool[np.ndarray, " words"]]  # one segmentation for the sum over all


@dataclass(frozen=True, eq=False)
class Reading:
    """How the model reads a batch: logits, what each word adds to them, and one segmentation, which reads well. `words`
    of a document add up to `logits - priors`, for every class, and so do `phrases`."""

    logits: Float32[np.ndarray, "documents classes"]
    chosen: Int64[np.ndarray, " documents"]  # the predicted class; of several labels, the likeliest
    z: Bool[np.ndarray, " words"]  # true where a phrase ends
    words: Float64[np.ndarray, "words classes"]
    bias: Float32[np.ndarray, " classes"]
    said_by: Mapping[str, Float32[np.ndarray, "documents classes"]]  # what user and product add, where they are read

    @property
    def phrases(self) -> Float64[np.ndarray, "phrases classes"]:
        """Of the phrases of z, the sums over their words."""
        ends, widths = phrases_of(self.z)
        return segment_sums(self.words, ends - widths + 1)

    @property
    def priors(self) -> Float32[np.ndarray, "documents classes"]:
        """The logits without any phrase."""
        priors: np.ndarray = sum(self.said_by.values(), np.zeros_like(self.logits)) + self.bias
        return priors


class AddsEvidence:
    """A model whose logits are the bias of the classes and what phrases add to them."""

    def read(self, batch: Batch) -> Reading:
        """Logits, what each word adds to them, and the segmentation to show."""
        raise NotImplementedError


def segmentation_rule(config: EvidenceConfig, vocabulary: Sequence[str]) -> Rule | None:
    """The fixed segmentation of an ablation; None where the model sums over all."""
    if config.segmentation in ("learned", OVERLAPPING):
        return None
    return rule(config.segmentation, vocabulary, config.rate)


def expected_shapes(
    config: EvidenceConfig, facts: Facts, words: int, size: int, arrays: Arrays
) -> dict[str, tuple[int, ...]]:
    """Of the arrays of a trained model for a vocabulary of so many `words` and vectors of this `size`. How many phrases
    it has seen, the arrays say."""
    K, C, H, W = config.longest, facts.classes, config.encoder_size, config.sentence_weights
    rows = arrays["ngrams.keys"].size if "ngrams.keys" in arrays else 0
    shapes: dict[str, tuple[int, ...]] = {
        "scale": (K, BUCKETS), "length_prior": (K,), "bias": (C,), "strength": (), "power": (), "pause_strength": (),
        "vectors": (words if config.reads_vectors else 0, size), "ngrams.keys": (rows,), "ngrams.counts": (rows, C),
        "ngrams.documents": (rows,), "ngrams.table": (rows, C), "ngrams.class_documents": (C,), "ngrams.total": (),
    }  # fmt: skip
    if config.mixes(C):
        shapes["mixing"] = (C, C)
    if config.pauses:
        shapes |= {"pauses.counts": (3, words), "pauses.odds": (2, words)}
    if H:
        shapes |= {"encoder.projection": (size, K, H), "encoder.bias": (K, H), "encoder.output": (H, C)}
    if W:
        parts = {"input_weight": (3 * W, size), "state_weight": (3 * W, W), "bias": (3 * W,)}
        ways = ("forward", "backward")
        shapes |= {f"weigher.layer.{way}_layer.{part}": shape for way in ways for part, shape in parts.items()}
        shapes["weigher.score"] = (2 * W,)
    if config.ids:
        shapes |= {f"ids.{kind}.table": (n, C) for kind, n in zip(IDS, (facts.users, facts.products), strict=True)}
    return shapes


class EvidenceReader(Predictor, AddsEvidence):
    """A trained evidence model, from its arrays. They are not copied: what changes them needs a new reader."""

    def __init__(self, config: EvidenceConfig, arrays: Arrays, *, several: bool, fixed: Rule | None = None) -> None:
        """`arrays` as `expected_shapes` names them; documents may have `several` labels; `fixed` is the segmentation
        of an ablation."""
        self.config, self.arrays, self.several, self.rule = config, arrays, several, fixed
        self.longest, self.overlapping = config.longest, config.segmentation == OVERLAPPING
        self.bias = arrays["bias"]
        self.encoder: PhraseEncoder | None = None
        if config.encoder_size:
            projection = arrays["encoder.projection"]  # (size, K, hidden)
            rows = np.ascontiguousarray(projection.reshape(len(projection), -1).T)
            self.encoder = PhraseEncoder(rows, arrays["encoder.bias"], arrays["encoder.output"])
        self.index = PhraseIndex(arrays["ngrams.keys"])
        self._table: Float32[np.ndarray, "vocabulary K hidden"] | None = None  # P x of all words
        self._read = 0  # words so far

    def state_dict(self) -> Arrays:
        return self.arrays

    @property
    def parameter_count(self) -> int:
        counted = ("ngrams.keys", "ngrams.counts", "ngrams.documents", "ngrams.class_documents", "ngrams.total")
        fixed = (*counted, "vectors", "pauses.counts", "pauses.odds")
        return sum(array.size for name, array in self.arrays.items() if name not in fixed)

    def infer(self, batch: Batch) -> Inference:
        logits = self.logits(batch)
        return Inference(logits, logits)

    def logits(self, batch: Batch) -> Float32[np.ndarray, "documents classes"]:
        """Of each document, over all segmentations."""
        return self._added(batch, self._alphas(batch), self.lambdas(batch))

    def read(self, batch: Batch) -> Reading:
        potentials, logits, words, ends = self._told(batch)
        chosen = logits.argmax(axis=1)
        z = best_cut(potentials, batch.sentence_offsets, chosen[batch.document_of_sentence], ends=ends)[0]
        return Reading(logits, chosen, z, words, self.bias, self.said_by(batch))

    def evidence(self, batch: Batch) -> Scores:
        """e of every candidate phrase."""
        return self._evidence(batch, *self._candidates(batch))

    def cohesion(self, batch: Batch) -> Float32[np.ndarray, "words K"]:
        """g of every candidate phrase; -inf where a fixed segmentation has no such phrase."""
        g = np.tile(self.arrays["length_prior"], (batch.n_words, 1))
        if self.config.pauses:
            g += (self.arrays["pause_strength"] * self.pauses(batch) * ~batch.sentence_final)[:, None]
        if self.rule is not None:
            g[~only(capped(self.rule(batch), self.longest), self.longest)] = -np.inf
        return g

    def pauses(self, batch: Batch) -> Float32[np.ndarray, " words"]:
        """Log-odds that a reader pauses after each word (models/pauses.py)."""
        after, before = self.arrays["pauses.odds"]
        odds: np.ndarray = after[batch.words] + before[np.roll(batch.words, -1)]
        return odds

    def potentials(self, batch: Batch) -> Scores:
        """e + g of every candidate phrase."""
        if native := kernels():
            scores = np.empty((batch.n_words, self.longest, len(self.bias)), dtype=np.float32)
            self._pass(native, batch, scores=scores)
            return scores
        return add_cohesion(self.evidence(batch), self.cohesion(batch))

    def lambdas(self, batch: Batch) -> Float32[np.ndarray, " sentences"]:
        """What the evidence of each sentence is multiplied with: 0 in documents without a known word, where nothing is
        left but the bias."""
        lengths = batch.document_lengths.astype(np.float32)
        known = np.logical_or.reduceat(batch.words != UNKNOWN_WORD, batch.word_offsets[:-1])
        strength, power = self.arrays["strength"], self.arrays["power"]
        of_document = np.exp(strength - power * np.log(lengths / np.float32(USUAL_WORDS))) * known
        of_sentence: np.ndarray = of_document[batch.document_of_sentence]
        return of_sentence * self._sentence_weights(batch) if self.config.sentence_weights else of_sentence

    def said_by(self, batch: Batch) -> dict[str, Float32[np.ndarray, "documents classes"]]:
        """What the user and the product of each document add, where the model reads them."""
        if not self.config.ids:
            return {}
        said, given = {}, {"user": batch.users, "product": batch.products}
        for kind in IDS:
            table = self.arrays[f"ids.{kind}.table"]
            ids = check_ids(kind, given[kind], len(table))
            said[kind] = table[np.maximum(ids, 0)] * (ids != UNKNOWN_ID)[:, None]
        return said

    def _candidates(self, batch: Batch) -> tuple[Candidates, Float32[np.ndarray, "words K"]]:
        """The row of each candidate phrase, and what it weighs."""
        rows = self.index.rows(batch, self.longest)
        return rows, presence_weights(batch, rows, self.config.presence)

    def _evidence(self, batch: Batch, rows: Candidates, weights: Float32[np.ndarray, "words K"]) -> Scores:
        scores = table_scores(self.phrase_table, rows, weights)
        if self.encoder is None:
            return scores
        return self.encoder.add_scores(scores, *self._projected(batch.words), batch.sentence_offsets)

    @cached_property
    def phrase_table(self) -> Float32[np.ndarray, "rows classes"]:
        """What each seen phrase says, row by row: the counts' part (layers/evidence.py) and the table's in one."""
        keys, table = self.arrays["ngrams.keys"], self.arrays["ngrams.table"]
        if not self.config.counts or not len(table):
            return table if self.config.tables else np.zeros_like(table)
        counts, documents = self.arrays["ngrams.counts"], self.arrays["ngrams.documents"]
        of_classes, total = self.arrays["ngrams.class_documents"], self.arrays["ngrams.total"]
        share = np.clip((of_classes + np.float32(1e-3)) / (total + np.float32(2e-3)), 1e-6, 1 - 1e-6)
        prior = np.float32(self.config.smoothing * len(share)) * share
        odds = share / (1 - share) if self.several else share
        r = np.log(np.maximum(counts, 0) + prior) - np.log(odds)  # (rows, classes)
        if self.several:
            r -= np.log(np.maximum(documents[:, None] - counts, 0) + prior / odds)
        else:
            r -= r.mean(axis=1, keepdims=True)
        if "mixing" in self.arrays:
            r += r @ self.arrays["mixing"]
        bucket = np.minimum(np.frexp(np.maximum(documents, 1))[1] - 1, BUCKETS - 1)
        r *= self.arrays["scale"][keys & (MOST_WORDS - 1), bucket][:, None]
        return r + table if self.config.tables else r

    def _projected(
        self, words: Int64[np.ndarray, " words"]
    ) -> tuple[Float32[np.ndarray, "distinct K hidden"], Int64[np.ndarray, " words"]]:
        """P x of words, and where each word's is: of the whole vocabulary as soon as so many words were read."""
        assert self.encoder is not None
        vectors = self.arrays["vectors"]
        self._read += len(words)
        if self._table is None and self._read >= len(vectors):
            self._table = self.encoder.project(vectors)
        if self._table is not None:
            return self._table, words
        distinct, places = distinct_words(words)
        return self.encoder.project(vectors[distinct]), places

    def _sentence_weights(self, batch: Batch) -> Float32[np.ndarray, " sentences"]:
        """gamma_i > 0, with a mean of 1 in each document: a bidirectional GRU over mean word vectors."""
        means = segment_means(self.arrays["vectors"], batch.words, batch.sentence_offsets)  # (sentences, size)
        states = [
            layer.states(means, Order(batch.document_offsets, reverse=reverse))
            for layer, reverse in zip(self._gru, (False, True), strict=True)
        ]
        raw = np.logaddexp(np.float32(0), np.concatenate(states, axis=1) @ self.arrays["weigher.score"])
        sentences = np.diff(batch.document_offsets).astype(np.float32)
        of_document = sentences / np.add.reduceat(raw, batch.document_offsets[:-1])
        weights: np.ndarray = raw * of_document[batch.document_of_sentence]
        return weights

    @cached_property
    def _gru(self) -> tuple[GRUWeights, GRUWeights]:
        forward, backward = (
            GRUWeights(
                *(self.arrays[f"weigher.layer.{way}_layer.{part}"] for part in ("input_weight", "state_weight", "bias"))
            )
            for way in ("forward", "backward")
        )
        return forward, backward

    # ------------------------------------------------------------------ sums over segmentations

    def _alphas(self, batch: Batch) -> Float32[np.ndarray, "sentences classes"]:
        """What each sentence says, compared over the classes."""
        native = kernels()
        if native and not self.overlapping:
            alpha = np.empty((batch.n_sentences, len(self.bias)), dtype=np.float32)
            free = np.empty((batch.n_sentences, 1), dtype=np.float32) if self.several else None
            self._pass(native, batch, alpha=alpha, free=free)
            return _compared(alpha, free)
        rows, weights = self._candidates(batch)
        parts, first = [], 0
        for part in portions(batch, self.longest * len(self.bias), by_sentence=True):
            words = slice(first, first := first + part.n_words)
            parts.append(self._alpha(part, rows[words], weights[words]))
        return np.concatenate(parts)

    def _pass(
        self,
        native: Kernels,
        batch: Batch,
        lambdas: Float32[np.ndarray, " sentences"] | None = None,
        *,
        scores: Scores | None = None,
        alpha: Float32[np.ndarray, "sentences classes"] | None = None,
        free: Float32[np.ndarray, "sentences 1"] | None = None,
        words: Float64[np.ndarray, "words classes"] | None = None,
        ends: Float32[np.ndarray, " words"] | None = None,
    ) -> None:
        """Writes potentials, their sums over all segmentations, the sums of the cohesion alone, what each word adds
        (which takes alpha and lambdas) and `_ends`, each where there is room: what other methods do step by step."""
        ids, odds = np.ascontiguousarray(batch.words), None
        encoder: tuple[np.ndarray | None, ...] = (None, None, None, None)
        if self.config.pauses:
            odds = self.arrays["pauses.odds"]
            check_index(ids, odds.shape[1])
        if self.encoder is not None:
            projected, places = self._projected(ids)
            check_index(places, len(projected))
            encoder = places, projected, self.encoder.bias, self.encoder.output
        native.call(
            "evidence_pass", batch.n_documents, np.ascontiguousarray(batch.document_offsets),
            np.ascontiguousarray(batch.sentence_offsets), ids, self.longest, len(self.bias), *self.index.places,
            np.array([self.config.presence], dtype=np.float32), self.phrase_table, self.config.encoder_size, *encoder,
            None if self.rule is None else self.cohesion(batch), self.arrays["length_prior"],
            self.arrays["pause_strength"], odds, 0 if odds is None else odds.shape[1], lambdas, READING, scores, alpha,
            free, words, ends, threads(),
        )  # fmt: skip

    def _alpha(
        self, batch: Batch, rows: Candidates, weights: Float32[np.ndarray, "words K"]
    ) -> Float32[np.ndarray, "sentences classes"]:
        cohesion = self.cohesion(batch)
        scores = add_cohesion(self._evidence(batch, rows, weights), cohesion)
        free = self._sums(batch, cohesion[:, :, None]) if self.several else None
        return _compared(self._sums(batch, scores), free)

    def _sums(self, batch: Batch, scores: Scores) -> Float32[np.ndarray, "sentences classes"]:
        """Over all segmentations; or over all candidates, as a bag."""
        if self.overlapping:
            return np.add.reduceat(self._possible(batch, scores).sum(axis=1), batch.sentence_offsets[:-1])
        return forward_pass(scores, batch.sentence_offsets, keep=False)[0]

    def _told(
        self, batch: Batch
    ) -> tuple[
        Scores,
        Float32[np.ndarray, "documents classes"],
        Float64[np.ndarray, "words classes"],
        Float32[np.ndarray, " words"] | None,
    ]:
        """Potentials, the same logits, what each word adds to them, and what the segmentation to show gains by an end
        after each word. Words are in double precision, in which what is level is 0."""
        lambdas = self.lambdas(batch)
        native = kernels()
        if native and not self.overlapping:
            C, n = len(self.bias), batch.n_words
            scores, alpha = np.empty((n, self.longest, C), np.float32), np.empty((batch.n_sentences, C), np.float32)
            free = np.empty((batch.n_sentences, 1), np.float32) if self.several else None
            words, ends = np.empty((n, C)), np.empty(n, np.float32) if self.config.pauses else None
            self._pass(native, batch, lambdas, scores=scores, alpha=alpha, free=free, words=words, ends=ends)
            return scores, self._added(batch, _compared(alpha, free), lambdas), self._evened(batch, words), ends
        scores = self.potentials(batch)
        alpha, words = self._increments(batch, scores)
        if self.several:
            free, free_words = self._increments(batch, self.cohesion(batch)[:, :, None])
            alpha, words = _compared(alpha, free), _compared(words, free_words)
        else:
            alpha, words = _compared(alpha), _compared(words)
        words *= lambdas[batch.sentence_of_word][:, None]
        return scores, self._added(batch, alpha, lambdas), words, self._ends(batch)

    def _added(
        self, batch: Batch, alpha: Float32[np.ndarray, "sentences classes"], lambdas: Float32[np.ndarray, " sentences"]
    ) -> Float32[np.ndarray, "documents classes"]:
        said = sum(self.said_by(batch).values(), np.zeros((batch.n_documents, len(self.bias)), dtype=np.float32))
        logits: np.ndarray = said + self.bias + np.add.reduceat(lambdas[:, None] * alpha, batch.document_offsets[:-1])
        return logits

    def _increments(
        self, batch: Batch, scores: Scores
    ) -> tuple[Float32[np.ndarray, "sentences classes"], Float64[np.ndarray, "words classes"]]:
        """alpha of every sentence, and what each word adds to it."""
        if self.overlapping:
            return self._sums(batch, scores), self._shares(batch, scores)
        alpha, left = increments(scores, batch.sentence_offsets)
        _, right = increments(scores, batch.sentence_offsets, from_right=True)
        words = np.add(left, right, dtype=np.float64)
        words /= 2
        return alpha, self._evened(batch, words)

    def _evened(
        self, batch: Batch, words: Float64[np.ndarray, "words classes"]
    ) -> Float64[np.ndarray, "words classes"]:
        """What each word adds; the words of a phrase of a fixed segmentation share it evenly: alpha is -inf inside."""
        if self.rule is None:
            return words
        ends, widths = phrases_of(capped(self.rule(batch), self.longest))
        evenly = np.add.reduceat(words, ends - widths + 1) / widths[:, None]  # (phrases, classes)
        return np.repeat(evenly, widths, axis=0)

    def _shares(self, batch: Batch, scores: Scores) -> Float64[np.ndarray, "words classes"]:
        """Of each word, in all candidates: their words share them evenly."""
        scores = self._possible(batch, scores)
        words = np.zeros((batch.n_words, scores.shape[2]))
        for k in range(1, self.longest + 1):
            for before in range(min(k, batch.n_words)):
                words[: batch.n_words - before] += scores[before:, k - 1] / k
        return words

    def _possible(self, batch: Batch, scores: Scores) -> Scores:
        """0 for candidates that reach over the start of their sentence."""
        position = np.arange(batch.n_words) - batch.sentence_offsets[batch.sentence_of_word]
        result: np.ndarray = scores * (position[:, None] >= np.arange(self.longest))[:, :, None]
        return result

    def _ends(self, batch: Batch) -> Float32[np.ndarray, " words"] | None:
        """What the segmentation to show gains by an end after each word: it ends phrases where a reader would pause."""
        if not self.config.pauses:
            return None
        unknown = (batch.words == UNKNOWN_WORD).astype(np.float32)
        odds = self.pauses(batch) - np.float32(READING_UNKNOWN) * (unknown + np.roll(unknown, -1))
        ends: np.ndarray = np.float32(READING_PAUSES) * odds * ~batch.sentence_final - np.float32(READING_LENGTH)
        return ends


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


def only(z: Bool[np.ndarray, " words"], longest: int) -> Bool[np.ndarray, "words K"]:
    """True at the candidates that are phrases of z."""
    ends, widths = phrases_of(z)
    allowed = np.zeros((len(z), longest), dtype=bool)
    allowed[ends, widths - 1] = True
    return allowed


def portions(batch: Batch, per_word: int, *, by_sentence: bool) -> list[Batch]:
    """The batch in parts of whole documents, none larger than AT_ONCE numbers, but for single ones that are;
    `by_sentence`, in parts of whole sentences, each as a document without label."""
    most = max(AT_ONCE // per_word, 1)
    if batch.n_words <= most:
        return [batch]
    if by_sentence:
        each = np.arange(batch.n_sentences + 1)
        batch = Batch(batch.words, batch.sentence_offsets, document_offsets=each, rows=each[:-1])
    offsets, cuts = batch.word_offsets, [0]
    while cuts[-1] < batch.n_documents:
        end = int(np.searchsorted(offsets, offsets[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return [batch.part(begin, end) for begin, end in pairwise(cuts)]


def _compared(
    said: Float[np.ndarray, "n classes"], free: Float[np.ndarray, "n 1"] | None = None
) -> Float[np.ndarray, "n classes"]:
    """With what is said without evidence, or with the mean of the classes. Done before sentences or words are added up:
    the sums of long documents would lose digits."""
    if free is None:  # einsum: means of many short rows are slow, and a product with ones may warn without a reason
        free = np.einsum("nc->n", said)[:, None] / said.shape[1]
    result: np.ndarray = said - free
    return result
