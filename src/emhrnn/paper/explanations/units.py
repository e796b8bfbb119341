"""`emhrnn paper units`: do learned phrases carry more of the decision than other units, at equal numbers of words?

A run of `evidence` scores words, and a unit has the sum of its words. Units are shown, best first by their score a
word, until a share of the words of the document is shown; the last unit is cut there. The scores of words are the same
for every kind of unit, so that only where units begin and end differs:

phrases     as explanations show them
every K     runs of K words, K the mean length of the phrases
words       one by one
sentences   whole

sufficiency         p - p of the shown words alone               low: they are enough
comprehensiveness   p - p without the shown words                high: they were needed
AUPRC               of the tokens of ERASER, which have the score of their unit
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import findings
from emhrnn.explain.removal import logits_without
from emhrnn.files import sha256, write_json, write_text
from emhrnn.models.evidence_reader import AddsEvidence
from emhrnn.paper.explanations.agreement import Bootstrap, Sums, share, token_sums
from emhrnn.paper.explanations.human import Highlighted, read_evidence
from emhrnn.paper.explanations.methods import ReadTexts, read_groups
from emhrnn.paper.explanations.rationales import token_scores
from emhrnn.paper.explanations.table import about_run
from emhrnn.paper.reports import making, markdown_table
from emhrnn.shapes import Bool, Float64, Int64
from emhrnn.training.run import load_run

SHARES = (0.05, 0.1, 0.2)  # of the words of a document that are shown
KINDS = ("phrases", "every K", "words", "sentences")


def compare_units(folder: Path, path: Path, out: Path, *, seed: int = 0) -> dict[str, Any]:
    """Writes units.md and units.json to `out`, and gives back the data.

    Raises:
        ConfigError: the run is of another model than evidence.
        DataError: the file is not ERASER movies.
    """
    run = load_run(folder)
    if not isinstance(run.model, AddsEvidence):
        raise ConfigError(
            f"units are compared by exact evidence, and {folder} is {run.config.model.name}; give evidence"
        )
    human = read_evidence(path)
    items = [item for item in human.items if isinstance(item, Highlighted)]
    groups = read_groups(run, [item.text for item in items])
    sums = {kind: np.concatenate([_sums(group, kind) for group in _with_items(groups, items)]) for kind in KINDS}
    bootstrap, rows = Bootstrap.of(len(items), seed), list[dict[str, Any]]()
    names = [f"{what} at {one:.0%}" for what in ("sufficiency", "comprehensiveness") for one in SHARES]
    for kind, own in sums.items():
        row: dict[str, Any] = {"units": kind}
        for column, name in enumerate([*names, "AUPRC"]):
            figure = share(column, len(names) + 1)
            row[name] = asdict(bootstrap.mean(figure, own))
            if kind != "phrases":
                row[f"{name}, phrases less these"] = asdict(bootstrap.mean(figure, sums["phrases"], own))
        rows.append(row)
    data = f"{human.name}, {human.part}: {len(items)} documents; checksum {sha256(path)[:12]}"
    made = making(data=data, seed=seed, run=about_run(run, folder), rows=rows)
    write_json(out / "units.json", made)
    write_text(out / "units.md", units_markdown(made))
    return made


Group = tuple[ReadTexts, Sequence[Highlighted]]


def _with_items(groups: Sequence[ReadTexts], items: Sequence[Highlighted]) -> list[Group]:
    ends = np.cumsum([group.batch.n_documents for group in groups]).tolist()
    return [(group, items[end - group.batch.n_documents : end]) for group, end in zip(groups, ends, strict=True)]


def _sums(group: Group, kind: str) -> Sums:
    """Of each document: falls of p, average precision, and 1."""
    texts, marked = group
    batch, run = texts.batch, texts.run
    effects = findings(run, batch).effects
    assert effects is not None
    unit = _units(texts, kind)
    scores = (np.bincount(unit, weights=effects.words) / np.bincount(unit))[unit]  # a word's: the mean of its unit
    shown = np.stack([_shown(scores, unit, batch.word_offsets, one) for one in SHARES])
    keep = np.concatenate([np.ones((1, batch.n_words), dtype=bool), shown, ~shown])
    p = run.probabilities(logits_without(run, batch, texts.z, keep)).astype(np.float64)
    chosen = np.tile(texts.chosen.numpy(), len(keep))
    values = p[np.arange(len(p)), chosen].reshape(len(keep), batch.n_documents)
    precision = []
    totals = np.bincount(unit, weights=effects.words)[unit]
    for d, (begin, end) in enumerate(pairwise(batch.word_offsets)):
        tokens = token_scores(texts.documents[d], totals[begin:end], marked[d])
        precision.append(token_sums(tokens, marked[d].marked, 0.1)[0])
    falls = (values[0] - values[1:]).T
    return np.column_stack([falls, precision, np.ones(batch.n_documents)])


def _units(texts: ReadTexts, kind: str) -> Int64[np.ndarray, " words"]:
    """The unit of each word."""
    batch, z = texts.batch, texts.z
    if kind == "words":
        return np.arange(batch.n_words)
    if kind == "sentences":
        return batch.sentence_of_word
    if kind == "phrases":
        units: np.ndarray = np.cumsum(z) - z
        return units
    length = max(round(batch.n_words / z.sum()), 1)
    place = np.arange(batch.n_words) - batch.sentence_offsets[batch.sentence_of_word]
    return np.cumsum(place % length == 0) - 1


def _shown(
    scores: Float64[np.ndarray, " words"],
    unit: Int64[np.ndarray, " words"],
    word_offsets: Int64[np.ndarray, " documents_plus_1"],
    part: float,
) -> Bool[np.ndarray, " words"]:
    """The first words in the order of their units, as many of each document as the part says."""
    shown = np.zeros(len(scores), dtype=bool)
    for begin, end in pairwise(word_offsets):
        order = np.lexsort((np.arange(begin, end), unit[begin:end], -scores[begin:end]))
        shown[begin + order[: max(round(part * (end - begin)), 1)]] = True
    return shown


def units_markdown(made: dict[str, Any]) -> str:
    """The rows, with how they were made."""
    names = [name for name in made["rows"][0] if name != "units"]
    rows, differences = [], []
    for row in made["rows"]:
        rows.append([row["units"], *("{value:.3f} [{low:.3f}, {high:.3f}]".format(**row[name]) for name in names)])
        if row["units"] != "phrases":
            less = (row[f"{name}, phrases less these"] for name in names)
            differences.append(
                [row["units"], *("{value:+.3f} [{low:+.3f}, {high:+.3f}]".format(**one) for one in less)]
            )
    facts = [f"- {key}: {made[key]}" for key in ("command", "commit", "machine", "data", "seed")]
    facts.append(f"- run: {made['run']['run']}, {made['run']['model']}, weights {made['run']['weights']}")
    return "\n".join(
        [TITLE, *facts, "", markdown_table(["units", *names], rows), "Phrases less other units:", "",
         markdown_table(["units", *names], differences)]
    )  # fmt: skip


TITLE = """# Phrases as units of explanations

The same evidence of words, shown in units: the phrases of the model, runs of as many words as a phrase has on average,
single words, sentences. Units are shown, best first by their score a word, until 5, 10 or 20 % of the words are shown.
*Sufficiency*: how far the probability falls with these words alone; lower is better. *Comprehensiveness*: how far it
falls without them; higher is better. *AUPRC*: agreement with the tokens that people marked. In brackets: 95 % of
bootstrap resamples of documents.
"""
