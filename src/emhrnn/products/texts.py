"""Texts as the estimators take them."""

from collections.abc import Iterable, Mapping
from typing import Any

from emhrnn.errors import DataError

Texts = Iterable[Any]  # of strings: a list, an array, a column of a table (pandas, polars, datasets)


def checked_texts(texts: Any) -> list[str]:
    """Strings, from any sequence of them: a list, an array, a column of a table. To go through a table would be to go
    through the names of its columns."""
    if isinstance(texts, str):
        raise DataError("one string was given; give a list of texts, for example [text]")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or hasattr(texts, "column_names"):
        raise DataError("a table was given; give its column of texts, for example table['text']")
    if not isinstance(texts, Iterable):
        raise DataError(f"a {type(texts).__name__} was given; give a list of texts")
    listed = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for number, text in enumerate(listed, start=1):
        if not isinstance(text, str):
            raise DataError(f"text {number} is a {type(text).__name__}; give one string per document")
    return listed
