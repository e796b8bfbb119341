"""A document as the Read page shows it, and its label without some phrases. A reading is kept for a while, so that a
change of it sends and computes only the change. All of it runs in the thread of the model."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emhrnn.api import labels_of
from emhrnn.corpus.batch import Batch
from emhrnn.explain.counterfactual import Changes, with_change
from emhrnn.explain.explainer import explained_alone
from emhrnn.explain.explanation import Change, Explanation
from emhrnn.explain.html import DocumentHtml
from emhrnn.serve.engine import RequestText, columns
from emhrnn.serve.limits import RefusedError
from emhrnn.training.run import Run

KEPT, KEPT_WORDS = 32, 200_000  # readings, and words of them together
STEPS = 20  # of the slider


@dataclass(frozen=True, eq=False)
class KeptReading:
    """A text with its explanation."""

    key: str
    run: Run
    written: RequestText
    threshold: float  # on pi
    own: float  # the model's threshold
    explanation: Explanation
    batch: Batch

    @property
    def strangers(self) -> Iterator[str]:
        """Names that were given and that training has not seen."""
        for name, known in ((self.written.user, self.run.users), (self.written.product, self.run.products)):
            if known and name is not None and name not in known:
                yield name

    @property
    def learned(self) -> bool:
        """Whether the threshold has any effect."""
        return bool(self.run.model.segments)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """That make a difference in this document, from many phrases to few: quantiles of its pi, and the own one."""
        if self.explanation.pi is None:
            return (self.own,)
        quantiles = np.quantile(self.explanation.pi, np.linspace(0, 1, STEPS + 1)[1:-1])
        return tuple(sorted({0.0, 1.0, self.own, *(round(float(value), 6) for value in quantiles)}))

    @property
    def step(self) -> int:
        """Where the slider stands."""
        return int(np.argmin(np.abs(np.array(self.thresholds) - self.threshold)))

    @cached_property
    def html(self) -> DocumentHtml:
        """What draws it."""
        return DocumentHtml(self.explanation)

    def without(self, numbers: Iterable[int]) -> Change | None:
        """The prediction without some phrases; None without any."""
        return Changes(self.run, self.batch, self.explanation).without(numbers)

    def edited(self, text: str) -> Change:
        """The prediction of another text in its place."""
        _, users, products = columns([self.written])
        chances = self.run.predict(self.run.encoder.encode([text], users=users, products=products)).probabilities
        return Change((), (), chances[0].astype(np.float64), labels_of(self.run, chances)[0])


class Readings:
    """The last readings, by their keys."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, KeptReading] = OrderedDict()
        self._lock = threading.Lock()  # pages draw from readings in other threads

    def get(self, key: str) -> KeptReading:
        """Raises a RefusedError (404) where it is no longer kept."""
        with self._lock:
            if key not in self._kept:
                raise RefusedError(404, "this reading is no longer kept; read the text again")
            self._kept.move_to_end(key)
            return self._kept[key]

    def read(self, run: Run, name: str, written: RequestText, threshold: float | None) -> KeptReading:
        """The reading of a text by the run of this name; as it was, if it was read before."""
        learned = run.model.segments
        threshold = threshold if learned else None
        key = hashlib.sha256(repr((name, written, threshold)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with suppress(RefusedError):
            return self.get(key)
        explanation, batch = explained_alone(
            run, written.text, user=written.user, product=written.product, threshold=threshold, exact=True
        )
        explanation = with_change(run, batch, explanation)
        own = 0.5 if run.model.boundary_threshold is None else round(run.model.boundary_threshold, 6)
        reading = KeptReading(key, run, written, own if threshold is None else threshold, own, explanation, batch)
        with self._lock:
            self._kept[key] = reading
            while len(self._kept) > KEPT or sum(one.batch.n_words for one in self._kept.values()) > KEPT_WORDS:
                self._kept.popitem(last=False)
        return reading
