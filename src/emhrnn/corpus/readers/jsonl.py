"""JSON lines: one object a line. Blank lines are passed over; the row is the line number."""

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import open_text
from emhrnn.corpus.record import Record

HEAD_ROWS = 100
"""Rows whose keys count as the columns: an optional key may be missing from the very first."""


def read_jsonl(reading: Reading) -> Iterator[Record]:
    with open_text(reading.path, reading.meter) as lines:
        rows = _objects(reading, lines)
        first = list(islice(rows, HEAD_ROWS))
        if not first:
            return
        keys = dict.fromkeys(key for _, row in first if isinstance(row, dict) for key in row)
        columns = reading.resolve(list(keys)).to_dict()
        for number, row in chain(first, rows):
            if isinstance(row, dict):
                yield reading.record(number, {role: row.get(name) for role, name in columns.items()})
            else:
                yield row


def _objects(reading: Reading, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any] | Record]]:
    """The object of each line, or the record of its fault."""
    for number, line in enumerate(lines, start=1):
        if not line.strip("\0 \t\r\n"):
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, reading.fault(number, f" is not valid JSON ({error})", "give one JSON object a line")
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            yield number, reading.fault(number, f" is a JSON {type(value).__name__}", "give one JSON object a line")
