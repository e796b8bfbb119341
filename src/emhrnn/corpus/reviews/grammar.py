"""The review grammar: reads the rules and word lists, compiles them once per context, and expands symbols at random.

A context fixes what a rule leaves open: the domain, the kind of aspect (one thing, one person, many things, many
people) and the side (praise, or blame by swapping each opinion word with its opposite). After compiling, an
alternative is either finished text or a text with holes and the symbols that fill them.

`write_text` makes written text of its phrases: capitals, `a` or `an`, and where each phrase ends.
"""

import re
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from itertools import permutations
from typing import Any, NamedTuple

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
