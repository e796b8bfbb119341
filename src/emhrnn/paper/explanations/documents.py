"""`emhrnn paper documents`: training data from evidence that people marked, and data without the texts of evidence."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.readers.source import Source
from emhrnn.errors import DataError
from emhrnn.files import write_text
from emhrnn.paper.explanations.human import NEGATIVE, POSITIVE, EditedPair, Highlighted, Rated, read_evidence

COMPARED = 200  # letters and digits at the start of a text


def write_marked(path: Path, part: str, out: Path, marked: int | None = None, seed: int = 0) -> int:
    """Rated parts as documents of their own, each text and label once; marked documents with their spans, or only
    so many of them, drawn with the seed. How many documents.

    Raises:
        DataError: the evidence is of pairs, or not of a known format.
    """
    rows = list[dict[str, Any]]()
    for item in read_evidence(path, part, least=1).items:
        if isinstance(item, EditedPair):
            raise DataError(
                f"{path} has edited pairs; give SST or ERASER movies, or leave its texts out with --without"
            )
        if isinstance(item, Highlighted):
            spans = item.tokens[item.marked].tolist()
            rows.append({"text": item.text, "label": item.label, "spans": spans})
        else:
            rows += _rated_rows(item)
    if marked is not None:
        for place in np.random.default_rng(seed).permutation(len(rows))[marked:].tolist():
            rows[place] = {**rows[place], "spans": []}
    return _write(out, {json.dumps(row, ensure_ascii=False): None for row in rows})


def _rated_rows(item: Rated) -> list[dict[str, str]]:
    parts = zip(item.spans.tolist(), item.ratings.tolist(), strict=True)
    names = {1: POSITIVE, -1: NEGATIVE}
    return [
        {"text": item.text[start:end], "label": names[1 if rating > 0 else -1]}
        for (start, end), rating in parts
        if rating
    ]


def write_without(data: Path, evidence: Path, out: Path) -> int:
    """The rows of the data whose text is in no split of the evidence, edited texts included. How many.

    Raises:
        DataError: one of the files cannot be read.
    """
    known = set[str]()
    for part in ("train", "dev", "test"):
        for item in read_evidence(evidence, part).items:
            known.add(_compared(item.text))
            if isinstance(item, EditedPair):
                known.add(_compared(item.edited))
    rows = (
        {"text": record.text, "label": record.label} for record in Source(data) if _compared(record.text) not in known
    )
    return _write(out, [json.dumps(row, ensure_ascii=False) for row in rows])


def _compared(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"<br\s*/?>", "", text.lower()))[:COMPARED]


def _write(out: Path, lines: Iterable[str]) -> int:
    lines = list(lines)
    write_text(out, "".join(f"{line}\n" for line in lines))
    return len(lines)
