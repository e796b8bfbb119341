"""One row of a source, as every reader yields it, before any judgement about its use; and which column is which: given
by name, else guessed from the usual names.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from emhrnn.errors import DataError
from emhrnn.files import from_json

Label = str | tuple[str, ...]
"""One class, or the set of classes of a multi-label row."""

Spans = tuple[tuple[int, int], ...]
"""[start, end) in characters of a text."""

LARGEST_WEIGHT = 1_000_000  # sums of float32 stay good

BROKEN = "broken UTF-8"  # a repair

_SURROGATE = re.compile("[\ud800-\udfff]")
_WHOLE_NUMBER = re.compile(r"[+-]?\d+\.0+")


class Where(NamedTuple):
    """A place that a user can find again: the file and its row, counted from 1 without a header."""

    file: str
    row: int

    def __str__(self) -> str:
        return f"{self.file}, row {self.row}"


class Record(NamedTuple):
    """A document and what is known of it. `sentences` is given where the source itself marks sentence ends."""

    text: str
    label: Label | None
    where: Where
    id: str | None = None
    user: str | None = None
    product: str | None = None
    split: str | None = None
    sentences: tuple[str, ...] | None = None
    repairs: tuple[str, ...] = ()
    weight: float | None = None
    spans: Spans | None = None  # characters that people marked as reasons for the label; None: there is no such column
    kept: dict[str, Any] | None = None  # all columns as they are, where `Columns.keep` asks for them
    fault: str | None = None  # why the row cannot be used; only lenient readers yield such rows


def clean_text(text: str) -> tuple[str, tuple[str, ...]]:
    """Text that can be stored, and the names of the repairs it took.

    A byte that is not UTF-8 (readers pass it on as a lone surrogate) and half of a surrogate pair become U+FFFD; NUL
    becomes a space. Both keep the number of characters.
    """
    repairs: tuple[str, ...] = ()
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
        repairs += (BROKEN,)
    if "\0" in text:
        text = text.replace("\0", " ")
        repairs += ("NUL bytes",)
    return text, repairs


def clean_label(value: Any) -> Label | None:
    """The class name of any value that a reader can meet; None where the row has no label.

    Names are strings, so that 4, 4.0 and "4" are one class in every format. Missing are: None, NaN, "" and "nan".
    """
    if isinstance(value, (list, tuple)):
        names = [name for item in value if isinstance(name := clean_label(item), str)]
        return tuple(dict.fromkeys(names))
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    name = clean_name(str(value))
    if name is None or name.lower() == "nan":
        return None
    if _WHOLE_NUMBER.fullmatch(name):
        return str(int(name.partition(".")[0]))
    return name


def clean_name(value: Any) -> str | None:
    """A label, user, product, split or id as a one-line string without outer spaces; None where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text, _ = clean_text(str(value))
    return " ".join(text.split()) or None


def clean_weight(value: Any, where: Where) -> float:
    """How often a document counts in training.

    Raises:
        DataError: it is not a number of 0 or more. A missing one is an error too, because any guess would be silent.
    """
    try:
        weight = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 <= weight <= LARGEST_WEIGHT:
        raise DataError(f"{where} has the weight {value!r}; give every row a number from 0 to {LARGEST_WEIGHT:,}")
    return weight


def clean_spans(value: Any, where: Where) -> Spans:
    """The parts of a text that people marked: a list of [start, end), or the same as JSON in a string; none where the
    cell is empty.

    Raises:
        DataError: it is anything else.
    """
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return ()
    try:
        spans = tuple((int(start), int(end)) for start, end in (from_json(value) if isinstance(value, str) else value))
    except (TypeError, ValueError):
        spans = ((-1, -1),)
    if any(not 0 <= start < end for start, end in spans):
        raise DataError(
            f"{where} has the spans {value!r}; give a list of [start, end) in characters, such as [[4, 17]]"
        )
    return spans


