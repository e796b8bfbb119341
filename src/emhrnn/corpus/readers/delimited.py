"""csv and tsv with a header. Fields may hold line ends inside quotes and may be of any size."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import open_text
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError

DELIMITERS = ",\t;|"


def read_csv(reading: Reading) -> Iterator[Record]:
    """The delimiter is the one of comma, tab, semicolon and bar that the header holds most of."""
    return _read(reading, delimiter=None)


def read_tsv(reading: Reading) -> Iterator[Record]:
    return _read(reading, delimiter="\t")


def rows_of(lines: Iterator[str], path: Path, delimiter: str) -> Iterator[list[str]]:
    """Rows of fields; quotes must balance, else one stray quote would silently swallow the rest of the file."""
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(
                f"{path}, the row from line {start} on has unbalanced quotes ({error}); "
                "double the quotes inside quoted fields, or give jsonl"
            ) from None
        yield row


def _read(reading: Reading, delimiter: str | None) -> Iterator[Record]:
    with open_text(reading.path, reading.meter, newline="") as lines:
        first = next(lines, "")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        rows = rows_of(chain([first], lines), reading.path, delimiter)
        header = next(rows, [])
        if not any(header):
            return
        columns = reading.resolve(header)
        at = {role: header.index(name) for role, name in columns.to_dict().items()}
        number = 0
        for row in rows:
            if not row:
                continue
            number += 1
            if len(row) != len(header):
                raise DataError(
                    f"{reading.where(number)} has {len(row)} fields, the header has {len(header)}; "
                    "quote fields that hold the delimiter"
                )
            yield reading.record(number, {role: row[index] for role, index in at.items()})
