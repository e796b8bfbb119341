"""`emhrnn paper rationales`: runs and explanation methods beside human evidence, as data and Markdown.

One call compares on one set. rationales.json keeps a section for each set, rationales.md shows all of them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import read
from emhrnn.explain.removal import LEVELS, units_of
from emhrnn.files import sha256, write_json, write_text
from emhrnn.paper.markdown import markdown_table, percent
from emhrnn.paper.provenance import commit, machine
from emhrnn.paper.rationales.agreement import (
    PAIR_FIGURES,
    PART_FIGURES,
    TOKEN_FIGURES,
    Bootstrap,
    Figure,
    Sums,
    pair_sums,
    part_sums,
    taken_words,
    token_sums,
)
from emhrnn.paper.rationales.data import (
    POSITIVE,
    EditedPair,
    Highlighted,
    HumanEvidence,
    Item,
    Rated,
    read_evidence,
)
from emhrnn.paper.rationales.methods import (
    ALONE,
    METHODS,
    ReadTexts,
    UnitScores,
    prediction_seconds,
    read_groups,
    score,
)
from emhrnn.text import Located
from emhrnn.training.run import WEIGHTS, Run, load_run

POSITIVE_NAMES = ("pos", "positive", "1", "good")
USUAL = tuple(name for name in METHODS if name != "lime")  # what is compared unless methods are named
PART = "part"  # the level of rated parts
BETTER = "default is better by"  # a column


@dataclass(frozen=True)
class RationalePlan:
    """What to compare. `documents` limits how many are drawn; None: all."""

    part: str | None = None
    positive: str | None = None
    methods: Sequence[str] = (*USUAL, ALONE)
    documents: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        unknown = [name for name in self.methods if name not in (*METHODS, ALONE)]
        if unknown:
            raise ConfigError(f"no explanation method {unknown[0]!r}; there are {', '.join((*METHODS, ALONE))}")
        if self.documents is not None and self.documents < 2:
            raise ConfigError(f"{self.documents} documents; intervals need at least 2")


@dataclass(frozen=True, eq=False)
class Compared:
    """One method of one run at one level: sums of all documents, and what it cost per document."""

    run: str
    method: str
    level: str
    sums: Sums
    forward: float
    backward: float
    predictions: float  # CPU time in that of a plain prediction

    @property
    def key(self) -> tuple[str, str, str]:
        return self.run, self.method, self.level


def compare_rationales(
    folders: Sequence[Path], path: Path, out: Path, *, plan: RationalePlan, command: str
) -> dict[str, Any]:
    """Writes the section of this set into rationales.json and rationales.md of `out`, and gives it back.

    Raises:
        DataError: the file is of none of the known formats.
        ConfigError: a run has no positive and negative class, or a method is unknown.
    """
    human = read_evidence(path, plan.part)
    items = _drawn(human.items, plan)
    rows, about = list[Compared](), list[dict[str, Any]]()
    for folder in folders:
        run = load_run(folder)
        positive = positive_class(run, plan.positive)
        found, facts = _run_rows(run, folder.name, items, positive, plan)
        rows += found
        about.append(
            {"run": folder.name, "model": run.config.model.name, "weights": sha256(folder / WEIGHTS)[:12], **facts}
        )
    section = {
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "data": f"{human.name}, {human.part}: {_told(items, len(human.items))}; checksum {sha256(path)[:12]}",
        "seed": plan.seed,
        "runs": about,
        **_figures(rows, _figures_of(items[0]), Bootstrap.of(len(rows[0].sums), plan.seed)),
    }
    _write(out, human, section)
    return section


def positive_class(run: Run, given: str | None) -> int:
    """The class that is good news: the given one, or the one whose name says so."""
    named = [c for c, name in enumerate(run.classes) if name == given or (not given and name in POSITIVE_NAMES)]
    if len(run.classes) != 2 or run.multi_label or len(named) != 1:
        raise ConfigError(
            f"human evidence is positive or negative, and the run has the classes {list(run.classes)}; give a run with "
            "two classes, and --positive with the name of the positive one"
        )
    return named[0]


def _drawn(items: Sequence[Item], plan: RationalePlan) -> Sequence[Item]:
    usable = [item for item in items if not isinstance(item, Rated) or len(item.ratings)]
    if plan.documents is None or plan.documents >= len(usable):
        return usable
    places = np.random.default_rng(plan.seed).choice(len(usable), plan.documents, replace=False)
    return [usable[place] for place in np.sort(places)]


def _told(items: Sequence[Item], total: int) -> str:
    drawn = f"{len(items):,}" + ("" if len(items) == total else f" of {total:,}")
    if isinstance(items[0], Highlighted):
        return f"{drawn} documents, {percent(_rate(items))} % of the tokens are marked"
    if isinstance(items[0], Rated):
        ratings = np.concatenate([item.ratings for item in items if isinstance(item, Rated)])
        return f"{drawn} documents, {len(ratings):,} rated parts, {int((ratings != 0).sum()):,} of them not neutral"
    return f"{drawn} pairs"


def _rate(items: Sequence[Item]) -> float:
    """The mean share of tokens that people mark."""
    return float(np.mean([item.marked.mean() for item in items if isinstance(item, Highlighted)]))


def _figures_of(item: Item) -> Mapping[str, Figure]:
    return {Highlighted: TOKEN_FIGURES, Rated: PART_FIGURES, EditedPair: PAIR_FIGURES}[type(item)]


def _run_rows(
    run: Run, name: str, items: Sequence[Item], positive: int, plan: RationalePlan
) -> tuple[list[Compared], dict[str, Any]]:
    """Every method of one run, and how good its predictions are."""
    texts = read_groups(run, [item.text for item in items])
    chosen = np.concatenate([group.chosen.numpy() for group in texts])
    facts = _predictions(run, items, chosen == positive)
    measure = _measure(run, items, positive)
    plain = sum(prediction_seconds(group) for group in texts)
    rows = []
    for method in plan.methods:
        generator = np.random.default_rng(plan.seed)
        if isinstance(items[0], Rated) and method in (ALONE, "removal"):
            rows.append(_really_removed(name, method, texts, items, positive))
            continue
        found = [] if method == ALONE else [score(method, group, generator) for group in texts]
        scores = [one for one in found if one is not None]
        if not scores:
            continue
        counts = [group.batch.n_documents for group in texts]
        forward, backward = (
            float(np.average([getattr(one, kind) for one in scores], weights=counts))
            for kind in ("forward", "backward")
        )
        seconds = sum(one.seconds for one in scores)
        for level, sums in measure(texts, scores).items():
            rows.append(Compared(name, method, level, sums, forward, backward, seconds / plain))
    return rows, facts


def _predictions(run: Run, items: Sequence[Item], positive: Bool[np.ndarray, " items"]) -> dict[str, Any]:
    """Accuracy where labels are known; of pairs, also of the edited texts, and whether the prediction flips."""
    labels = [item.label for item in items if not isinstance(item, Rated)]
    if not labels:
        return {}
    right = positive == (np.array(labels) == POSITIVE)
    edited = [item.edited for item in items if isinstance(item, EditedPair)]
    if not edited:
        return {"accuracy": float(right.mean())}
    after = np.concatenate([group.chosen.numpy() for group in read_groups(run, edited)])
    before = np.concatenate([group.chosen.numpy() for group in read_groups(run, [item.text for item in items])])
    flips = before != after
    return {
        "accuracy": float(right.mean()),
        "accuracy, edited": float(np.where(flips, right, ~right).mean()),
        "flips": float(flips.mean()),
        "both right": float((right & flips).mean()),
    }


Measure = Callable[[Sequence[ReadTexts], Sequence[UnitScores]], dict[str, Sums]]


def _measure(run: Run, items: Sequence[Item], positive: int) -> Measure:
    if isinstance(items[0], Highlighted):
        return lambda texts, scores: _by_tokens(texts, scores, items)
    if isinstance(items[0], Rated):
        return lambda texts, scores: _by_parts(texts, scores, items, positive)
    edited = read(run, [item.edited for item in items if isinstance(item, EditedPair)])
    return lambda texts, scores: _by_pairs(texts, scores, edited)


def _by_tokens(texts: Sequence[ReadTexts], scores: Sequence[UnitScores], items: Sequence[Item]) -> dict[str, Sums]:
    rate, sums = _rate(items), dict[str, list[np.ndarray]]()
    for group, found, first in _documents(texts, scores):
        for level, values in found.levels.items():
            of_words = values[units_of(group.batch, group.z, level).of_word]
            for d, (begin, end) in enumerate(pairwise(group.batch.word_offsets)):
                item = items[first + d]
                assert isinstance(item, Highlighted)
                tokens = _token_scores(group.documents[d], of_words[begin:end], item)
                sums.setdefault(level, []).append(token_sums(tokens, item.marked, rate))
    return {level: np.stack(rows) for level, rows in sums.items()}


def _documents(texts: Sequence[ReadTexts], scores: Sequence[UnitScores]) -> list[tuple[ReadTexts, UnitScores, int]]:
    """Each batch, its scores, and the number of its first document."""
    firsts = np.cumsum([0, *(group.batch.n_documents for group in texts)]).tolist()
    return list(zip(texts, scores, firsts[:-1], strict=True))


def _token_scores(
    document: Located, words: Float64[np.ndarray, " words"], item: Highlighted
) -> Float64[np.ndarray, " tokens"]:
    """The best score of the words in a token; tokens that the run does not read come last."""
    tokens = np.full(len(item.tokens), words.min() - 1)
    np.maximum.at(tokens, np.searchsorted(item.tokens[:, 0], document.starts, side="right") - 1, words)
    return tokens


def _by_parts(
    texts: Sequence[ReadTexts], scores: Sequence[UnitScores], items: Sequence[Item], positive: int
) -> dict[str, Sums]:
    values = []
    for group, found, first in _documents(texts, scores):
        if "word" not in found.levels:
            return {}
        for d, (begin, end) in enumerate(pairwise(group.batch.word_offsets)):
            sums = np.concatenate([[0], np.cumsum(found.levels["word"][begin:end])])
            places = _places(group.documents[d], items[first + d])
            values.append(_sign(group, d, positive) * (sums[places[:, 1]] - sums[places[:, 0]]))
    return {PART: _rated_sums(values, items)}


def _places(document: Located, item: Item) -> Int64[np.ndarray, "parts 2"]:
    """[first, last) of the words of each rated part."""
    assert isinstance(item, Rated)
    places: np.ndarray = np.searchsorted(document.starts, item.spans)
    return places


def _sign(group: ReadTexts, d: int, positive: int) -> int:
    """What speaks for the predicted class speaks for the positive one, or against it."""
    return 1 if int(group.chosen[d]) == positive else -1


def _rated_sums(values: Sequence[np.ndarray], items: Sequence[Item]) -> Sums:
    ratings = np.concatenate([item.ratings for item in items if isinstance(item, Rated)])
    document = np.repeat(np.arange(len(items)), [len(one) for one in values])
    return part_sums(np.concatenate(values), ratings, document, len(items))


def _really_removed(
    name: str, method: str, texts: Sequence[ReadTexts], items: Sequence[Item], positive: int
) -> Compared:
    """Each rated part left out of its text, or read alone."""
    values, passes, first = [], 0, 0
    for group in texts:
        for d in range(group.batch.n_documents):
            places = _places(group.documents[d], items[first + d])
            odds = group.odds_without(d, places, alone=method == ALONE)
            gain = odds - group.odds_of_nothing(d) if method == ALONE else group.odds[d] - odds
            gain[places[:, 0] == places[:, 1]] = 0.0  # nothing that the run reads
            values.append(_sign(group, d, positive) * gain)
            passes += len(places) + 1
        first += group.batch.n_documents
    return Compared(name, method, PART, _rated_sums(values, items), passes / len(items), 0.0, float("nan"))


def _by_pairs(texts: Sequence[ReadTexts], scores: Sequence[UnitScores], edited: Sequence[Located]) -> dict[str, Sums]:
    """Pairs of which the edit takes no word away count nothing."""
    sums = dict[str, list[np.ndarray]]()
    for group, found, first in _documents(texts, scores):
        for d, (begin, end) in enumerate(pairwise(group.batch.word_offsets)):
            taken = taken_words(_words(group.documents[d]), _words(edited[first + d]))
            for level, values in found.levels.items():
                units = units_of(group.batch, group.z, level)
                own = slice(units.offsets[d], units.offsets[d + 1])
                of_words = units.of_word[begin:end] - units.offsets[d]
                has = np.bincount(of_words, weights=taken) > 0
                sums.setdefault(level, []).append(pair_sums(values[own], has) * bool(taken.any()))
    return {level: np.stack(rows) for level, rows in sums.items()}


def _words(document: Located) -> list[str]:
    places = zip(document.starts.tolist(), document.ends.tolist(), strict=True)
    return [document.text[start:end].lower() for start, end in places]


def _figures(rows: Sequence[Compared], figures: Mapping[str, Figure], bootstrap: Bootstrap) -> dict[str, Any]:
    """The rows as data, and by how much the default explanation of the first run is better."""
    default = min(rows, key=_from_default(rows[0].run))
    main, figure = next(iter(figures.items()))
    told = []
    for row in rows:
        less = None if row is default else bootstrap.mean(figure, default.sums, row.sums)
        told.append(
            {
                "run": row.run,
                "method": row.method,
                "level": row.level,
                "default": row is default,
                **{name: asdict(bootstrap.mean(one, row.sums)) for name, one in figures.items()},
                BETTER: None if less is None else asdict(less),
                "forward": row.forward,
                "backward": row.backward,
                "predictions": None if np.isnan(row.predictions) else row.predictions,
            }
        )
    return {"compared by": main, "rows": told}


def _from_default(run: str) -> Callable[[Compared], tuple[bool, int, int]]:
    """The first run's evidence, or else its effects by removal, of phrases: what `emhrnn explain` shows."""
    levels = ("phrase", PART, *LEVELS)
    methods = list(METHODS)
    return lambda row: (
        row.run != run,
        methods.index(row.method) if row.method in methods else len(methods),
        levels.index(row.level),
    )


