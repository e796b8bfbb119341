"""The prediction of a document without some phrases, and the few without which it is another: cheap enough for every
document that a page shows. counterfactual.py searches longer for the fewest."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from math import log, log1p
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.decision import Decision
from emhrnn.explain.explanation import Change, Explanation, is_spelled, largest
from emhrnn.explain.points import points
from emhrnn.explain.removal import chances_without
from emhrnn.training.run import Run

ALONE_WORDS = 30_000  # that the model may read to leave out phrases one by one
PAIRED = 10  # phrases that come closest to changing the label, left out in pairs
TURNED = 8  # phrases that may be left out to change the label
TURNING_WORDS = 60_000  # that the model may read to find them
RIVALS = 3  # classes that the label may change to
TINY = 1e-12


def with_change(run: Run, batch: Batch, explanation: Explanation) -> Explanation:
    """The same explanation with the prediction without the phrases that decided. Where phrases add up to the
    prediction, `left_out` then has every phrase of a document of usual length: pages show what removing one changes."""
    changes = Changes(run, batch, explanation)
    alone, effects = changes.alone(), explanation.effects
    if explanation.evidence is not None and effects is not None:
        chosen = explanation.classes.index(effects.label)
        whole = _odds(explanation.probabilities[chosen])
        falls = {change.phrases[0]: whole - _odds(change.probabilities[chosen]) for change in alone}
        effects = replace(effects, left_out={**(effects.left_out or {}), **falls})
        changes.explanation = explanation = replace(explanation, effects=effects)
    return replace(explanation, change=changes.deciding(alone))


def _odds(chance: float) -> float:
    clipped = min(max(float(chance), TINY), 1 - TINY)
    return log(clipped) - log1p(-clipped)


class Changes:
    """Of one document, which is alone in its batch."""

    def __init__(self, run: Run, batch: Batch, explanation: Explanation) -> None:
        self.run, self.batch, self.explanation = run, batch, explanation

    def without(self, numbers: Iterable[int]) -> Change | None:
        """The prediction without some phrases; None without any."""
        some = tuple(sorted({k for k in numbers if 0 <= k < len(self.explanation.phrases)}))
        return self._changes([some])[0] if some else None

    def alone(self) -> list[Change]:
        """Without each of the phrases with the largest effects, one by one; all of them in a document of usual length.
        None where there are no phrases or effects."""
        effects = self.explanation.effects
        if effects is None or not self.explanation.has_phrases:
            return []
        return self._changes([(k,) for k in largest(np.abs(effects.phrases), ALONE_WORDS // self.batch.n_words)])

    def deciding(self, alone: Sequence[Change] = ()) -> Change | None:
        """Without the fewest phrases found that change the prediction, first `alone`, then in pairs, then more; where
        that takes too many, without the two that support it most; None where nothing does."""
        supporting = [k for k in self._strongest() if is_spelled(self.explanation.phrases[k])][:2]
        if not supporting:
            return None
        turned = self._turned_by_few(alone) or self._turned_by_more()
        return turned or self.without(supporting)

    def _strongest(self) -> list[int]:
        """Phrases that support the label, by their points; none for a model without phrases."""
        if self.explanation.effects is None or not self.explanation.has_phrases:
            return []
        values = points(self.explanation, "phrases")
        return largest(values, int((values > 0).sum()))

    def _turned_by_few(self, alone: Sequence[Change]) -> Change | None:
        """Without one phrase or two."""
        phrases = self.explanation.phrases
        spelled = sorted((one for one in alone if is_spelled(phrases[one.phrases[0]])), key=self._lead)
        found = [one for one in spelled if one.predicted != self.explanation.predicted and len(phrases) > 1]
        if found or PAIRED * PAIRED // 2 * self.batch.n_words > TURNING_WORDS:
            return found[0] if found else None
        return self._turned(list(combinations((change.phrases[0] for change in spelled[:PAIRED]), 2)))

    def _lead(self, change: Change) -> float:
        """Of what is predicted now, after a change; the least for several labels."""
        now = self.explanation.probabilities
        if not isinstance(self.explanation.predicted, str):
            return float(np.where(now >= 0.5, change.probabilities, 1 - change.probabilities).min())
        top = int(now.argmax())
        return float(change.probabilities[top] - np.delete(change.probabilities, top).max(initial=0.0))

    def _turned_by_more(self) -> Change | None:
        """By leaving out the strongest together, then taking back those that are not needed."""
        orders = [[k for k in order if is_spelled(self.explanation.phrases[k])] for order in self._orders()]
        each = max(TURNING_WORDS // self.batch.n_words // len(orders), 4)  # sets of each order
        sizes = sorted({*range(1, min(each, TURNED) + 1), TURNED})
        sets = list(dict.fromkeys(tuple(order[:size]) for order in orders for size in sizes if len(order) >= size))
        turned = self._turned(sets)
        while turned is not None and len(turned.phrases) > 1:
            fewer = self._turned([tuple(k for k in turned.phrases if k != out) for out in turned.phrases])
            if fewer is None:
                break
            turned = fewer
        return turned

    def _orders(self) -> list[list[int]]:
        """Phrases that hold the label, the strongest first; against each of its likeliest rivals if that is known."""
        explanation = self.explanation
        effects, evidence = explanation.effects, explanation.evidence
        assert effects is not None
        gains = [effects.phrases]
        if evidence is not None and isinstance(explanation.predicted, str):
            first, *others = largest(explanation.probabilities, RIVALS + 1)
            gains = [evidence.phrases[:, first] - evidence.phrases[:, other] for other in others] or gains
        return [largest(gain, min(int((gain > 0).sum()), 2 * TURNED)) for gain in gains]

    def _turned(self, sets: Sequence[tuple[int, ...]]) -> Change | None:
        """The smallest of the sets without which the label is another; of those, the one that changes it most."""
        some = [numbers for numbers in sets if 0 < len(numbers) < len(self.explanation.phrases)]
        found = [c for c in self._changes(some) if c.predicted != self.explanation.predicted]
        return min(found, key=lambda change: (len(change.phrases), self._lead(change)), default=None)

    def _changes(self, sets: Sequence[tuple[int, ...]]) -> list[Change]:
        if not sets:
            return []
        chances = chances_without(self.run, self.batch, self.explanation, sets)
        labels: list[Any] = Decision(self.run.classes, self.run.multi_label).labels(chances)
        return [
            Change(numbers, tuple(self.explanation.phrases[k].text for k in sorted(numbers)), row, label)
            for numbers, row, label in zip(sets, chances, labels, strict=True)
        ]
