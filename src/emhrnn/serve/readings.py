"""A document as the Read page shows it, and its label without some phrases. A reading is kept for a while, so that a
change of it sends and computes only the change. All of it runs in the thread of the model."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64

from emhrnn.api import labels_of
from emhrnn.corpus.batch import Batch
from emhrnn.explain.explainer import batch_of, explain_read, read
from emhrnn.explain.explanation import Explanation, Labels, Phrase, Word, is_spelled, largest
from emhrnn.explain.points import points
from emhrnn.explain.removal import logits_without
from emhrnn.serve.engine import RequestText, columns
from emhrnn.serve.limits import RefusedError
from emhrnn.training.run import Run

KEPT, KEPT_WORDS = 32, 200_000  # readings, and words of them together
STEPS = 20  # of the slider
UNSURE = 0.2  # a lead of less probability
TURNED = 8  # phrases that may be left out to change the label
TURNING_WORDS = 60_000  # that the model may read to find them
LEAST = 0.1  # of the largest effect: less is not listed
RIVALS = 3  # classes that the label may change to


@dataclass(frozen=True, eq=False)
class Change:
    """The prediction after a change: without the `phrases`, or of an edited text."""

    phrases: tuple[int, ...]
    texts: tuple[str, ...]
    probabilities: Float64[np.ndarray, " classes"]
    predicted: Labels


@dataclass(frozen=True, eq=False)
class KeptReading:
    """A text with its explanation. `reasons` is the prediction without the fewest phrases that change it; where that
    takes too many, without the two that support it most; None where nothing does."""

    key: str
    run: Run
    written: RequestText
    threshold: float  # on pi
    own: float  # the model's threshold
    explanation: Explanation
    batch: Batch

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """Classes, the likeliest first; ties in their own order."""
        return tuple(np.argsort(-self.explanation.probabilities, kind="stable").tolist())

    @property
    def unsure(self) -> bool:
        """Whether the decision was close: for one label, by its lead; for several, by the closest of them."""
        chances = np.sort(self.explanation.probabilities)
        if isinstance(self.explanation.predicted, str):
            return bool(chances[-1] - chances[-2] < UNSURE) if len(chances) > 1 else False
        return bool(np.abs(2 * chances - 1).min() < UNSURE)

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
    def phrase_points(self) -> Float64[np.ndarray, " phrases"]:
        return points(self.explanation, "phrases")

    @cached_property
    def sentence_points(self) -> Float64[np.ndarray, " sentences"]:
        return points(self.explanation, "sentences")

    def sentence_of(self, phrase: int) -> int:
        """The number of the sentence that the phrase is in."""
        return int(np.searchsorted(self.explanation.sentence_offsets, phrase, side="right")) - 1

    def pushing(self, sign: int, n: int = 3) -> list[tuple[int, str, float]]:
        """Number, text and points of the phrases that support (or oppose) the label most, without those that hardly
        count. Without phrases, of words; the number is that of their sentence."""
        explanation = self.explanation
        nodes: Sequence[Phrase | Word] = explanation.phrases if explanation.has_phrases else explanation.words
        values = self.phrase_points if explanation.has_phrases else points(explanation, "words")
        least = max(LEAST * float(np.abs(values).max()), 1e-9)
        order = [k for k in largest(sign * values, 3 * n) if sign * values[k] >= least and is_spelled(nodes[k])][:n]
        places = order if explanation.has_phrases else np.searchsorted(explanation.phrase_offsets, order, "right") - 1
        return [(int(place), nodes[k].text, float(values[k])) for place, k in zip(places, order, strict=True)]

    # ---- changes -----------------------------------------------------------------------------------------------

    def without(self, numbers: Iterable[int]) -> Change | None:
        """The prediction without some phrases; None without any."""
        some = tuple(sorted({k for k in numbers if 0 <= k < len(self.explanation.phrases)}))
        return self._changes([some])[0] if some else None

    def edited(self, text: str) -> Change:
        """The prediction of another text in its place."""
        _, users, products = columns([self.written])
        chances = self.run.predict(self.run.encoder.encode([text], users=users, products=products)).probabilities
        return Change((), (), chances[0].astype(np.float64), labels_of(self.run, chances)[0])

    @cached_property
    def reasons(self) -> Change | None:
        """See above. The model is run for every set that counts."""
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
        effects, evidence = self.explanation.effects, self.explanation.evidence
        assert effects is not None
        gains = [effects.phrases]
        if evidence is not None and isinstance(self.explanation.predicted, str):
            first, *others = self.shown
            gains = [evidence.phrases[:, first] - evidence.phrases[:, other] for other in others[:RIVALS]] or gains
        return [largest(gain, min(int((gain > 0).sum()), 2 * TURNED)) for gain in gains]

    def _turned(self, sets: Sequence[tuple[int, ...]]) -> Change | None:
        """The smallest of the sets without which the label is another."""
        some = [numbers for numbers in sets if 0 < len(numbers) < len(self.explanation.phrases)]
        found = [c for c in (self._changes(some) if some else []) if c.predicted != self.explanation.predicted]
        return min(found, key=lambda change: len(change.phrases), default=None)

    def _changes(self, sets: Sequence[tuple[int, ...]]) -> list[Change]:
        explanation = self.explanation
        keep = np.ones((len(sets), len(explanation.phrases)), dtype=bool)
        for row, numbers in zip(keep, sets, strict=True):
            row[list(numbers)] = False
        words: Bool[np.ndarray, "sets words"] = np.repeat(keep, np.diff(explanation.phrase_offsets), axis=1)
        z = np.zeros(self.batch.n_words, dtype=bool)
        z[explanation.phrase_offsets[1:] - 1] = True
        chances = self.run.probabilities(logits_without(self.run, self.batch, z, words))
        labels: Sequence[Labels] = labels_of(self.run, chances)
        return [
            Change(numbers, tuple(explanation.phrases[k].text for k in sorted(numbers)), row.astype(np.float64), label)
            for numbers, row, label in zip(sets, chances, labels, strict=True)
        ]


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
        texts, users, products = columns([written])
        documents = read(run, texts)
        (explanation,) = explain_read(run, documents, None, threshold, users=users, products=products, exact=True)
        batch = batch_of(run, documents, users=users, products=products)
        own = 0.5 if run.model.boundary_threshold is None else round(run.model.boundary_threshold, 6)
        reading = KeptReading(key, run, written, own if threshold is None else threshold, own, explanation, batch)
        reading.reasons  # noqa: B018  (in this thread)
        with self._lock:
            self._kept[key] = reading
            while len(self._kept) > KEPT or sum(one.batch.n_words for one in self._kept.values()) > KEPT_WORDS:
                self._kept.popitem(last=False)
        return reading
