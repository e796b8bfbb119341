"""What would have had to be left out? The smallest set of phrases without which the prediction is another.

Every answer is the model's own: each set that counts has been run through it. The search, cheapest first:

    1. one     every phrase alone, all in one batch
    2. pairs   of the phrases that came closest, all in one batch
    3. greedy  the phrase whose removal brings the prediction nearest to changing, again and again
    4. prune   from the set that greedy found, take back every phrase that turns out not to be needed

A set of one or two phrases is the smallest there is, since every single one was tried; a larger one is *minimal*: no
phrase of it can be taken back, but another set might be smaller.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.explain.explainer import explain_read
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.removal import chances_without
from emhrnn.shapes import Float64
from emhrnn.training.run import Run

LIMIT = 10  # phrases that may be left out
WIDTH = 24  # phrases that are tried in pairs, and at each greedy step

Chances = Float64[np.ndarray, " classes"]


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
    run: Run,
    text: str,
    *,
    user: str | None = None,
    product: str | None = None,
    limit: int = LIMIT,
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
    documents, users, products = run.encoder.locate([text]), [user], [product]
    (explanation,) = explain_read(run, documents, users=users, products=products, exact=True)
    batch = run.encoder.batch(documents, users=users, products=products)
    return _Search(run, batch, explanation, limit).run_it()


class _Search:
    def __init__(self, run: Run, batch: Batch, explanation: Explanation, limit: int) -> None:
        self.run, self.batch, self.explanation, self.limit = run, batch, explanation, limit
        self.n_phrases = len(explanation.phrase_offsets) - 1
        self.before = explanation.probabilities
        self.chosen = int(self.before.argmax())
        self.tried = 0

    def run_it(self) -> Counterfactual:
        n = self.n_phrases
        if n < 2:  # without its only phrase there is no document
            return self._answer((), smallest=True)
        singles = [(k,) for k in range(n)]
        chances = self._without(singles)
        if (best := self._best(singles, chances)) is not None:
            return self._answer(best, smallest=True)
        nearest = np.argsort(self._lead(chances), kind="stable")[:WIDTH].tolist()
        pairs = list(combinations(nearest, 2)) if self.limit >= 2 and n > 2 else []  # something must be left
        if pairs and (best := self._best(pairs, self._without(pairs))) is not None:
            return self._answer(best, smallest=True)
        found = self._greedy(nearest)
        return self._answer(() if found is None else self._pruned(found), smallest=False)

    def _greedy(self, nearest: Sequence[int]) -> tuple[int, ...] | None:
        taken: tuple[int, ...] = (nearest[0],)
        while len(taken) < min(self.limit, self.n_phrases - 1):
            rest = [k for k in range(self.n_phrases) if k not in taken]
            sets = [(*taken, k) for k in rest]
            chances = self._without(sets)
            taken = sets[int(np.argmin(self._lead(chances)))]
            if self._lead(self._without([taken]))[0] < 0:
                return taken
        return None

    def _pruned(self, taken: tuple[int, ...]) -> tuple[int, ...]:
        while len(taken) > 1:
            smaller = [tuple(k for k in taken if k != out) for out in taken]
            best = self._best(smaller, self._without(smaller))
            if best is None:
                return taken
            taken = best
        return taken

    def _lead(self, chances: Float64[np.ndarray, "sets classes"]) -> Float64[np.ndarray, " sets"]:
        """Of the predicted class over the best other one; below zero where the prediction has changed."""
        others = np.delete(chances, self.chosen, axis=1).max(axis=1)
        lead: np.ndarray = chances[:, self.chosen] - others
        return lead

    def _best(
        self, sets: Sequence[tuple[int, ...]], chances: Float64[np.ndarray, "sets classes"]
    ) -> tuple[int, ...] | None:
        """The set that changes the prediction most clearly; None where none does."""
        lead = self._lead(chances)
        return sets[int(lead.argmin())] if lead.min() < 0 else None

    def _without(self, sets: Sequence[tuple[int, ...]]) -> Float64[np.ndarray, "sets classes"]:
        """Probabilities without the phrases of each set, in batches."""
        self.tried += len(sets)
        return chances_without(self.run, self.batch, self.explanation, sets)

    def _answer(self, phrases: tuple[int, ...], *, smallest: bool) -> Counterfactual:
        phrases = tuple(sorted(phrases))
        after = self._without([phrases])[0] if phrases else self.before
        return Counterfactual(
            phrases=phrases,
            texts=tuple(self.explanation.phrases[k].text for k in phrases),
            classes=self.explanation.classes,
            before=self.before,
            after=after,
            smallest=smallest and bool(phrases),
            tried=self.tried,
            limit=self.limit,
            explanation=self.explanation,
        )