def _write(out: Path, human: HumanEvidence, section: Mapping[str, Any]) -> None:
    """Sections of other sets that are there stay."""
    path = out / "rationales.json"
    sections = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    sections = {**sections, human.name: section}
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, sections)
    write_text(out / "rationales.md", "\n".join([INTRODUCTION, *map(section_markdown, sections, sections.values())]))


INTRODUCTION = """# Explanations beside human evidence

Scores of words, phrases and sentences for the predicted class, compared with what people marked. In brackets: 95 % of
bootstrap resamples of documents. *default is better by*: the difference of the first figure on the same documents, the
default explanation of the first run (bold) less this row. *Passes*: forward and backward passes of the model per
document, for all levels together. *Time*: CPU time in that of a plain prediction of the same documents.

- AUPRC: average precision of token scores, mean over documents. A token has the score of its word, phrase or sentence.
- token F1, IOU F1: of the best tokens, as many as people mark on average. IOU F1 counts spans that overlap by half of
  their union.
- sign: share of the parts that are not neutral to people where the score has the sign of the rating. rank: Spearman
  correlation with the rating, over all parts. A score is the sum over words; *removal* leaves the part out of its text,
  *alone* reads it as a text of its own.
- top k: share of the pairs where one of the k best units has a word that the edit took away or replaced.
"""


