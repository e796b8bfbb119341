"""Votes of a person on judge.html, counted: which model's words were preferred, and could that be luck?"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy.stats import binom

from emhrnn.errors import DataError
from emhrnn.paper.analysis.judging import KEY, KEY_FORMAT

FORMAT, VERDICT = "emhrnn.votes/1", "verdict.json"
CHOICES = ("left", "right", "same")


@dataclass(frozen=True)
class Verdict:
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


def count_votes(votes: Path, folder: Path) -> Verdict:
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
    return Verdict(tuple(key["models"]), (first, second), same, len(cases) - decided - same, p)


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
