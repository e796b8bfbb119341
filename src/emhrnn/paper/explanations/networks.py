"""Explanations of networks, which take torch: first-order effects from one backward pass, or effects by removal.

An effect says by how much the log-odds f of the predicted class would fall without a part of the text. To first order,
with x_t the vector of word t, the effect of a word is x_t . df/dx_t; phrases and sentences sum their words. Where a
sentence vector does not depend on the other sentences (EM-HRNN, HAN), leaving out a whole sentence is cheap, and is
done for estimates, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch, offsets_of
from emhrnn.explain.build import BatchEffects, Findings
from emhrnn.explain.removal import LEVELS, logits_of, logits_without, odds_of, units_of, without
from emhrnn.models.model import DocumentModel, Output
from emhrnn.paper.explanations.attention import levels_of
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.hierarchical import HAN
from emhrnn.paper.models.layers import WordInputs
from emhrnn.shapes import Bool, Float, Float64, Int64
from emhrnn.training.run import Run

MOST_WORDS = 100_000  # that are read again for the effects of one document by removal
MOST_SENTENCES = 100_000  # sentence vectors that are read again for them


def network_findings(run: Run, batch: Batch, *, threshold: float | None = None, exact: bool = False) -> Findings:
    """The prediction of a batch and what explains it; `explain_texts` says what the options are."""
    model, z = run.model, None
    if threshold is not None and isinstance(model, EMHRNN) and model.rule is None:
        with torch.no_grad():
            z = (torch.sigmoid(model.words(batch).a) > threshold).numpy() | batch.sentence_final
    estimated = gradient_effects(model, batch, z, multi_label=run.multi_label, temperature=run.temperature)
    if estimated is None:
        return Findings(model.infer(batch).logits, None)
    output, effects = estimated
    levels = levels_of(output, batch)
    if levels is None:
        return Findings(output.logits.numpy(), None)
    if not exact:
        effects = _with_sentences(run, batch, levels.z, effects)
    elif output.z is not None and not output.joint:
        effects = _exact_phrases(run, batch, output, effects)
    elif (found := removal_effects(run, batch, levels.z, LEVELS, effects.classes)) is not None:
        effects = BatchEffects(effects.classes, found[0], found[1], found[2], "removal")
    pi = None if output.pi is None else output.pi.numpy()
    return Findings(output.logits.numpy(), levels.z, levels.attention, pi, effects)


def gradient_effects(
    model: DocumentModel,
    batch: Batch,
    z: Bool[np.ndarray, " words"] | None = None,
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> tuple[Output, BatchEffects] | None:
    """The output of any model, for given phrases or its own, and first-order effects from one backward pass: gradient
    x vector of each word, summed over the words of a phrase and of a sentence. None for a model without word
    vectors."""
    vectors: list[Tensor] = []

    def keep(module: nn.Module, arguments: object, x: Tensor) -> Tensor:
        vectors.append(x.detach().requires_grad_())
        return vectors[-1]

    hooks = [part.register_forward_hook(keep) for part in model.modules() if isinstance(part, WordInputs)]
    with torch.enable_grad():
        try:
            output: Output = model(batch) if z is None else model.encode_phrases(batch, z)
        finally:
            for hook in hooks:
                hook.remove()
        if not vectors:
            return None
        chosen = output.logits.argmax(dim=1)
        odds = log_odds(output.logits, chosen, multi_label=multi_label, temperature=temperature)
        slopes = torch.autograd.grad(odds.sum(), vectors)
    words = torch.stack([(g * x.detach()).sum(dim=1) for g, x in zip(slopes, vectors, strict=True)]).sum(dim=0)
    of_words = words.numpy().astype(np.float64)
    ends = batch.sentence_final if output.z is None else output.z
    phrases = np.add.reduceat(of_words, np.concatenate([[0], np.flatnonzero(ends)[:-1] + 1]))
    sentences = np.add.reduceat(of_words, batch.sentence_offsets[:-1])
    return output.detach(), BatchEffects(chosen.numpy(), of_words, phrases, sentences)


def log_odds(
    logits: Float[Tensor, "n classes"], chosen: Int64[Tensor, " n"], *, multi_label: bool, temperature: float = 1.0
) -> Float[Tensor, " n"]:
    """log p / (1 - p) of the chosen class, for the probabilities that are shown."""
    scaled = logits / temperature
    own = scaled.gather(1, chosen.unsqueeze(1))
    if multi_label or logits.shape[1] == 1:
        return own.squeeze(1)
    return own.squeeze(1) - scaled.scatter(1, chosen.unsqueeze(1), -torch.inf).logsumexp(1)


def _with_sentences(run: Run, batch: Batch, z: Bool[np.ndarray, " words"], effects: BatchEffects) -> BatchEffects:
    """Whole sentences left out, where that is cheap."""
    cheap = isinstance(run.model, EMHRNN | HAN)
    found = removal_effects(run, batch, z, LEVELS[2:], effects.classes) if cheap else None
    return effects if found is None else replace(effects, sentences=found[0])


def _exact_phrases(run: Run, batch: Batch, output: Output, effects: BatchEffects) -> BatchEffects:
    """Effects of phrases and sentences by removal, unless that takes too long. Words share what that adds to their
    phrase by their attention, so that they still sum to it."""
    assert output.z is not None
    assert output.alpha is not None
    found = removal_effects(run, batch, output.z, ("phrase", "sentence"), effects.classes)
    if found is None:
        return effects
    phrases, sentences = found
    phrase = np.cumsum(output.z) - output.z  # of each word
    words = effects.words + output.alpha.numpy() * (phrases - effects.phrases)[phrase]
    return BatchEffects(effects.classes, words, phrases, sentences, "removal")


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
        odds = odds_of(run, left_out.logits(run).numpy(), np.full(sum(counts) + 1, chosen[d]))
        documents.append(np.split(odds[0] - odds[1:], np.cumsum(counts)[:-1]))
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
            without_each = torch.from_numpy(logits_without(run, self.batch, self.z, keep))
        whole = torch.from_numpy(logits_of(run, self.batch, self.z))
        return torch.cat([whole, without_each])

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
