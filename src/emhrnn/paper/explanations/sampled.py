"""Explanations of any model from predictions of many copies of a document that keep some of its words: LIME, and the
Owen values of shap's PartitionExplainer (Lundberg)."""

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from emhrnn.corpus.batch import Batch
from emhrnn.explain.removal import logits_without, odds_of
from emhrnn.extras import need
from emhrnn.shapes import Bool, Float64, Int64
from emhrnn.training.run import Run

LIME_SAMPLES, LIME_WIDTH = 500, 0.25  # copies; width of the kernel of cosine distances
LIME_PENALTY = 1.0
SHAP_SAMPLES = 500  # predictions of a document: the default of PartitionExplainer
Words = Float64[np.ndarray, " words"]
Ends = Bool[np.ndarray, " words"]


def lime_values(
    run: Run, batch: Batch, z: Ends, chosen: Int64[np.ndarray, " documents"], generator: np.random.Generator
) -> Words:
    """Weights of a linear model of `LIME_SAMPLES` copies (Ribeiro et al. 2016), on the log-odds of the chosen class."""
    words = []
    for d, (first, last) in enumerate(pairwise(batch.word_offsets)):
        share = generator.random((LIME_SAMPLES, 1))  # LIME removes any number of words
        keep = generator.random((LIME_SAMPLES, last - first)) < share
        logits = logits_without(run, batch.part(d, d + 1), z[first:last], keep)
        closeness = np.exp(-((1 - np.sqrt(keep.mean(axis=1))) ** 2) / LIME_WIDTH**2)
        odds = odds_of(run, logits, np.full(len(logits), chosen[d]))
        words.append(Ridge(alpha=LIME_PENALTY).fit(keep, odds, sample_weight=closeness).coef_)
    return np.concatenate(words)


def partition_values(run: Run, one: Batch, z: Ends, chosen: int, evaluations: int = SHAP_SAMPLES) -> tuple[Words, int]:
    """Of a batch of one document, by shap's PartitionExplainer, and how many predictions that took. Its binary tree is
    ours, with the parts of a phrase, a sentence and the document halved again and again.

    Raises:
        ExtraError: shap is not installed.
    """
    need("shap", "the explanation method shap", "shap")
    import shap

    passes = 0

    def odds(keep: np.ndarray) -> Float64[np.ndarray, " copies"]:
        nonlocal passes
        passes += len(keep)
        logits = logits_without(run, one, z, keep.astype(bool))
        return odds_of(run, logits, np.full(len(keep), chosen))

    masker = _Masker(binary_tree(np.cumsum(z) - z, one.sentence_of_word))
    explainer = shap.explainers.Partition(odds, masker)
    found = explainer(np.ones((1, one.n_words)), max_evals=evaluations, silent=True)
    return np.asarray(found.values, dtype=np.float64).reshape(-1), passes


class _Masker:
    """What shap asks of a masker: a row of ones for words that are kept, zeros for the others."""

    def __init__(self, clustering: Float64[np.ndarray, "merges 4"]) -> None:
        self.clustering, self.shape = clustering, (None, len(clustering) + 1)

    def __call__(self, mask: Any, row: Any) -> Any:
        return (np.asarray(mask, dtype=np.float64)[None],)


def binary_tree(
    phrase_of_word: Int64[np.ndarray, " words"], sentence_of_word: Int64[np.ndarray, " words"]
) -> Float64[np.ndarray, "merges 4"]:
    """Words to phrases to sentences to the document, as SciPy writes a tree: the two parts, height and size of each."""
    merges, sizes = list[list[float]](), [1] * len(phrase_of_word)

    def joined(parts: list[int]) -> int:
        """The number of the node over these, in halves."""
        if len(parts) == 1:
            return parts[0]
        left, right = joined(parts[: len(parts) // 2]), joined(parts[len(parts) // 2 :])
        sizes.append(sizes[left] + sizes[right])
        merges.append([left, right, sizes[-1], sizes[-1]])
        return len(sizes) - 1

    phrases = [joined(np.flatnonzero(phrase_of_word == k).tolist()) for k in range(phrase_of_word[-1] + 1)]
    of_phrase = sentence_of_word[np.flatnonzero(np.diff(phrase_of_word, prepend=-1))]
    joined([joined([phrases[k] for k in np.flatnonzero(of_phrase == i)]) for i in range(sentence_of_word[-1] + 1)])
    return np.array(merges, dtype=np.float64).reshape(-1, 4)
