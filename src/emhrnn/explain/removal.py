"""Documents with some of their words taken out: what a prediction would be without a word, a phrase or a sentence.

Phrases that stay keep their boundaries, so that the only thing that changes is what was taken out:

    words     a  b  c | d  e | f  g  h |          take out d e:    a  b  c | f  g  h |
    phrases   0  0  0   1  1   2  2  2

A sentence of which nothing is left is gone. A document of which nothing is left is one unknown word, as everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch, offsets_of
from emhrnn.explain.build import BatchEffects
from emhrnn.explain.effects import log_odds, with_context
from emhrnn.explain.evidence import AddsEvidence
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.han import HAN
from emhrnn.models.output import Output
from emhrnn.training.run import Run

UNKNOWN_WORD = 0
CHUNK_WORDS = 40_000  # of copies that go through the model at once
MOST_WORDS = 100_000  # that are read again for the effects of one document by removal
MOST_SENTENCES = 100_000  # sentence vectors that are read again for them


def without(
    batch: Batch, z: Bool[np.ndarray, " words"], keep: Bool[np.ndarray, " words"]
) -> tuple[Batch, Bool[np.ndarray, " left"]]:
    """The batch of the words to keep, and z among them. A phrase ends at the last of its words that is left."""
    words, keep = batch.words, keep.copy()
    document_of_word = batch.document_of_sentence[batch.sentence_of_word]
    empty = np.bincount(document_of_word, weights=keep, minlength=batch.n_documents) == 0
    if empty.any():
        first = batch.word_offsets[:-1][empty]
        words = words.copy()
        words[first], keep[first] = UNKNOWN_WORD, True
    phrase = (np.cumsum(z) - z)[keep]  # (left,)
    left = np.concatenate([phrase[1:] != phrase[:-1], [True]])
    lengths = np.bincount(batch.sentence_of_word, weights=keep, minlength=batch.n_sentences).astype(np.int64)
    sentences = np.bincount(batch.document_of_sentence, weights=lengths > 0, minlength=batch.n_documents)
    smaller = Batch(
        words=words[keep],
        sentence_offsets=np.concatenate([[0], np.cumsum(lengths[lengths > 0])]),
        document_offsets=np.concatenate([[0], np.cumsum(sentences.astype(np.int64))]),
        rows=batch.rows,
        labels=batch.labels,
        users=batch.users,
        products=batch.products,
    )
    return smaller, left


def logits_without(
    run: Run, batch: Batch, z: Bool[np.ndarray, " words"], keep: Bool[np.ndarray, "copies words"]
) -> Float[Tensor, "copies_times_documents classes"]:
    """Logits of copies of the batch, each of which keeps only some of its words; one copy after the other."""
    at_once = max(CHUNK_WORDS // batch.n_words, 1)
    logits = []
    for first in range(0, len(keep), at_once):
        kept = keep[first : first + at_once]
        smaller, left = without(batch.repeated(len(kept)), np.tile(z, len(kept)), kept.ravel())
        logits.append(encode(run, smaller, left).logits)
    return torch.cat(logits)


def removal_effects(
    run: Run,
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    levels: Sequence[str],
    chosen: Int64[np.ndarray, " documents"],
    *,
    limited: bool = True,
) -> list[Float64[np.ndarray, " units"]] | None:
    """By how much the log-odds of the chosen classes fall without each unit of each level (`LEVELS`), with every one
    really left out. None where that would take too long (`MOST_WORDS`, `MOST_SENTENCES`), if it is `limited`.

    A sentence vector of EM-HRNN and HAN does not depend on the other sentences. So leaving out a part of a sentence
    reads that sentence again and no other one.
    """
    documents = []
    for d, (begin, end) in enumerate(pairwise(batch.word_offsets)):
        one = batch.part(d, d + 1)
        units, counts, sentences = list[np.ndarray](), list[int](), list[np.ndarray]()
        for level in levels:
            of_word = units_of(one, z[begin:end], level).of_word
            units.append(of_word + sum(counts))
            counts.append(int(of_word[-1]) + 1)
            sentences.append(one.sentence_of_word[np.flatnonzero(np.diff(of_word, prepend=-1))])
        left_out = _LeftOut(
            one, z[begin:end], np.stack(units), np.repeat(np.arange(len(levels)), counts), np.concatenate(sentences)
        )
        if limited and left_out.is_long(run):
            return None
        classes = torch.full((sum(counts) + 1,), int(chosen[d]))
        odds = log_odds(left_out.logits(run), classes, multi_label=run.multi_label, temperature=run.temperature)
        fall = (odds[0] - odds[1:]).numpy().astype(np.float64)
        documents.append(np.split(fall, np.cumsum(counts)[:-1]))
    return [np.concatenate(parts) for parts in zip(*documents, strict=True)]


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """One document, and what to leave out of it, one unit after the other."""

    batch: Batch
    z: Bool[np.ndarray, " words"]
    unit_of_word: Int64[np.ndarray, "levels words"]
    levels: Int64[np.ndarray, " units"]  # of each unit
    sentences: Int64[np.ndarray, " units"]  # that each unit is in

    def is_long(self, run: Run) -> bool:
        """Whether too much would have to be read again."""
        if not isinstance(run.model, EMHRNN | HAN):
            return len(self.sentences) * self.batch.n_words > MOST_WORDS
        words = self.batch.sentence_lengths[self.sentences].sum()
        return bool(words > MOST_WORDS) or len(self.sentences) * self.batch.n_sentences > MOST_SENTENCES

    @torch.inference_mode()
    def logits(self, run: Run) -> Float[Tensor, "units_plus_1 classes"]:
        """Of the document, and of it without each unit."""
        if isinstance(run.model, EMHRNN | HAN):
            without_each = self._by_sentence(run.model)
        else:
            keep = self.unit_of_word[self.levels] != np.arange(len(self.levels))[:, None]
            without_each = logits_without(run, self.batch, self.z, keep)
        return torch.cat([encode(run, self.batch, self.z).logits, without_each])

    def _by_sentence(self, model: EMHRNN | HAN) -> Float[Tensor, "units classes"]:
        batch, sentences = self.batch, self.sentences
        n, units = batch.n_sentences, len(sentences)
        # all sentences, then the sentence of each unit without it; each as a document of one sentence
        rows, nothing = np.concatenate([np.arange(n), sentences]), np.zeros(n, dtype=np.int64)
        lengths = batch.sentence_lengths[rows]
        offsets = offsets_of(lengths)
        place = np.arange(offsets[-1]) + np.repeat(batch.sentence_offsets[rows] - offsets[:-1], lengths)
        taken = np.repeat(np.concatenate([nothing - 1, np.arange(units)]), lengths)
        keep = self.unit_of_word[np.repeat(np.concatenate([nothing, self.levels]), lengths), place] != taken
        left = np.add.reduceat(keep, offsets[:-1], dtype=np.int64)  # words of each
        each = np.arange(len(rows) + 1)
        apart = Batch(batch.words[place], sentence_offsets=offsets, document_offsets=each, rows=each[:-1])
        s = _sentence_vectors(model, *without(apart, self.z[place], keep))
        # the document without each unit: a row of sentence numbers. An empty sentence is gone, if another is left.
        numbers = np.tile(np.arange(n), (units, 1))
        numbers[np.arange(units), sentences] = n + np.arange(units)
        there = np.ones(numbers.shape, dtype=bool)
        there[np.arange(units), sentences] = (left[n:] > 0) | (n == 1)
        return model.classify(offsets_of(there.sum(axis=1)), s[torch.from_numpy(numbers[there])])[0]


def _sentence_vectors(
    model: EMHRNN | HAN, batch: Batch, z: Bool[np.ndarray, " words"]
) -> Float[Tensor, "sentences features"]:
    """Of documents of one sentence."""
    if isinstance(model, HAN):
        return model.sentence_vectors(batch)[0]
    return model.sentence_vectors(batch, model.words(batch), z)[0]


@torch.inference_mode()
def segmented(run: Run, batch: Batch) -> tuple[Float[Tensor, "documents classes"], Bool[np.ndarray, " words"] | None]:
    """Logits and phrase ends as explanations show them; None for a model without phrases."""
    if isinstance(run.model, AddsEvidence):
        reading = run.model.read(batch)
        return torch.from_numpy(reading.logits), reading.z
    output: Output = run.model(batch)
    return output.logits, output.z


@torch.inference_mode()
def encode(run: Run, batch: Batch, z: Bool[np.ndarray, " words"]) -> Output:
    """The model on given phrases. A model without latent phrases has no use for them, and one that sums over all
    segmentations neither."""
    return run.model.encode_phrases(batch, z)


LEVELS = ("word", "phrase", "sentence")


@dataclass(frozen=True, eq=False)
class RemovalUnits:
    """What is taken out as a whole: words, phrases or sentences."""

    of_word: Int64[np.ndarray, " words"]
    offsets: Int64[np.ndarray, " documents_plus_1"]

    @property
    def counts(self) -> Int64[np.ndarray, " documents"]:
        return np.diff(self.offsets)

    def top(self, scores: Float[np.ndarray, " units"], share: float) -> Bool[np.ndarray, " units"]:
        """The best share of each document's units, at least one; the earlier unit wins a tie."""
        document = np.repeat(np.arange(len(self.counts)), self.counts)
        order = np.lexsort((-scores, document))  # by document, then the best first; stable
        rank = np.empty(len(scores), dtype=np.int64)
        rank[order] = np.arange(len(scores)) - self.offsets[document]
        best: np.ndarray = rank < np.ceil(share * self.counts)[document]
        return best