# The first name of each list wins whenever it is present; any two of the others are ambiguous.
USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "text": (
        "text", "review", "review_text", "reviewtext", "content", "body", "document", "comment", "sentence", "message",
        "description",
    ),
    "label": (
        "label", "labels", "stars", "star_rating", "rating", "overall", "score", "class", "sentiment", "category",
        "categories", "topic", "topics", "target", "y",
    ),
    "id": ("id", "review_id", "document_id", "doc_id", "uid", "guid"),
    "user": ("user", "user_id", "userid", "author", "reviewer", "reviewer_id", "reviewerid"),
    "product": ("product", "product_id", "productid", "business_id", "item", "item_id", "asin", "movie", "film"),
    "split": ("split", "fold", "partition", "subset"),
}  # fmt: skip
KNOWN_NAMES = {name for names in USUAL_NAMES.values() for name in names}
REQUIRED = ("text", "label")
SENTENCE_WORDS = 4  # of a name that is more like a document; questions of a survey are names


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Column names as in the file; None: guess. Without `labelled`, no label is read. The columns of weights (a
    column of that name may hold grams) and of spans, the parts of a text that people marked, are never guessed."""

    text: str | None = None
    label: str | None = None
    id: str | None = None
    user: str | None = None
    product: str | None = None
    split: str | None = None
    weight: str | None = None
    spans: str | None = None
    labelled: bool = True
    keep: bool = False  # all columns, as they are, in `Record.kept`
    trained: tuple[tuple[str, str], ...] = ()  # (role, name) in the training data: used if the file has that column

    def resolve(self, present: Sequence[str], file: str) -> "Columns":
        """The columns of one file: every name that is None is guessed, and stays None if the file has no such column.

        Raises:
            DataError: a given name is not there, a required one is not found, or several could be meant.
        """
        trained = {role: name for role, name in self.trained if name in present}
        if self.labelled and not (self.text or trained.get("text") or self.label or trained.get("label")):
            missing = [role for role in REQUIRED if not _candidates(role, present)]
            if len(missing) > 1:
                raise _not_found(missing, present, file)
        found = replace(
            self,
            text=_find("text", self.text or trained.get("text"), present, file),
            label=_find("label", self.label or trained.get("label"), present, file) if self.labelled else None,
            id=_find("id", self.id, present, file),
            user=_find("user", self.user, present, file),
            product=_find("product", self.product, present, file),
            split=_find("split", self.split, present, file),
            weight=None if self.weight is None else _find("weight", self.weight, present, file),
            spans=None if self.spans is None else _find("spans", self.spans, present, file),
        )
        for one, other in (("text", "label"), ("text", "weight"), ("label", "weight")):
            if getattr(found, one) is not None and getattr(found, one) == getattr(found, other):
                name = getattr(found, one)
                raise DataError(f"{name!r} is to be both the {one} and the {other} in {file}; give two columns")
        return found

    def to_dict(self) -> dict[str, str]:
        """The columns that are used, by role."""
        return {f.name: name for f in fields(self) if isinstance(name := getattr(self, f.name), str)}


def _find(role: str, given: str | None, present: Sequence[str], file: str) -> str | None:
    if given is not None:
        there = f"{file} has the columns {_list(present)}"
        if present.count(given) > 1:
            raise DataError(f"the {role} column {given!r} is there {present.count(given)} times: {there}; rename one")
        if given not in present:
            raise DataError(f"no {role} column {given!r}: {there}; give one of them with --{role}-column")
        return given
    candidates = _candidates(role, present)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and role not in REQUIRED:
        return None
    if not candidates:
        raise _not_found([role], present, file)
    if len(set(candidates)) == 1:
        times = len(candidates)
        raise DataError(f"the {role} column {candidates[0]!r} is there {times} times in {file}; rename one")
    which = " or ".join(map(repr, candidates))
    advice = f"name it with --{role}-column" if role in REQUIRED else f"name the one meant {USUAL_NAMES[role][0]!r}"
    raise DataError(f"the {role} column could be {which} in {file}; {advice}")


def _candidates(role: str, present: Sequence[str]) -> list[str]:
    usual = USUAL_NAMES[role]
    by_usual = {usual_name: [name for name in present if name.strip().lower() == usual_name] for usual_name in usual}
    candidates = by_usual[usual[0]] or [name for names in by_usual.values() for name in names]
    if not candidates and role in REQUIRED:  # review_body, Star Rating
        candidates = [name for name in present if re.split(r"[\W_]+", name.strip().lower())[-1] in usual]
    return candidates


def _not_found(roles: Sequence[str], present: Sequence[str], file: str) -> DataError:
    header = ""
    if any(len(name.split()) >= SENTENCE_WORDS and not name.strip().endswith("?") for name in present):
        header = ", or add a header line such as text,label: it seems to be missing"
    missing = " and no ".join(f"{role} column" for role in roles)
    options = " and ".join(f"--{role}-column" for role in roles)
    there = f"{file} has the columns {_list(present)}; give {('one', 'two')[len(roles) - 1]} of them"
    return DataError(f"no {missing} found: {there} with {options}{header}")


def _list(names: Sequence[str], most: int = 30, longest: int = 40) -> str:
    """Names for an error message; a file without header can make them as long as documents."""
    shown = [repr(name if len(name) <= longest else name[: longest - 3] + "...") for name in names[:most]]
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(names) > most else "")
