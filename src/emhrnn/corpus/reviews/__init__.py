"""The embedded default corpus: reviews drawn from a seeded grammar of our own.

    words.toml      opinion words by strength, names, places, made-up towns and brands
    domains.toml    what each kind of review talks about
    rules.toml      how a value is said, phrase by phrase
    everyday.toml   plain sentences by stars, for the model `demo` alone

First the stars and the opinions behind them are drawn, then sentences that say so. A reviewer gives stars by opinions
of aspects, weighted by how much each matters:

    s ~ uniform {1..5}
    o_1..o_n ~ profile(s), each in {-2 .. +2}, some with weight 2
    score = weighted mean of the opinions, drawn again until it lies in the band of s: s is a function of the score
    label = s, or with probability NOISE a neighbour of s

The bands do not touch, so a reader who understands every opinion is right in all reviews but the noisy ones.

A review is some scene sentences, its opinions, and distractions: opinions of any sign that do not count ("..., but
who cares"). The grammar has several ways to say each value; many use the words of the other side.

The grammar: a context fixes what a rule leaves open, the domain, the kind of aspect (one thing, one person, many
things, many people) and the side (praise, or blame by swapping each opinion word with its opposite). Rules and word
lists are compiled once per context: an alternative is then either finished text or a text with holes and the symbols
that fill them.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple


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
        body += [self._about("distraction", blame=self.random() < 0.5) for _ in range(1 + int(self.random() * 2))]
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


KINDS = ("thing_one", "people_one", "thing_many", "people_many")
OPPOSITES = "good bad, great awful, better worse, delight disaster, loved hated, love hate"
MIRROR = {a: b for pair in OPPOSITES.split(", ") for a, b in permutations(pair.split())}
# As in real text, few words do most of the work: the n-th opinion word of a list has weight 40 / n, at least 1.
FIRST = 40

_HOLE = re.compile(r"\{(\w+)\}")
_WEIGHT = re.compile(r"(\d+)\* ")
_NUMBER = re.compile(r"<([^<>/]+)/([^<>/]+)>")
_PRONOUN = re.compile(r"\[([^\[\]/]+)/([^\[\]/]+)/([^\[\]/]+)\]")


class Template(NamedTuple):
    """A text with holes, and the symbols that fill them."""

    text: str
    holes: "tuple[Symbol, ...]"


Symbol = list[str | Template]  # the alternatives


class RuleContext(NamedTuple):
    """What fixes the open points of a rule. A tuple, because hashing it is part of every expansion."""

    domain: str
    kind: str = "thing_one"
    blame: bool = False


def domains() -> tuple[str, ...]:
    """The kinds of things that are reviewed, in the order of the file."""
    return tuple(_read("domains.toml"))


def expand(symbol: Symbol, random: Callable[[], float]) -> str:
    """A random text of the symbol; `random` gives numbers in [0, 1)."""
    alternative = symbol[int(random() * len(symbol))]
    if isinstance(alternative, str):
        return alternative
    text, holes = alternative
    return text % tuple([expand(hole, random) for hole in holes])


@cache
def symbol(name: str, context: RuleContext) -> Symbol:
    """The compiled alternatives of a rule or word list; a weight of 3 repeats an alternative three times."""
    if context.blame and name in MIRROR:
        return symbol(MIRROR[name], context._replace(blame=False))
    lines, needed = _source(name, context)
    if needed != context:  # compiled once for all contexts that do not differ in what the list needs
        return symbol(name, needed)
    compiled: Symbol = []
    for line in lines:
        weight = _WEIGHT.match(line)
        text = _inflect(line[weight.end() :] if weight else line, context.kind)
        holes = tuple(symbol(hole, context) for hole in _HOLE.findall(text))
        alternative = Template(_HOLE.sub("%s", text), holes) if holes else text
        compiled += [alternative] * (int(weight[1]) if weight else 1)
    return compiled


def _source(name: str, context: RuleContext) -> tuple[list[str], RuleContext]:
    """The uncompiled alternatives, and the part of the context that they depend on."""
    domain, words = _read("domains.toml")[context.domain], _read("words.toml")
    if name in domain:
        return (_lines if name == "scene" else _entries)(domain[name]), RuleContext(context.domain)
    if name in words["all"]:
        return _entries(words["all"][name]), RuleContext(domains()[0])
    if name in words:  # an opinion word: those of any aspect and those of the aspect's kind
        thing_or_people = context.kind.split("_")[0]
        entries = _entries(words[name]["any"]) + _entries(words[name][thing_or_people])
        ranked = [f"{max(1, FIRST // (rank + 1))}* {entry}" for rank, entry in enumerate(entries)]
        return ranked, RuleContext(domains()[0], kind=f"{thing_or_people}_one")
    if name in (everyday := _read("everyday.toml"))["words"]:
        return _entries(everyday["words"][name]), RuleContext(domains()[0])
    for section in (*_read("rules.toml").values(), everyday["sentences"]):
        if name in section:
            return _lines(section[name]), context
    raise KeyError(f"no rule or word list named {name!r}")


def _inflect(text: str, kind: str) -> str:
    many = kind.endswith("many")
    pronoun = 3 if many else 1 + KINDS.index(kind)
    return _PRONOUN.sub(lambda m: m[pronoun], _NUMBER.sub(lambda m: m[2 if many else 1], text))


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def _entries(text: str) -> list[str]:
    return [entry for line in text.splitlines() for entry in map(str.strip, line.split(",")) if entry]


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files(__package__) / name).read_text(encoding="utf-8"))


BOUNDARY = " | "
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeioAEIO]|[uU](?!se|ni))")  # "an hour" and "a one" do not occur in the word lists


def write_text(sentences: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Sentences with `|` between phrases -> text and the character offset just after each phrase."""
    marked = BOUNDARY.join([sentence[0].upper() + sentence[1:] for sentence in sentences])
    phrases = _ARTICLE.sub(r"\1n ", marked).split(BOUNDARY)
    ends, end = [], -1
    for phrase in phrases:
        end += len(phrase) + 1  # one blank before each phrase but the first
        ends.append(end)
    return " ".join(phrases), tuple(ends)