def units_of(batch: Batch, z: Bool[np.ndarray, " words"], level: str) -> RemovalUnits:
    """The words, phrases or sentences of a batch, by the name of the level (`LEVELS`)."""
    if level == "word":
        return RemovalUnits(np.arange(batch.n_words), batch.word_offsets)
    if level == "phrase":
        return RemovalUnits(np.cumsum(z) - z, np.concatenate([[0], np.cumsum(z)])[batch.word_offsets])
    return RemovalUnits(batch.sentence_of_word, batch.document_offsets)


FIRST = 0.03  # of the words of a document: out of the second look


def thorough_effects(
    model: EMHRNN,
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> BatchEffects:
    """As `encode_with_effects` gives them, from two looks."""
    look = partial(with_context, model, multi_label=multi_label, temperature=temperature)
    first = look(batch, z)
    top = units_of(batch, z, "word").top(first.words, FIRST)
    top &= np.repeat(batch.document_lengths > 1, batch.document_lengths)  # something must be left
    smaller, left = without(batch, z, ~top)
    second = look(smaller, left, chosen=torch.from_numpy(first.classes))
    words = _joined(torch.from_numpy(first.words), torch.from_numpy(second.words), torch.from_numpy(top), batch)
    return replace(first, words=words.numpy())


def _joined(
    first: Float[Tensor, " words"], second: Float[Tensor, " left"], top: Bool[Tensor, " words"], batch: Batch
) -> Float[Tensor, " words"]:
    """The second look, brought to the scale of the first: without its strongest words a document is less certain, so
    all effects are larger. The strongest of a second look counts at most as much as the weakest of the first."""
    document = torch.repeat_interleave(torch.from_numpy(batch.document_lengths))  # of each word
    least = first.new_full((batch.n_documents,), torch.inf)
    least.scatter_reduce_(0, document[top], first[top], "amin")
    most = first.new_zeros(batch.n_documents).scatter_reduce_(0, document[~top], second, "amax")
    scale = (least.clamp_min(0) / most.clamp_min(1e-12)).clamp_max(1)
    joined = first.clone()
    joined[~top] = torch.where(second > 0, second * scale[document[~top]], second)
    return joined
