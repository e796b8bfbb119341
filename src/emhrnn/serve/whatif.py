"""A document as the viewer shows it: its explanation, and the prediction without the phrases that were dropped."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64

from emhrnn.api import labels_of
from emhrnn.explain.explainer import batch_of, explain_read, read
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.headline import Shading
from emhrnn.explain.html import Classwise
from emhrnn.explain.removal import encode, without
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.serve.written import Written, columns_of
from emhrnn.training.run import Run

STEPS = 20  # of the slider


@dataclass(frozen=True, eq=False)
class View:
    """`dropped` are phrase numbers. `without` are the probabilities when they are taken out, `instead` is what is then
    predicted; None when none is."""

    explanation: Explanation
    dropped: frozenset[int]
    without: Float64[np.ndarray, " classes"] | None
    instead: str | tuple[str, ...] | None
    threshold: float  # on pi
    own: float  # the model's threshold
    thresholds: tuple[float, ...]  # that make a difference in this document, from many phrases to few
    learned: bool  # whether the threshold has a say at all
    strangers: tuple[str, ...]  # names that were given and that training has not seen

    @property
    def step(self) -> int:
        """Where the slider stands."""
        return int(np.argmin(np.abs(np.array(self.thresholds) - self.threshold)))

    @cached_property
    def shading(self) -> Shading:
        return Shading(self.explanation)

    @property
    def heaviest(self) -> int | None:
        """The sentence that decided."""
        explanation = self.explanation
        return explanation.decisive_path().sentence.index if explanation.supported else None

    @cached_property
    def classwise(self) -> Classwise:
        return Classwise(self.explanation)


def view(run: Run, written: Written, threshold: float | None, dropped: frozenset[int]) -> View:
    asked = columns_of([written])
    document = read(run, asked.texts)[0]
    learned = isinstance(run.model, EMHRNN) and run.model.rule is None
    explanation = explain_read(
        run, [document], threshold=threshold if learned else None, users=asked.users, products=asked.products
    )[0]
    dropped = frozenset(k for k in dropped if 0 <= k < len(explanation.beta))
    probabilities = instead = None
    if dropped:
        z = np.zeros(len(document), dtype=bool)
        z[explanation.phrase_offsets[1:] - 1] = True
        whole = batch_of(run, [document], users=asked.users, products=asked.products)
        batch, left = without(whole, z, _kept(explanation, dropped))
        chances = run.probabilities(encode(run, batch, left).logits).numpy()
        probabilities, instead = chances[0].astype(np.float64), labels_of(run, chances)[0]
    own = _own_threshold(run)
    return View(
        explanation,
        dropped,
        probabilities,
        instead,
        own if threshold is None else threshold,
        own,
        _thresholds(explanation, own),
        learned,
        tuple(_strangers(run, written)),
    )


def _strangers(run: Run, written: Written) -> Iterator[str]:
    for name, known in ((written.user, run.users), (written.product, run.products)):
        if known and name is not None and name not in known:
            yield name


def _kept(explanation: Explanation, dropped: frozenset[int]) -> Bool[np.ndarray, " words"]:
    keep = np.ones(len(explanation.beta), dtype=bool)
    keep[list(dropped)] = False
    kept: np.ndarray = np.repeat(keep, np.diff(explanation.phrase_offsets))
    return kept


def _own_threshold(run: Run) -> float:
    model = run.model
    return round(float(1 / (1 + np.exp(-float(model.threshold)))), 6) if isinstance(model, EMHRNN) else 0.5


def _thresholds(explanation: Explanation, own: float) -> tuple[float, ...]:
    """Quantiles of pi in this document, so that every step of a slider moves some boundary; and the model's own."""
    if explanation.pi is None:
        return (own,)
    quantiles = np.quantile(explanation.pi, np.linspace(0, 1, STEPS + 1)[1:-1])
    return tuple(sorted({0.0, 1.0, own, *(round(float(value), 6) for value in quantiles)}))