def section_markdown(name: str, section: Mapping[str, Any]) -> str:
    """One set, with how it was made."""
    lines = [f"## {name}", ""]
    lines += [f"- {key}: {section[key]}" for key in ("command", "commit", "machine", "data", "seed")]
    for one in section["runs"]:
        facts = [f"{key} {percent(value)} %" for key, value in one.items() if isinstance(value, float)]
        lines.append(f"- {one['run']}: {', '.join([one['model'], 'weights ' + one['weights'], *facts])}")
    figures = [
        key for key, value in section["rows"][0].items() if isinstance(value, dict) and not key.startswith("def")
    ]
    head = ["run", "method", "of", *figures, BETTER, "passes", "time"]
    return "\n".join(lines) + "\n\n" + markdown_table(head, [_line(row, figures) for row in section["rows"]], left=3)


def _line(row: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    names = [row["run"], row["method"], row["level"] + "s"]
    if row["default"]:
        names = [f"**{name}**" for name in names]
    less = row[BETTER]
    signed = "" if less is None else "{value:+.3f} [{low:+.3f}, {high:+.3f}]".format(**less)
    time = "" if row["predictions"] is None else f"{row['predictions']:.1f}"
    shown = ["{value:.3f} [{low:.3f}, {high:.3f}]".format(**row[name]) for name in figures]
    return [*names, *shown, signed, f"{row['forward']:.0f} + {row['backward']:.0f}", time]
