"""`emhrnn paper rationales`: runs and explanation methods beside evidence that people marked, as data and Markdown.

One call compares on one set. rationales.json keeps a section for each set, rationales.md shows all of them.
"""

import json
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.explain.arrays import nearby
from emhrnn.explain.removal import units_of
from emhrnn.files import sha256, write_json, write_text
from emhrnn.paper.explanations.agreement import (
    PAIR_FIGURES,
    PART_FIGURES,
    TOKEN_FIGURES,
    Figure,
    Sums,
    pair_sums,
    part_sums,
    taken_words,
    token_sums,
)
from emhrnn.paper.explanations.human import POSITIVE, EditedPair, Highlighted, Item, Rated, read_evidence
from emhrnn.paper.explanations.methods import ALONE, ReadTexts, UnitScores, prediction_seconds, read_groups
from emhrnn.paper.explanations.table import (
    HOW_TO_READ,
    NEARBY,
    PART,
    SLOW,
    SUMS,
    USUAL,
    Measure,
    MethodRow,
    about_run,
    as_section,
    check_methods,
    method_rows,
    section_markdown,
    summary_markdown,
)
from emhrnn.paper.reports import percent
from emhrnn.shapes import Bool, Float64, Int64
from emhrnn.text import Located
from emhrnn.training.run import Run, load_run

POSITIVE_NAMES = ("pos", "positive", "1", "good")


def compare_rationales(
    folders: Sequence[Path],
    path: Path,
    out: Path,
    *,
    part: str | None = None,
    positive: str | None = None,
    methods: Sequence[str] = (*USUAL, ALONE),
    documents: int | None = None,
    seed: int = 0,
    section: str | None = None,
) -> dict[str, Any]:
    """Writes the section of this set, or of this name, into rationales.json and rationales.md of `out`, and gives it
    back. `documents` limits how many are drawn; None: all.

    Raises:
        DataError: the file is of none of the known formats.
        ConfigError: a run has no positive and negative class, or a method is unknown.
    """
    check_methods(methods, documents)
    human = read_evidence(path, part)
    items = _drawn(human.items, documents, seed)
    rows, about, plain = list[MethodRow](), list[dict[str, Any]](), 0.0
    for folder in folders:
        run = load_run(folder)
        good = positive_class(run, positive)
        texts = read_groups(run, [item.text for item in items])
        plain = plain or prediction_seconds(texts)
        allowed = [name for name in methods if folder is folders[0] or name not in SLOW]
        rows += _run_rows(run, folder.name, texts, items, good, allowed, seed)
        chosen = np.concatenate([group.chosen.numpy() for group in texts])
        about.append({**about_run(run, folder), **_predictions(run, items, chosen == good, good)})
    data = f"{human.name}, {human.part}: {_told(items, len(human.items))}; checksum {sha256(path)[:12]}"
    made = as_section(rows, _figures_of(items[0]), about, plain=plain, data=data, seed=seed)
    _write(out, section or human.name, made)
    return made


def positive_class(run: Run, given: str | None) -> int:
    """The class that is good news: the given one, or the one whose name says so."""
    named = [c for c, name in enumerate(run.classes) if name == given or (not given and name in POSITIVE_NAMES)]
    if len(run.classes) != 2 or run.multi_label or len(named) != 1:
        raise ConfigError(
            f"human evidence is positive or negative, and the run has the classes {list(run.classes)}; give a run with "
            "two classes, and --positive with the name of the positive one"
        )
    return named[0]


def _drawn(items: Sequence[Item], documents: int | None, seed: int) -> Sequence[Item]:
    usable = [item for item in items if not isinstance(item, Rated) or len(item.ratings)]
    if documents is None or documents >= len(usable):
        return usable
    places = np.random.default_rng(seed).choice(len(usable), documents, replace=False)
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
    run: Run,
    name: str,
    texts: Sequence[ReadTexts],
    items: Sequence[Item],
    positive: int,
    methods: Sequence[str],
    seed: int,
) -> list[MethodRow]:
    """Rated parts are left out themselves, or read alone: units of the model are not the parts."""
    by_parts = [name for name in methods if name in (ALONE, "removal")] if isinstance(items[0], Rated) else []
    by_units = [name for name in methods if name not in (ALONE, *by_parts)]
    rows = method_rows(name, texts, by_units, _measure(run, items, positive), seed)
    return rows + [_really_removed(name, method, texts, items, positive) for method in by_parts]


def _predictions(run: Run, items: Sequence[Item], positive: Bool[np.ndarray, " items"], good: int) -> dict[str, Any]:
    """Accuracy where labels are known; of pairs, also of the edited texts, and whether the prediction flips."""
    labels = [item.label for item in items if not isinstance(item, Rated)]
    if not labels:
        return {}
    right = positive == (np.array(labels) == POSITIVE)
    edited = [item.edited for item in items if isinstance(item, EditedPair)]
    if not edited:
        return {"accuracy": float(right.mean())}
    after = np.concatenate([group.chosen.numpy() for group in read_groups(run, edited)])
    flips = positive != (after == good)
    return {
        "accuracy": float(right.mean()),
        "accuracy, edited": float(np.where(flips, right, ~right).mean()),
        "flips": float(flips.mean()),
        "both right": float((right & flips).mean()),
    }


