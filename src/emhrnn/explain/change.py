"""The prediction of a document without some phrases, and the few without which it is another: cheap enough for every
document that a page shows. counterfactual.py searches longer for the fewest."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.decision import Decision
from emhrnn.explain.explanation import Change, Explanation, is_spelled, largest
from emhrnn.explain.removal import chances_without
from emhrnn.training.run import Run

TURNED = 8  # phrases that may be left out to change the label
TURNING_WORDS = 60_000  # that the model may read to find them
RIVALS = 3  # classes that the label may change to


def with_change(run: Run, batch: Batch, explanation: Explanation) -> Explanation:
    """The same explanation with the prediction without the phrases that decided."""
    return replace(explanation, change=Changes(run, batch, explanation).deciding(), checked=True)


class Changes:
    """Of one document, which is alone in its batch."""

    def __init__(self, run: Run, batch: Batch, explanation: Explanation) -> None:
        self.run, self.batch, self.explanation = run, batch, explanation

    def without(self, numbers: Iterable[int]) -> Change | None:
        """The prediction without some phrases; None without any."""
        some = tuple(sorted({k for k in numbers if 0 <= k < len(self.explanation.phrases)}))
        return self._changes([some])[0] if some else None

    def deciding(self) -> Change | None:
        """Without the fewest phrases found that change the prediction; where that takes too many, without the two that
        support it most; None where nothing does. The model is run for every set that counts."""
        supporting = self.explanation.supporting(2)
        if not supporting or not self.explanation.has_phrases:
            return None
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
        starts = [phrase.start for phrase in self.explanation.phrases]
        return turned or self.without(starts.index(phrase.start) for phrase in supporting)

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
        """The smallest of the sets without which the label is another."""
        some = [numbers for numbers in sets if 0 < len(numbers) < len(self.explanation.phrases)]
        found = [c for c in (self._changes(some) if some else []) if c.predicted != self.explanation.predicted]
        return min(found, key=lambda change: len(change.phrases), default=None)

    def _changes(self, sets: Sequence[tuple[int, ...]]) -> list[Change]:
        chances = chances_without(self.run, self.batch, self.explanation, sets)
        labels: list[Any] = Decision(self.run.classes, self.run.multi_label).labels(chances)
        return [
            Change(numbers, tuple(self.explanation.phrases[k].text for k in sorted(numbers)), row, label)
            for numbers, row, label in zip(sets, chances, labels, strict=True)
        ]
