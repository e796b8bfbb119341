"""The phrases that speak for a class: counted where they occur, then measured by taking them out.

    1. gather    every phrase of every document, with its share of the document and what the document was taken for
    2. choose    for each class the phrases that weigh most where the class is likely:
                     sum over occurrences of share * (p(class | document) - mean p(class))
    3. measure   p(class | document) - p(class | document without the phrase), mean over some of its occurrences

The third step is what the lexicon shows: an effect, not a weight. Phrases are distinguished by their words, in
lower case and without marks at their ends.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.removal import logits_of, segmented, without
from emhrnn.shapes import Float64
from emhrnn.training.run import Run

CHOSEN = 40  # phrases per class that are measured
MEASURED = 6  # occurrences of each
KEPT = 12  # occurrences remembered of each


@dataclass(frozen=True)
class Entry:
    """A phrase, how often it occurs, and by how much it raises the probability of its class where it does."""

    phrase: str
    count: int
    effect: float
    example: str  # the sentence around one occurrence

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Occurrence:
    """Where a phrase occurs."""

    text: int  # number of the document
    phrase: int  # number of the phrase in it


@dataclass(eq=False)
class SeenPhrase:
    """A phrase, by its normal form, in the documents seen so far."""

    weighted: Float64[np.ndarray, " classes"]  # sum of share * p
    share: float = 0.0
    count: int = 0
    places: list[Occurrence] = field(default_factory=list)


class Gathered:
    """Phrases of the documents seen so far."""

    def __init__(self, classes: int) -> None:
        self.texts, self.phrases = list[str](), dict[str, SeenPhrase]()
        self.total = np.zeros(classes)  # sum of p

    def add(self, explanations: Sequence[Explanation]) -> None:
        for explanation in explanations:
            chances, bounds = explanation.probabilities, explanation.phrase_offsets
            self.total += chances
            starts, ends = explanation.starts[bounds[:-1]].tolist(), explanation.ends[bounds[1:] - 1].tolist()
            for k, (start, end, share) in enumerate(zip(starts, ends, explanation.phrase_shares, strict=True)):
                if not (name := normal_form(explanation.text[start:end])):
                    continue
                seen = self.phrases.setdefault(name, SeenPhrase(np.zeros(len(chances))))
                seen.count += 1
                seen.share += float(share)
                seen.weighted += share * chances
                if len(seen.places) < KEPT:
                    seen.places.append(Occurrence(len(self.texts), k))
            self.texts.append(explanation.text)

    def choose(self, label: int, *, least: int) -> list[str]:
        """The phrases that weigh most where the class is likely, among those that occur often enough."""
        prior = self.total[label] / max(len(self.texts), 1)
        scores = {
            name: float(seen.weighted[label]) - prior * seen.share
            for name, seen in self.phrases.items()
            if seen.count >= least
        }
        return sorted((name for name in scores if scores[name] > 0), key=lambda name: -scores[name])[:CHOSEN]


def normal_form(phrase: str) -> str:
    """A phrase in lower case, without punctuation at its ends."""
    return " ".join(phrase.lower().split()).strip(" .,;:!?\"'()-\u2013\u2014\u2026")


def measured(run: Run, gathered: Gathered, label: int, *, top: int = 15) -> list[Entry]:
    """The lexicon of one class, the strongest phrase first. One pass of the model over the occurrences measured."""
    least = 2 if len(gathered.texts) >= 100 else 1
    names = gathered.choose(label, least=least)
    if not names:
        return []
    places = [(name, place) for name in names for place in gathered.phrases[name].places[:MEASURED]]
    effects = _effects(run, gathered, [place for _, place in places], label)
    by_name: dict[str, list[float]] = defaultdict(list)
    for (name, _), effect in zip(places, effects.tolist(), strict=True):
        by_name[name].append(effect)
    entries = [
        Entry(name, gathered.phrases[name].count, float(np.mean(by_name[name])), _sentence_around(run, gathered, name))
        for name in names
    ]
    return sorted((entry for entry in entries if entry.effect > 0), key=lambda entry: -entry.effect)[:top]


def _effects(
    run: Run, gathered: Gathered, places: Sequence[Occurrence], label: int
) -> Float64[np.ndarray, " occurrences"]:
    """p(class) with the phrase minus p(class) without it."""
    batch = run.encoder.encode([gathered.texts[place.text] for place in places])
    logits, z = segmented(run, batch)
    if z is None:
        raise ConfigError(f"the model {run.config.model.name!r} has no phrases to take out; use evidence or em-hrnn")
    phrase_of_word = np.cumsum(z) - z
    first = phrase_of_word[batch.word_offsets[:-1]]  # of each document
    taken_out = np.repeat(first + [place.phrase for place in places], batch.document_lengths)
    smaller, left = without(batch, z, phrase_of_word != taken_out)
    before, after = (run.probabilities(l)[:, label] for l in (logits, logits_of(run, smaller, left)))
    effects: np.ndarray = before.astype(np.float64) - after
    return effects


def _sentence_around(run: Run, gathered: Gathered, name: str) -> str:
    text = gathered.texts[gathered.phrases[name].places[0].text]
    ((document,), _) = run.encoder.locate([text])
    for i in range(document.n_sentences):
        words = slice(int(document.sentence_offsets[i]), int(document.sentence_offsets[i + 1]))
        sentence = text[int(document.starts[words][0]) : int(document.ends[words][-1])]
        if name in normal_form(sentence):
            return " ".join(sentence.split())
    return " ".join(text.split())[:200]
