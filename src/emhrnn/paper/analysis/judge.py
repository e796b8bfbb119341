"""Where two models disagree, for a person to judge without knowing which is which; and the votes, counted.

The documents are shuffled, and so are left and right, by the seed. The page names no model and shows no phrase: the
word in its sentence, twice. Which side is whose is in a file of its own, which `count_votes` reads when the votes are
in.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from emhrnn.errors import DataError
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.explanation import Sentence, Word, as_tuple
from emhrnn.explain.page import page
from emhrnn.paper.analysis.analysis import Analysis, Example

KEY_FORMAT = "emhrnn.judging/1"
PAGE, KEY = "judge.html", "judge-key.json"


@dataclass(frozen=True, eq=False)
class Case:
    """A disagreement; `left` is the number of the model whose word stands on the left."""

    example: Example
    left: int


@dataclass(frozen=True, eq=False)
class Judging:
    """The disagreements in the order and on the sides of the page; `identity` ties votes to it."""

    cases: list[Case]
    models: tuple[str, str]
    identity: str

    @classmethod
    def of(cls, analysis: Analysis) -> "Judging":
        generator = np.random.default_rng([analysis.seed, 1])
        found = analysis.disagreements
        order = generator.permutation(len(found)).tolist()
        cases = [Case(found[number], int(generator.integers(2))) for number in order]
        names = (analysis.models[0].name, analysis.models[1].name)
        told = [analysis.data, names, [[case.example.row, case.left, case.example.text] for case in cases]]
        return cls(cases, names, hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16])

    def key(self) -> dict[str, Any]:
        """Which side is whose."""
        sides = [{"row": case.example.row, "left": case.left, "words": self.words(case)} for case in self.cases]
        return {"format": KEY_FORMAT, "id": self.identity, "models": list(self.models), "cases": sides}

    @staticmethod
    def words(case: Case) -> list[str]:
        return [word.text for word in case.example.choices]


def judging_page(judging: Judging) -> str:
    """judge.html: every case with three radio buttons, and a script that saves the votes."""
    cases = "\n".join(_case(number, case, len(judging.cases)) for number, case in enumerate(judging.cases))
    body = f"""<header><h1>Which word says more?</h1>
<p>Two models each named the one word that tells most about a document. Choose the word that better shows why the
document has its label. Which model is on which side changes from document to document.</p>
<p class="muted js">Keys: <kbd>&larr;</kbd> left, <kbd>&rarr;</kbd> right, <kbd>&darr;</kbd> cannot say,
<kbd>&uarr;</kbd> back. Votes are kept in this browser; save them when you are done.</p>
<p class="card paper">Votes are kept by a script, which is off here. On paper: mark one of the three under each
document.</p>
<p class="js"><button type="button" id="save">Save the votes</button>
<span id="progress" role="status"></span></p></header>
<form id="cases" data-id="{escape(judging.identity)}" autocomplete="off">
{cases}
</form>"""
    asset = files("emhrnn.paper.analysis")
    style = asset.joinpath("judge.css").read_text(encoding="utf-8")
    return page(
        "Which word says more?", body, style=style, script=asset.joinpath("judge.js").read_text(encoding="utf-8")
    )


def _case(number: int, case: Case, total: int) -> str:
    example = case.example
    told = [
        _side(word, sentence, example.text) for word, sentence in zip(example.choices, example.sentences, strict=True)
    ]
    left, right = told if case.left == 0 else reversed(told)
    label = (
        ""
        if example.label is None
        else f" \u00b7 labelled <strong>{escape(', '.join(as_tuple(example.label)))}</strong>"
    )
    options = "".join(
        f'<label><input type="radio" name="{number}" value="{value}"> {shown}</label>'
        for value, shown in (("left", "\u2190 left"), ("same", "cannot say"), ("right", "right \u2192"))
    )
    return f"""<fieldset class="card case"><legend>Document {number + 1} of {total}{label}</legend>
<div class="sides"><div><p class="muted">left</p>{left}</div><div><p class="muted">right</p>{right}</div></div>
<p class="votes">{options}</p>
<details class="more"><summary>The whole document</summary>
<p class="prose" dir="auto">{escape(without_breaks(example.text))}</p></details>
</fieldset>"""


def _side(word: Word, sentence: Sentence, text: str) -> str:
    before, after = text[sentence.start : word.start], text[word.end : sentence.end]
    shown = "".join(
        (escape(without_breaks(before)), f"<mark>{escape(word.text)}</mark>", escape(without_breaks(after)))
    )
    return f'<p class="word" dir="auto">{escape(word.text)}</p><p class="prose" dir="auto">{shown}</p>'


FORMAT, VERDICT = "emhrnn.votes/1", "verdict.json"
CHOICES = ("left", "right", "same")


@dataclass(frozen=True)
class VoteCount:
    """`p`: two-sided sign test over the cases that were decided; None where none was."""

    models: tuple[str, str]
    wins: tuple[int, int]
    undecided: int  # cannot say
    open: int  # not judged yet
    p: float | None

    @property
    def winner(self) -> str | None:
        if self.wins[0] == self.wins[1]:
            return None
        return self.models[0 if self.wins[0] > self.wins[1] else 1]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "winner": self.winner}

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {wins}" for name, wins in zip(self.models, self.wins, strict=True))
        told = f"Preferred: {counts}; cannot say: {self.undecided}; not judged: {self.open}."
        if self.p is None:
            return told
        sure = "more than luck would explain" if self.p < 0.05 else "which luck could explain"
        return f"{told} Ahead: {self.winner or 'neither'}, {sure} (sign test, p = {self.p:.2g})."


def count_votes(votes: Path, folder: Path) -> VoteCount:
    """`folder` is that of the analysis, which holds the key to the sides.

    Raises:
        DataError: a file is missing, is none of ours, or belongs to another analysis.
    """
    given, key = _read(votes, FORMAT, "the file that judge.html saves"), _read(folder / KEY, KEY_FORMAT, "its key")
    if given["id"] != key["id"]:
        raise DataError(f"{votes} belongs to another page than {folder / KEY}; give the folder of its own analysis")
    cases, first, second, same = key["cases"], 0, 0, 0
    for name, choice in given["votes"].items():
        if not (name.isdecimal() and int(name) < len(cases)) or choice not in CHOICES:
            raise DataError(f"{votes}: the vote {name!r}: {choice!r} is none of this page; save the votes again")
        left = cases[int(name)]["left"]
        if choice == "same":
            same += 1
        elif (choice == "left") == (left == 0):
            first += 1
        else:
            second += 1
    decided = first + second
    p = min(1.0, 2 * float(binom.cdf(min(first, second), decided, 0.5))) if decided else None
    return VoteCount(tuple(key["models"]), (first, second), same, len(cases) - decided - same, p)


def _read(path: Path, form: str, what: str) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"{path} does not exist; give {what} (votes: --votes FILE, analysis: --out FOLDER)")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value["format"] == form and isinstance(value["id"], str) and isinstance(value.get("votes", {}), dict):
            return dict(value)
    except (ValueError, KeyError, TypeError):
        pass
    raise DataError(f"{path} is not {what}; give that")
