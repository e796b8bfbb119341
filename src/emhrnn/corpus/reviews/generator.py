"""Draws reviews: first the stars and the opinions behind them, then sentences that say so.

A reviewer gives stars by opinions of aspects, weighted by how much each matters:

    s ~ uniform {1..5}
    o_1..o_n ~ profile(s), each in {-2 .. +2}, some with weight 2
    score = weighted mean of the opinions, drawn again until it lies in the band of s: s is a function of the score
    label = s, or with probability NOISE a neighbour of s

The bands do not touch, so a reader who understands every opinion is right in all reviews but the noisy ones.

A review is some scene sentences, its opinions, and distractions: opinions of any sign that do not count ("..., but
who cares"). The grammar has several ways to say each value; many use the words of the other side.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from emhrnn.corpus.reviews.grammar import RuleContext, domains, expand, symbol, write_text


@dataclass(frozen=True)
class Review:
    """`label` is "1" to "5" stars. `phrase_ends` are character offsets into `text`, each just after the last character
    of a phrase (punctuation belongs to the phrase before it); every end of a sentence is one of them."""

    text: str
    label: str
    phrase_ends: tuple[int, ...]
    domain: str

    @property
    def phrases(self) -> list[str]:
        """The true phrases, without the blanks between them."""
        starts = (0, *self.phrase_ends[:-1])
        return [self.text[a:b].lstrip() for a, b in zip(starts, self.phrase_ends, strict=True)]


def write_reviews(path: Path, reviews: Iterable[Review]) -> None:
    """Write JSON lines of id, text, label, phrase_ends and domain; the id is the row, counted from 0."""
    with path.open("w", encoding="utf-8", newline="\n") as lines:
        for row, review in enumerate(reviews):
            lines.write(json.dumps({"id": str(row), **asdict(review)}) + "\n")


NOISE = 0.02  # share of reviewers whose stars are one off
DOUBLE = 0.2  # share of opinions that count double

VALUES = (2, 1, 0, -1, -2)
PROFILES = {  # cumulative weights of VALUES, out of 100
    5: (82, 96, 97, 99, 100),
    4: (26, 80, 90, 97, 100),
    3: (18, 38, 62, 82, 100),
    2: (3, 10, 20, 74, 100),
    1: (1, 3, 4, 18, 100),
}
BANDS = {5: (1.5, 2.0), 4: (0.65, 1.15), 3: (-0.25, 0.25), 2: (-1.15, -0.65), 1: (-2.0, -1.5)}


class Opinion(NamedTuple):
    """What the reviewer thinks of one aspect, -2 to 2, and how much it counts."""

    value: int
    weight: int


def score(opinions: list[Opinion]) -> float:
    """The weighted mean: -2 if all is awful, 2 if all is great."""
    return sum([value * weight for value, weight in opinions]) / sum([weight for _, weight in opinions])


def draw_opinions(stars: int, rng: Random) -> list[Opinion]:
    """Three to six opinions whose score lies in the band of the stars."""
    low, high = BANDS[stars]
    while True:
        values = rng.choices(VALUES, cum_weights=PROFILES[stars], k=3 + int(rng.random() * 4))
        opinions = [Opinion(value, 2 if rng.random() < DOUBLE else 1) for value in values]
        if low <= score(opinions) <= high:
            return opinions


def draw_label(stars: int, rng: Random) -> str:
    """The stars as given: now and then one more or one less than the opinions deserve."""
    if rng.random() < NOISE:
        stars += 1 if stars == 1 or (stars < 5 and rng.random() < 0.5) else -1
    return str(stars)


PAIR = 0.25  # chance that an opinion shares its sentence with the next
STRENGTHS = ("neutral", "mild", "strong")
KIND_DRAW = ("thing_one",) * 5 + ("thing_many",) * 2 + ("people_one",) * 2 + ("people_many",)


def generate_reviews(documents: int, seed: int) -> Iterator[Review]:
    """Yield reviews. One seed gives the same reviews on every machine; a larger count only adds to them."""
    rng = Random(seed)
    names = domains()
    for _ in range(documents):
        stars = 1 + int(rng.random() * 5)
        domain = names[int(rng.random() * len(names))]
        text, phrase_ends = write_text(_Writer(domain, rng).sentences(draw_opinions(stars, rng)))
        yield Review(text, draw_label(stars, rng), phrase_ends, domain)


EVERYDAY = {1: "worst", 2: "poor", 3: "mixed", 4: "fine", 5: "best"}  # sentences by stars
MOST_EVERYDAY = 3  # sentences of such a review


def everyday_reviews(documents: int, seed: int) -> Iterator[Review]:
    """Yield short reviews of one to three plain sentences, as a person types them: with negation, and of three stars,
    with two sides. Every sentence is a phrase."""
    rng, context = Random(seed), RuleContext(domains()[0])
    for _ in range(documents):
        stars, count = 1 + int(rng.random() * 5), 1 + int(rng.random() * MOST_EVERYDAY)
        kinds = [EVERYDAY[stars]] * count
        if stars == 3 and count > 1 and rng.random() < 0.5:
            kinds = ["fine", "poor"] if rng.random() < 0.5 else ["best", "worst"]
            rng.shuffle(kinds)
        elif stars in (1, 5) and count > 1 and rng.random() < 0.3:
            kinds[0] = EVERYDAY[2 if stars == 1 else 4]
        text, phrase_ends = write_text([expand(symbol(kind, context), rng.random) for kind in kinds])
        yield Review(text, str(stars), phrase_ends, "everyday")


class _Writer:
    """Writes one review; remembers the aspects it has spoken of, so that it does not contradict itself."""

    def __init__(self, domain: str, rng: Random) -> None:
        self.domain = domain
        self.rng = rng
        self.random: Callable[[], float] = rng.random
        self.spoken: set[str] = set()

    def sentences(self, opinions: list[Opinion]) -> list[str]:
        body = self._scenes(count=int(self.random() * 3))
        body += [self._distraction() for _ in range(1 + int(self.random() * 2))]
        heavy = [value for value, weight in opinions if weight == 2]
        verdict = [self._verdict(heavy.pop())] if heavy else []
        body += [self._opinion("{}_priority", value) for value in heavy]
        light = [value for value, weight in opinions if weight == 1]
        while light:
            value = light.pop()
            paired = light and self.random() < PAIR
            body.append(self._pair(value, light.pop()) if paired else self._opinion("{}_sentence", value))
        self.rng.shuffle(body)
        return [self._plain("scene_opening"), *body, *verdict]

    def _scenes(self, count: int) -> list[str]:
        context = RuleContext(self.domain)
        rules = self.rng.sample(symbol("scene", context) + symbol("scene_general", context), count)
        return [expand([rule], self.random) for rule in rules]

    def _plain(self, name: str) -> str:
        return expand(symbol(name, RuleContext(self.domain)), self.random)

    def _distraction(self) -> str:
        return self._about("distraction", blame=self.random() < 0.5)

    def _opinion(self, form: str, value: int) -> str:
        return self._about(form.format(STRENGTHS[abs(value)]), self._blame(value))

    def _verdict(self, value: int) -> str:
        context = RuleContext(self.domain, blame=self._blame(value))
        text = expand(symbol(f"{STRENGTHS[abs(value)]}_verdict", context), self.random)
        return text.replace("@", expand(symbol("whole", context), self.random))

    def _pair(self, first: int, second: int) -> str:
        clauses = [self._about(f"{STRENGTHS[abs(value)]}_clause", self._blame(value)) for value in (first, second)]
        return self._plain("pair").replace("<1>", clauses[0]).replace("<2>", clauses[1])

    def _about(self, name: str, blame: bool) -> str:
        """The rule said of an aspect that was not spoken of before."""
        kind, aspect = self._aspect()
        while aspect in self.spoken:
            kind, aspect = self._aspect()
        self.spoken.add(aspect)
        return expand(symbol(name, RuleContext(self.domain, kind, blame)), self.random).replace("@", aspect)

    def _aspect(self) -> tuple[str, str]:
        kind = KIND_DRAW[int(self.random() * len(KIND_DRAW))]
        return kind, expand(symbol(kind, RuleContext(self.domain)), self.random)

    def _blame(self, value: int) -> bool:
        return value < 0 or (value == 0 and self.random() < 0.5)
