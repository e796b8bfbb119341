"""One row of a source, as every reader yields it, before any judgement about its use."""

import json
import math
import re
from typing import Any, NamedTuple

from emhrnn.errors import DataError

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
        spans = tuple((int(start), int(end)) for start, end in (json.loads(value) if isinstance(value, str) else value))
    except (TypeError, ValueError):
        spans = ((-1, -1),)
    if any(not 0 <= start < end for start, end in spans):
        raise DataError(
            f"{where} has the spans {value!r}; give a list of [start, end) in characters, such as [[4, 17]]"
        )
    return spans
