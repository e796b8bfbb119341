"""Why this label and not that one? What each phrase says for the predicted label over the other.

    log p(predicted) / p(other) = prior + sum of phrases                of the evidence model: exact
    how far it falls without each phrase, which is really left out      of other models

With several labels per document every label is decided alone: then it is log p / (1 - p) of the label asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import check_label, explained_alone
from emhrnn.explain.explanation import Explanation, Phrase, Word, as_tuple, strongest
from emhrnn.explain.headline import Fragment, added_up, listed
from emhrnn.explain.page import percent
from emhrnn.explain.removal import logits_without
from emhrnn.shapes import Float64
from emhrnn.training.run import Run

SHOWN = 3  # phrases of each side
LIKELY = 0.1  # labels of several that are shown, beside the predicted ones


@dataclass(frozen=True, eq=False)
class Contrast:
    """`effects` of `parts` are positive for what supports the predicted label over the other one."""

    label: str  # the other one
    predicted: str | None  # None where documents have several labels
    explanation: Explanation
    parts: tuple[Phrase | Word, ...]  # phrases, or words for a model without phrases
    effects: Float64[np.ndarray, " parts"]
    prior: float | None  # None where effects do not add up

    def chance(self, label: str) -> float:
        """The probability of a label."""
        return float(self.explanation.probabilities[self.explanation.classes.index(label)])

    def strongest(self, sign: int, n: int = SHOWN) -> list[tuple[Phrase | Word, float]]:
        """The n parts that support the predicted label most (sign 1), or the other (-1), with their effects."""
        return strongest(self.parts, self.effects, sign, n)

    def lines(self) -> Iterator[list[Fragment]]:
        """The answer in sentences."""
        if self.predicted is None:
            yield [Fragment(f"{self.label} has {percent(self.chance(self.label))}.")]
            sides = {f"Against {self.label}": 1, f"For {self.label}": -1}
        else:
            one, other = ((name, percent(self.chance(name))) for name in (self.predicted, self.label))
            yield [Fragment(f"Why not {other[0]}? It has {other[1]}, and {one[0]} has {one[1]}.")]
            sides = {f"For {one[0]} over {other[0]}": 1, f"For {other[0]} over {one[0]}": -1}
        for title, sign in sides.items():
            if some := self.strongest(sign):
                yield listed(title, [(part, abs(effect)) for part, effect in some])
        if self.prior is not None:
            of = "" if self.predicted is None else f"of {self.predicted} "
            yield added_up(self.prior, float(self.effects.sum()), f"{of}against {self.label}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values: both labels, and the parts with their effects."""
        return {
            "label": self.label,
            "predicted": self.predicted,
            "prior": self.prior,
            "total": None if self.prior is None else self.prior + float(self.effects.sum()),
            "parts": [
                {"text": part.text, "start": part.start, "end": part.end, "effect": effect}
                for part, effect in zip(self.parts, self.effects.tolist(), strict=True)
            ],
        }


def contrast(run: Run, text: str, label: str, *, user: str | None = None, product: str | None = None) -> Contrast:
    """Why the text has its label and not this one.

    Raises:
        ConfigError: there is no such label, or it is the predicted one.
    """
    check_label(run, label)
    explanation, batch = explained_alone(run, text, user=user, product=product)
    predicted = None if run.multi_label else as_tuple(explanation.predicted)[0]
    if predicted == label:
        raise ConfigError(f"{label!r} is the label that the text has; leave out --why-not to see why, or give another")
    other = run.classes.index(label)
    mine = None if predicted is None else run.classes.index(predicted)
    evidence = explanation.evidence
    if evidence is not None:
        table = np.concatenate([evidence.bias[None], evidence.phrases])
        said = -table[:, other] + (0.0 if mine is None else table[:, mine])
        return Contrast(label, predicted, explanation, explanation.phrases, said[1:], float(said[0]))
    parts: tuple[Phrase | Word, ...] = explanation.phrases if explanation.has_phrases else explanation.words
    z = np.zeros(batch.n_words, dtype=bool)
    z[explanation.phrase_offsets[1:] - 1] = True
    starts = explanation.starts
    keep = np.array([(starts < part.start) | (starts >= part.end) for part in parts])
    keep = np.concatenate([np.ones((1, batch.n_words), dtype=bool), keep])
    logits = logits_without(run, batch, z, keep).astype(np.float64) / run.temperature
    odds = -logits[:, other] + (0.0 if mine is None else logits[:, mine])
    return Contrast(label, predicted, explanation, parts, odds[0] - odds[1:], None)


def label_lines(explanation: Explanation) -> Iterator[list[Fragment]]:
    """Of a document with several labels: what supports and opposes each further label that it has, or nearly has. Exact
    evidence only; the others explain the likeliest label."""
    evidence, effects = explanation.evidence, explanation.effects
    if evidence is None or effects is None or isinstance(explanation.predicted, str):
        return
    for name, chance in explanation.ranking():
        likely = name in explanation.predicted or chance >= LIKELY
        if likely and name in evidence.classes and name != effects.label:
            said = evidence.phrases[:, evidence.classes.index(name)]
            for title, sign in ((f"Most for {name} ({percent(chance)})", 1), (f"Against {name}", -1)):
                if some := strongest(explanation.phrases, said, sign, SHOWN):
                    yield listed(title, some)
