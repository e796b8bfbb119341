"""Draws reviews: first the stars and the opinions behind them, then sentences that say so.

A review is some scene sentences, its opinions, and distractions: opinions of any sign that do not count ("..., but
who cares"). The grammar has several ways to say each value; many use the words of the other side.
"""

from collections.abc import Callable, Iterator
from random import Random

from emhrnn.corpus.reviews.grammar import Context, domains, expand, symbol
from emhrnn.corpus.reviews.review import Review
from emhrnn.corpus.reviews.stars import Opinion, draw_label, draw_opinions
from emhrnn.corpus.reviews.surface import write_text

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
        context = Context(self.domain)
        rules = self.rng.sample(symbol("scene", context) + symbol("scene_general", context), count)
        return [expand([rule], self.random) for rule in rules]

    def _plain(self, name: str) -> str:
        return expand(symbol(name, Context(self.domain)), self.random)

    def _distraction(self) -> str:
        return self._about("distraction", blame=self.random() < 0.5)

    def _opinion(self, form: str, value: int) -> str:
        return self._about(form.format(STRENGTHS[abs(value)]), self._blame(value))

    def _verdict(self, value: int) -> str:
        context = Context(self.domain, blame=self._blame(value))
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
        return expand(symbol(name, Context(self.domain, kind, blame)), self.random).replace("@", aspect)

    def _aspect(self) -> tuple[str, str]:
        kind = KIND_DRAW[int(self.random() * len(KIND_DRAW))]
        return kind, expand(symbol(kind, Context(self.domain)), self.random)

    def _blame(self, value: int) -> bool:
        return value < 0 or (value == 0 and self.random() < 0.5)
