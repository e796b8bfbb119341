"""What a document is without some of its phrases; and what would have had to be left out for another prediction.

Every answer is the model's own: each set that counts has been run through it. Two searches for the fewest phrases:

    with_change      cheap enough for every document that a page shows: one, pairs of the nearest, then the strongest
                     together, from which those are taken back that are not needed
    counterfactual   longer, on request:
        1. one       every phrase alone, all in one batch
        2. pairs     of the phrases that came closest, all in one batch
        3. greedy    the phrase whose removal brings the prediction nearest to changing, again and again
        4. fewer     take back every phrase that turns out not to be needed

A set of one or two phrases that `counterfactual` finds is the smallest there is, since every single one was tried; a
larger one is *minimal*: no phrase of it can be taken back, but another set might be smaller.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import log, log1p
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.evaluation.decision import Decision
from emhrnn.explain.explainer import explained_alone
from emhrnn.explain.explanation import Change, Explanation, is_spelled, largest
from emhrnn.explain.points import points
from emhrnn.explain.removal import chances_without
from emhrnn.shapes import Float64
from emhrnn.training.run import Run

ALONE_WORDS = 30_000  # that the model may read to leave out phrases one by one
PAIRED = 10  # phrases that come closest to changing the label, left out in pairs
TURNED = 8  # phrases that may be left out to change the label
TURNING_WORDS = 60_000  # that the model may read to find them
RIVALS = 3  # classes that the label may change to
TINY = 1e-12
LIMIT = 10  # phrases that `counterfactual` may leave out
WIDTH = 24  # phrases that it tries in pairs
SMALLEST = 2  # phrases: no set is smaller, since each phrase was tried alone

Chances = Float64[np.ndarray, " classes"]


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
    """Of one document, which is alone in its batch. `tried` counts the sets that were run through the model."""

    def __init__(self, run: Run, batch: Batch, explanation: Explanation) -> None:
        self.run, self.batch, self.explanation, self.tried = run, batch, explanation, 0

    def of(self, sets: Sequence[tuple[int, ...]]) -> list[Change]:
        """Without the phrases of each set."""
        if not sets:
            return []
        self.tried += len(sets)
        chances = chances_without(self.run, self.batch, self.explanation, sets)
        labels: list[Any] = Decision(self.run.classes, self.run.multi_label).labels(chances)
        return [
            Change(numbers, tuple(self.explanation.phrases[k].text for k in numbers), row, label)
            for numbers, row, label in zip(map(tuple, map(sorted, sets)), chances, labels, strict=True)
        ]

    def without(self, numbers: Iterable[int]) -> Change | None:
        """The prediction without some phrases; None without any."""
        some = tuple({k for k in numbers if 0 <= k < len(self.explanation.phrases)})
        return self.of([some])[0] if some else None

    def alone(self) -> list[Change]:
        """Without each of the phrases with the largest effects, one by one; all of them in a document of usual length.
        None where there are no phrases or effects."""
        effects = self.explanation.effects
        if effects is None or not self.explanation.has_phrases:
            return []
        return self.of([(k,) for k in largest(np.abs(effects.phrases), ALONE_WORDS // self.batch.n_words)])

    def lead(self, change: Change) -> float:
        """Of what is predicted now, after a change; the least for several labels."""
        now = self.explanation.probabilities
        if not isinstance(self.explanation.predicted, str):
            return float(np.where(now >= 0.5, change.probabilities, 1 - change.probabilities).min())
        top = int(now.argmax())
        return float(change.probabilities[top] - np.delete(change.probabilities, top).max(initial=0.0))

    def turned(self, changes: Iterable[Change]) -> Change | None:
        """The smallest that makes the label another; of those, the one that changes it most. Something is left."""
        most, now = len(self.explanation.phrases), self.explanation.predicted
        found = [one for one in changes if one.predicted != now and len(one.phrases) < most]
        return min(found, key=lambda one: (len(one.phrases), self.lead(one)), default=None)

    def fewer(self, turned: Change) -> Change:
        """Phrases that are not needed are taken back, one after the other."""
        while len(turned.phrases) > 1:
            sets = [tuple(k for k in turned.phrases if k != out) for out in turned.phrases]
            if (found := self.turned(self.of(sets))) is None:
                break
            turned = found
        return turned

    def deciding(self, alone: Sequence[Change] = ()) -> Change | None:
        """Without the fewest phrases found that change the prediction, first `alone`, then in pairs, then more; where
        that takes too many, without the two that support it most; None where nothing does."""
        explanation = self.explanation
        if explanation.effects is None or not explanation.has_phrases:
            return None
        phrases, values = explanation.phrases, points(explanation, "phrases")
        supporting = [k for k in largest(values, int((values > 0).sum())) if is_spelled(phrases[k])]
        if not supporting:
            return None
        spelled = sorted((one for one in alone if is_spelled(phrases[one.phrases[0]])), key=self.lead)
        turned = self.turned(spelled)
        if turned is None and PAIRED * PAIRED // 2 * self.batch.n_words <= TURNING_WORDS:
            turned = self.turned(self.of(list(combinations((one.phrases[0] for one in spelled[:PAIRED]), 2))))
        if turned is None and (more := self.turned(self.of(self._strongest_together()))):
            turned = self.fewer(more)
        return turned or self.without(supporting[:2])

    def _strongest_together(self) -> list[tuple[int, ...]]:
        """Sets of the phrases that hold the label, the strongest first; against each of its likeliest rivals where that
        is known."""
        explanation = self.explanation
        effects, evidence = explanation.effects, explanation.evidence
        assert effects is not None
        gains = [effects.phrases]
        if evidence is not None and isinstance(explanation.predicted, str):
            first, *others = largest(explanation.probabilities, RIVALS + 1)
            gains = [evidence.phrases[:, first] - evidence.phrases[:, other] for other in others] or gains
        each = max(TURNING_WORDS // self.batch.n_words // len(gains), 4)  # sets of each order
        sizes = sorted({*range(1, min(each, TURNED) + 1), TURNED})
        sets = dict[tuple[int, ...], None]()
        for gain in gains:
            order = largest(gain, min(int((gain > 0).sum()), 2 * TURNED))
            order = [k for k in order if is_spelled(explanation.phrases[k])]
            sets |= dict.fromkeys(tuple(order[:size]) for size in sizes if len(order) >= size)
        return [numbers for numbers in sets if len(numbers) < len(explanation.phrases)]


@dataclass(frozen=True, eq=False)
class Counterfactual:
    """`phrases` are numbers of phrases of the document; empty where no set within the limit changes the prediction."""

    phrases: tuple[int, ...]
    texts: tuple[str, ...]
    classes: tuple[str, ...]
    before: Chances
    after: Chances  # without the phrases; `before` where there are none
    smallest: bool  # of all sets; else no phrase of it can be taken back
    tried: int  # sets that were run through the model
    limit: int
    explanation: Explanation  # of the whole text

    @property
    def found(self) -> bool:
        return bool(self.phrases)

    @property
    def predicted(self) -> tuple[str, str]:
        """Before and after."""
        return self.classes[int(self.before.argmax())], self.classes[int(self.after.argmax())]

    def told(self, quoted: Sequence[str], safe: Callable[[str], str]) -> str:
        """One sentence; `quoted` are the phrases as they are to be shown, `safe` makes a label so."""
        before, after = map(safe, self.predicted)
        if not self.tried:
            return f"{before} stays {before}: the text is one phrase, so that none can be left out."
        if not self.found:
            return f"{before} stays {before} whichever phrases are left out, as far as {self.tried} sets were tried."
        kind = "No smaller set does that" if self.smallest else "None of them can be put back"
        chance = f"{self.after.max():.0%}"
        return f"Without {', '.join(quoted)} it would be {after} ({chance}). {kind}; the model was run to see."

    def to_dict(self) -> dict[str, Any]:
        return {
            "phrases": list(self.phrases),
            "texts": list(self.texts),
            "before": dict(zip(self.classes, self.before.tolist(), strict=True)),
            "after": dict(zip(self.classes, self.after.tolist(), strict=True)) if self.found else None,
            "smallest": self.smallest,
            "tried": self.tried,
            "limit": self.limit,
        }


def counterfactual(
    run: Run, text: str, *, user: str | None = None, product: str | None = None, limit: int = LIMIT
) -> Counterfactual:
    """Of a text, with at most `limit` phrases left out. The answer has the explanation, too; `user` and
    `product` are those of `explain_texts`.

    Raises:
        DataError: the run gives several labels, so that there is no one prediction to change; or the limit is none.
    """
    if run.multi_label:
        raise DataError("this run gives a document several labels; a counterfactual needs one prediction to change")
    if limit < 1:
        raise DataError(f"the limit is {limit} phrases; give 1 or more")
    explanation, batch = explained_alone(run, text, user=user, product=product, exact=True)
    changes = Changes(run, batch, explanation)
    found = _fewest(changes, limit) if len(explanation.phrases) > 1 else None  # without its only phrase it is empty
    return Counterfactual(
        phrases=() if found is None else found.phrases,
        texts=() if found is None else found.texts,
        classes=explanation.classes,
        before=explanation.probabilities,
        after=explanation.probabilities if found is None else found.probabilities,
        smallest=found is not None and len(found.phrases) <= SMALLEST,
        tried=changes.tried,
        limit=limit,
        explanation=explanation,
    )


def _fewest(changes: Changes, limit: int) -> Change | None:
    n = len(changes.explanation.phrases)
    alone = changes.of([(k,) for k in range(n)])
    if (found := changes.turned(alone)) is not None:
        return found
    nearest = [one.phrases[0] for one in sorted(alone, key=changes.lead)[:WIDTH]]
    pairs = list(combinations(nearest, 2)) if limit >= 2 and n > 2 else []  # something must be left
    if (found := changes.turned(changes.of(pairs))) is not None:
        return found
    taken: tuple[int, ...] = (nearest[0],)
    while len(taken) < min(limit, n - 1):
        closest = min(changes.of([(*taken, k) for k in range(n) if k not in taken]), key=changes.lead)
        if changes.turned([closest]) is not None:
            return changes.fewer(closest)
        taken = closest.phrases
    return None