def _measure(run: Run, items: Sequence[Item], positive: int) -> Measure:
    if isinstance(items[0], Highlighted):
        return lambda texts, scores: _by_tokens(texts, scores, items)
    if isinstance(items[0], Rated):
        return lambda texts, scores: _by_parts(texts, scores, items, positive)
    edited, _ = run.encoder.locate([item.edited for item in items if isinstance(item, EditedPair)])
    return lambda texts, scores: _by_pairs(texts, scores, edited)


def _by_tokens(texts: Sequence[ReadTexts], scores: Sequence[UnitScores], items: Sequence[Item]) -> dict[str, Sums]:
    rate, sums = _rate(items), dict[str, list[np.ndarray]]()
    for group, found, first in _documents(texts, scores):
        by_level = {
            level: values[units_of(group.batch, group.z, level).of_word] for level, values in found.levels.items()
        }
        for both in SUMS:
            if by_level.keys() >= (two := set(both.split(" + "))):
                by_level[both] = sum((by_level[level] for level in two), np.zeros(group.batch.n_words))
        by_level[NEARBY] = nearby(_words_of(group, found), group.batch.sentence_of_word)
        for level, of_words in by_level.items():
            for d, (begin, end) in enumerate(pairwise(group.batch.word_offsets)):
                item = items[first + d]
                assert isinstance(item, Highlighted)
                tokens = token_scores(group.documents[d], of_words[begin:end], item)
                sums.setdefault(level, []).append(token_sums(tokens, item.marked, rate))
    return {level: np.stack(rows) for level, rows in sums.items()}


def _words_of(group: ReadTexts, found: UnitScores) -> Float64[np.ndarray, " words"]:
    """The scores of words. Of a method that has none, the words of a phrase share its score evenly."""
    if "word" in found.levels:
        return found.levels["word"]
    phrase = units_of(group.batch, group.z, "phrase").of_word
    shares: np.ndarray = (found.levels["phrase"] / np.bincount(phrase))[phrase]
    return shares


def _documents(texts: Sequence[ReadTexts], scores: Sequence[UnitScores]) -> list[tuple[ReadTexts, UnitScores, int]]:
    """Each batch, its scores, and the number of its first document."""
    firsts = np.cumsum([0, *(group.batch.n_documents for group in texts)]).tolist()
    return list(zip(texts, scores, firsts[:-1], strict=True))


def token_scores(
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
) -> MethodRow:
    """Each rated part left out of its text, or read alone."""
    values, passes, first, begin = [], 0, 0, time.process_time()
    for group in texts:
        for d in range(group.batch.n_documents):
            places = _places(group.documents[d], items[first + d])
            odds = group.odds_without(d, places, alone=method == ALONE)
            gain = odds - group.odds_of_nothing(d) if method == ALONE else group.odds[d] - odds
            gain[places[:, 0] == places[:, 1]] = 0.0  # nothing that the run reads
            values.append(_sign(group, d, positive) * gain)
            passes += len(places) + 1
        first += group.batch.n_documents
    seconds = time.process_time() - begin
    return MethodRow(name, method, PART, _rated_sums(values, items), passes / len(items), 0.0, seconds)


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


def _write(out: Path, name: str, section: Mapping[str, Any]) -> None:
    """Sections of other sets that are there stay."""
    path = out / "rationales.json"
    sections = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    sections = {**sections, name: section}
    out.mkdir(parents=True, exist_ok=True)
    write_json(path, sections)
    summaries = map(summary_markdown, sections, sections.values())
    details = map(section_markdown, sections, sections.values())
    write_text(out / "rationales.md", "\n".join([INTRODUCTION, *summaries, ALL_ROWS, *details]))


INTRODUCTION = f"""# Explanations beside human evidence

Scores for the predicted class, compared with what people marked. **Bold** is our default explanation. The first part
shows each run and method with its best level (words, phrases, sentences, or two of them), and added up around each
word. [All rows](#all-rows) follow, with the commands.

{HOW_TO_READ}
- AUPRC: average precision of token scores, mean over documents. A token has the score of its word, phrase or sentence;
  *phrases + sentences* is the sum of two of them. *nearby words*: the positive scores of the words around a token in
  its sentence, by nearness (`nearby` of `emhrnn explain --json`). It was chosen on ERASER's training split, with what
  people marked there, and is open to all methods.
- token F1, IOU F1: of the best tokens, as many as people mark on average. IOU F1 counts spans that overlap by half of
  their union.
- sign: share of the parts that are not neutral to people where the score has the sign of the rating. rank: Spearman
  correlation with the rating, over all parts. A score is the sum over words; *removal* leaves the part out of its text,
  *alone* reads it as a text of its own.
- top k: share of the pairs where one of the k best units has a word that the edit took away or replaced.
"""
ALL_ROWS = """# All rows
"""
