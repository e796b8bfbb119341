"""Effects as points of probability: by how much the probability that is shown falls without a part of the text. People
read "6 points for 4 stars" beside "58 %"; log-odds beside a percentage they do not."""

import numpy as np

from emhrnn.explain.explanation import Explanation
from emhrnn.shapes import Float64

SHOWN_POINTS = 0.005  # of probability: less has no number


def points(explanation: Explanation, level: str) -> Float64[np.ndarray, " n"]:
    """Of the `phrases`, `sentences` or `words` of a document, for the class that effects are on; zero where effects are
    not known. Phrases that were left out have what the model said then, so that removing one on a page changes the
    probability by the number that stands at it; others have their evidence, or effects taken as log-odds."""
    effects, evidence = explanation.effects, explanation.evidence
    if effects is None:
        return np.zeros(len(getattr(explanation, level)))
    chosen = explanation.classes.index(effects.label)
    own = float(np.clip(explanation.probabilities[chosen], 1e-9, 1 - 1e-9))
    if evidence is not None and evidence.classes == explanation.classes and level != "words":
        values = class_points(explanation, level)[:, chosen].copy()
    else:
        values = _fallen(own, getattr(effects, level))
    if level != "words" and effects.left_out:
        numbers = np.array(list(effects.left_out))
        exact = _fallen(own, np.array(list(effects.left_out.values())))
        if level == "sentences":  # those of one phrase have its points
            offsets = explanation.sentence_offsets
            of_phrase = np.searchsorted(offsets, numbers, side="right") - 1
            alone = np.diff(offsets)[of_phrase] == 1
            numbers, exact = of_phrase[alone], exact[alone]
        values[numbers] = exact
    return values


def _fallen(own: float, odds: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """How far a probability falls when its log-odds do."""
    falls: np.ndarray = own - _sigmoid(np.log(own / (1 - own)) - odds)
    return falls


def class_points(explanation: Explanation, level: str = "phrases") -> Float64[np.ndarray, "n classes"]:
    """Of phrases or sentences, for the classes of the evidence; no columns where there is none."""
    evidence = explanation.evidence
    if evidence is None:
        return np.zeros((len(getattr(explanation, level)), 0))
    parts = evidence.phrases if level == "phrases" else evidence.sentences()
    logits = evidence.logits()
    left = np.vstack([logits, logits - parts])  # the whole text, then without each part
    if isinstance(explanation.predicted, str) and left.shape[1] > 1:
        left = np.exp(left - left.max(axis=1, keepdims=True))
        chances = left / left.sum(axis=1, keepdims=True)
    else:
        chances = _sigmoid(left)
    falls: np.ndarray = chances[0] - chances[1:]
    return falls


def _sigmoid(x: Float64[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
    chances: np.ndarray = 1 / (1 + np.exp(-np.clip(x, -60, 60)))
    return chances


def in_points(value: float) -> str:
    """Points of probability, signed; nothing for less than half a point."""
    return f"{100 * value:+.0f}".replace("-", "\u2212") if abs(value) >= SHOWN_POINTS else ""
