"""Texts as the estimators take them."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from emhrnn.errors import DataError

Texts = Iterable[Any]  # of strings: a list, an array, a column of a table (pandas, polars, arrow, datasets)


def checked_texts(texts: Any) -> list[str]:
    """Strings, from any sequence of them: a list, an array, a column of a table. To go through a table would be to go
    through the names of its columns."""
    if isinstance(texts, str):
        raise DataError("one string was given; give a list of texts, for example [text]")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or hasattr(texts, "column_names"):
        raise DataError("a table was given; give its column of texts, for example table['text']")
    found = listed(texts)
    if found is None:
        raise DataError(f"a {type(texts).__name__} was given; give a list of texts")
    for number, text in enumerate(found, start=1):
        if not isinstance(text, str):
            raise DataError(f"text {number} is a {type(text).__name__}; give one string per document")
    return found


def listed(values: Any) -> list[Any] | None:
    """What a sequence holds, in Python's own types; None for what is none. A set has no order, by which texts and
    labels belong together, and the letters of a string are nobody's labels."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, bytearray, Set, Mapping)):
        return None
    for ways in ("tolist", "to_pylist"):  # of arrays and pandas, of arrow
        if hasattr(values, ways):
            found = getattr(values, ways)()
            return found if isinstance(found, list) else None  # an array of no dimension is one value
    return list(values)
