"""Effects as points of probability: by how much the probability that is shown falls without a part of the text. People
read "6 points for 4 stars" beside "58 %"; log-odds beside a percentage they do not."""

import numpy as np

from emhrnn.explain.explanation import Explanation, PhraseEvidence
from emhrnn.shapes import Float64


def points(explanation: Explanation, level: str) -> Float64[np.ndarray, " n"]:
    """Of the `phrases`, `sentences` or `words` of a document, for the class that effects are on; zero where effects are
    not known. Evidence for all classes gives phrases and sentences exactly, other effects are taken as log-odds."""
    effects, evidence = explanation.effects, explanation.evidence
    if effects is None:
        return np.zeros(len(getattr(explanation, level)))
    chosen = explanation.classes.index(effects.label)
    if evidence is not None and evidence.classes == explanation.classes and level != "words":
        return _from_evidence(evidence, level, chosen, one=isinstance(explanation.predicted, str))
    own = float(np.clip(explanation.probabilities[chosen], 1e-9, 1 - 1e-9))
    return own - _sigmoid(np.log(own / (1 - own)) - getattr(effects, level))


def _from_evidence(evidence: PhraseEvidence, level: str, chosen: int, *, one: bool) -> Float64[np.ndarray, " n"]:
    parts = evidence.phrases if level == "phrases" else evidence.sentences()
    logits = evidence.logits()
    left = np.vstack([logits, logits - parts])  # the whole text, then without each part
    if not one or left.shape[1] == 1:
        chances = _sigmoid(left[:, chosen])
    else:
        left = np.exp(left - left.max(axis=1, keepdims=True))
        chances = left[:, chosen] / left.sum(axis=1)
    falls: np.ndarray = chances[0] - chances[1:]
    return falls


def _sigmoid(x: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    chances: np.ndarray = 1 / (1 + np.exp(-np.clip(x, -60, 60)))
    return chances


def in_points(value: float) -> str:
    """Points of probability, signed; nothing for less than half a point."""
    return f"{100 * value:+.0f}".replace("-", "\u2212") if abs(value) >= 0.005 else ""
