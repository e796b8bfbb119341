"""Explanation methods: each scores every word, phrase and sentence of a document by how much it speaks for the
predicted class, with its cost.

evidence              exact, of models whose phrases add up to the logits
removal               every phrase and sentence really left out; words, too, where that is cheap (em-hrnn, hn-att)
first-order           effects from one backward pass
attention             weights of the model; they have no sign
integrated gradients  of the word vectors, and of the n-grams of em-hrnn, from zero
weights               of n-grams in a linear model, times the feature; the words of an n-gram share it evenly
owen                  fair shares over document > sentence > phrase > word, sampled (explain/owen.py)
lime                  a linear model of 500 copies that keep some of the words (Ribeiro et al. 2016)
shap                  PartitionExplainer of the library shap, 500 copies, over the same hierarchy
alone                 parts of a text read alone, as a text of their own (sets of rated parts only)
random                uniform numbers

A method that a model does not allow is left out. Phrases are the model's; where it has none, its sentences.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.explain.explainer import findings, read_batches
from emhrnn.explain.owen import ORDERS as OWEN_ORDERS
from emhrnn.explain.owen import owen_effects
from emhrnn.explain.removal import LEVELS, logits_without, odds_of, segmented, units_of
from emhrnn.models.evidence_reader import AddsEvidence
from emhrnn.models.nb_lr import NBLR
from emhrnn.models.tfidf import TfIdf
from emhrnn.paper.explanations.attention import levels_of
from emhrnn.paper.explanations.networks import gradient_effects, log_odds, removal_effects
from emhrnn.paper.explanations.sampled import LIME_SAMPLES, lime_values, partition_values
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.hierarchical import HAN
from emhrnn.paper.models.layers import UNKNOWN, WordInputs
from emhrnn.shapes import Bool, Float, Float64, Int64
from emhrnn.text import Located
from emhrnn.training.run import Run

STEPS = 50  # on the path of integrated gradients
NO_NETWORKS = (AddsEvidence, TfIdf, NBLR)  # without gradients and attention


@dataclass(frozen=True, eq=False)
class ReadTexts:
    """Texts as a run reads them: words, phrase ends, and the log-odds of the class that it predicts."""

    run: Run
    documents: Sequence[Located]
    batch: Batch
    z: Bool[np.ndarray, " words"]
    chosen: Int64[Tensor, " documents"]
    odds: Float64[np.ndarray, " documents"]

    @classmethod
    def of(cls, run: Run, documents: Sequence[Located], batch: Batch) -> "ReadTexts":
        """Of documents that were read as this batch."""
        logits, z = segmented(run, batch)
        chosen, ends = logits.argmax(axis=1), batch.sentence_final if z is None else z
        return cls(run, documents, batch, ends, torch.from_numpy(chosen), odds_of(run, logits, chosen))

    def odds_without(
        self, d: int, removed: Int64[np.ndarray, "removed 2"], *, alone: bool = False
    ) -> Float64[np.ndarray, " removed"]:
        """The log-odds of the predicted class without each [first, last) of the words of document d; or of them
        alone."""
        first, last = self.batch.word_offsets[d : d + 2]
        one, place = self.batch.part(d, d + 1), np.arange(last - first)
        inside = (removed[:, :1] <= place) & (place < removed[:, 1:])  # (removed, words)
        logits = logits_without(self.run, one, self.z[first:last], inside if alone else ~inside)
        return odds_of(self.run, logits, np.full(len(logits), int(self.chosen[d])))

    def odds_of_nothing(self, d: int) -> float:
        """The log-odds of the predicted class without any words."""
        return float(self.odds_without(d, np.array([[0, len(self.documents[d])]]))[0])


def read_groups(run: Run, texts: Sequence[str]) -> list[ReadTexts]:
    """Texts in batches, in order."""
    return [ReadTexts.of(run, documents, batch) for _, documents, batch in read_batches(run, texts)]


@dataclass(frozen=True, eq=False)
class UnitScores:
    """By level: of words, phrases and sentences of a batch. Passes are per document, those of all levels together."""

    levels: Mapping[str, Float64[np.ndarray, " units"]]
    forward: float
    backward: float = 0.0
    seconds: float = 0.0  # CPU time for the batch


Method = Callable[[ReadTexts, np.random.Generator], UnitScores | None]


def score(method: str, texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    """Scores by one of `METHODS`, timed; None where the model does not allow it."""
    begin = time.process_time()
    found = METHODS[method](texts, generator)
    if found is None:
        return None
    return UnitScores(found.levels, found.forward, found.backward, time.process_time() - begin)


def prediction_seconds(texts: Sequence[ReadTexts]) -> float:
    """CPU time of a plain prediction of the batches, the least of three: the first may build tables."""
    times = list[float]()
    for _ in range(3):
        begin = time.process_time()
        for group in texts:
            group.run.model.infer(group.batch)
        times.append(time.process_time() - begin)
    return min(times)


def _evidence(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    if not isinstance(texts.run.model, AddsEvidence):
        return None
    found = findings(texts.run, texts.batch).effects
    assert found is not None
    return UnitScores(dict(zip(LEVELS, found.levels, strict=True)), 1.0)


def _removal(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    levels = LEVELS if isinstance(texts.run.model, EMHRNN | HAN) else LEVELS[1:]
    sentences = np.array_equal(texts.z, texts.batch.sentence_final)  # are the phrases
    distinct = [level for level in levels if level != "phrase" or not sentences]
    found = removal_effects(texts.run, texts.batch, texts.z, distinct, texts.chosen.numpy(), limited=False)
    assert found is not None
    columns = dict(zip(distinct, found, strict=True))
    passes = 1 + sum(map(len, found)) / texts.batch.n_documents
    return UnitScores({level: columns[level if level in columns else "sentence"] for level in levels}, passes)


def _first_order(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    run, model, batch = texts.run, texts.run.model, texts.batch
    if isinstance(model, NO_NETWORKS):
        return None
    found = gradient_effects(model, batch, texts.z, multi_label=run.multi_label, temperature=run.temperature)
    return None if found is None else _summed(texts, found[1].levels[0], 1.0, 1.0)


def _attention(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    if isinstance(texts.run.model, NO_NETWORKS):
        return None
    with torch.inference_mode():
        found = levels_of(texts.run.model.encode_phrases(texts.batch, texts.z), texts.batch)
    if found is None:
        return None
    gamma = found.gamma.astype(np.float64)
    phrases = gamma[texts.batch.sentence_of_word[np.flatnonzero(found.z)]] * found.beta
    words = phrases[np.cumsum(found.z) - found.z] * found.alpha
    return UnitScores({"word": words, "phrase": phrases, "sentence": gamma}, 1.0)


def _gradients(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    words = integrated_gradients(texts)
    return None if words is None else _summed(texts, words, float(STEPS), float(STEPS))


def integrated_gradients(texts: ReadTexts, steps: int = STEPS) -> Float64[np.ndarray, " words"] | None:
    """Of each word, summed over its vector; None for a model without word vectors."""
    if isinstance(texts.run.model, NO_NETWORKS):
        return None
    words = np.zeros(texts.batch.n_words)
    for step in range(steps):
        odds, inputs = odds_on_path(texts, (step + 0.5) / steps)
        if not inputs:
            return None
        slopes = torch.autograd.grad(odds.sum(), [shrunk for _, shrunk in inputs])
        for (x, _), slope in zip(inputs, slopes, strict=True):
            words += (x * slope).sum(dim=1).double().numpy() / steps
    return words


def odds_on_path(
    texts: ReadTexts, share: float
) -> tuple[Float[Tensor, " documents"], list[tuple[Float[Tensor, "words size"], Float[Tensor, "words size"]]]]:
    """The log-odds of the predicted classes at this share of all inputs, phrases as they are; the inputs of words,
    whole and shrunk."""
    run, model, batch = texts.run, texts.run.model, texts.batch
    inputs: list[tuple[Tensor, Tensor]] = []

    def shrink(x: Tensor) -> Tensor:
        inputs.append((x.detach(), (share * x.detach()).requires_grad_()))
        return inputs[-1][1]

    embeddings = [part for part in model.modules() if isinstance(part, WordInputs)]
    hooks = [part.register_forward_hook(lambda module, arguments, x: shrink(x)) for part in embeddings]
    with torch.enable_grad():
        try:
            logits = model.encode_phrases(batch, texts.z).logits
        finally:
            for hook in hooks:
                hook.remove()
        odds = log_odds(logits, texts.chosen, multi_label=run.multi_label, temperature=run.temperature)
    return odds, inputs


def _lime(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    words = lime_values(texts.run, texts.batch, texts.z, texts.chosen.numpy(), generator)
    return _summed(texts, words, float(LIME_SAMPLES))


def _shap(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    words, passes = list[np.ndarray](), 0
    for d, (first, last) in enumerate(pairwise(texts.batch.word_offsets)):
        one = texts.batch.part(d, d + 1)
        found, taken = partition_values(texts.run, one, texts.z[first:last], int(texts.chosen[d]))
        words.append(found)
        passes += taken
    return _summed(texts, np.concatenate(words), passes / len(words))


def _owen(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    if isinstance(texts.run.model, AddsEvidence):
        return None  # they are its evidence
    found = owen_effects(texts.run, texts.batch, texts.z, texts.chosen.numpy())
    return _summed(texts, found.words, float(OWEN_ORDERS * (texts.batch.n_words / texts.batch.n_documents - 1) + 2))


def _weights(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    model, batch = texts.run.model, texts.batch
    if not isinstance(model, TfIdf | NBLR):
        return None
    weights = model.weight if isinstance(model, TfIdf) else model.weight.T  # (classes, features)
    chosen, features = texts.chosen.numpy(), model.features(batch).csr()
    others = (weights.sum(axis=0) - weights[chosen]) / max(len(weights) - 1, 1)  # (documents, features)
    added = features.multiply(weights[chosen] - others).tocsr()
    keys = model.keys
    document_of_word = batch.document_of_sentence[batch.sentence_of_word]
    found = list[tuple[np.ndarray, ...]]()  # document, feature, first word and words of each occurrence
    start, key = np.flatnonzero(batch.words != UNKNOWN), batch.words[batch.words != UNKNOWN]
    for length in (1, 2) if isinstance(model, TfIdf) else (1, 2, 3):
        if length > 1:
            last = start + length - 2
            on = np.flatnonzero(~batch.sentence_final[last])
            on = on[batch.words[last[on] + 1] != UNKNOWN]
            start = start[on]
            key = (key[on] + 1) * model.vocabulary + batch.words[start + length - 1]
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        known = keys[place] == key
        found.append((document_of_word[start[known]], place[known], start[known], np.full(known.sum(), length)))
    document, feature, first, lengths = (np.concatenate(column) for column in zip(*found, strict=True))
    _, inverse, counts = np.unique(document * len(keys) + feature, return_inverse=True, return_counts=True)
    values = np.asarray(added[document, feature]).ravel() / counts[inverse] / lengths / texts.run.temperature
    words = np.zeros(batch.n_words)
    for offset in range(3):
        np.add.at(words, first[lengths > offset] + offset, values[lengths > offset])
    return _summed(texts, words, 1.0)


def _random(texts: ReadTexts, generator: np.random.Generator) -> UnitScores | None:
    sizes = {level: int(units_of(texts.batch, texts.z, level).offsets[-1]) for level in LEVELS}
    return UnitScores({level: generator.uniform(-1, 1, size) for level, size in sizes.items()}, 0.0)


def _summed(
    texts: ReadTexts, words: Float64[np.ndarray, " words"], forward: float, backward: float = 0.0
) -> UnitScores:
    """Phrases and sentences as the sums of their words."""
    of_word = {level: units_of(texts.batch, texts.z, level).of_word for level in LEVELS}
    return UnitScores({level: np.bincount(units, weights=words) for level, units in of_word.items()}, forward, backward)


METHODS: Mapping[str, Method] = {
    "evidence": _evidence,
    "removal": _removal,
    "first-order": _first_order,
    "attention": _attention,
    "integrated gradients": _gradients,
    "weights": _weights,
    "owen": _owen,
    "lime": _lime,
    "shap": _shap,
    "random": _random,
}
ALONE = "alone"  # of rated parts of a text
