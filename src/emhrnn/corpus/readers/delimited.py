"""csv and tsv with a header. Fields may hold line ends inside quotes and may be of any size."""

import csv
from collections.abc import Iterator
from itertools import chain

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import open_text
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError

DELIMITERS = ",\t;|"
LENIENT_FIELD = 1 << 26
"""Characters of a field, where a quote that never ends must not fill the memory."""


def read_csv(reading: Reading) -> Iterator[Record]:
    """The delimiter is the one of comma, tab, semicolon and bar that the header holds most of."""
    return _read(reading, delimiter=None)


def read_tsv(reading: Reading) -> Iterator[Record]:
    return _read(reading, delimiter="\t")


def rows_of(lines: Iterator[str], reading: Reading, delimiter: str) -> Iterator[list[str] | str]:
    """Rows of fields; quotes must balance, else one stray quote would silently swallow the rest of the file. A lenient
    reader gets what is wrong with the row instead, and goes on at the next line."""
    csv.field_size_limit(LENIENT_FIELD if reading.lenient else 2**31 - 1)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"the row from line {start} on has unbalanced quotes ({error})"
            if reading.lenient:
                yield what
                continue
            raise DataError(f"{reading.path}, {what}; double the quotes inside quoted fields, or give jsonl") from None
        yield row


def _read(reading: Reading, delimiter: str | None) -> Iterator[Record]:
    with open_text(reading.path, reading.meter, newline="") as lines:
        first = next(lines, "")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        rows = rows_of(chain([first], lines), reading, delimiter)
        header = next(rows, [])
        if isinstance(header, str):
            raise DataError(f"{reading.path}: {header}, so it has no header; mend its first line")
        if not any(header):
            return
        columns = reading.resolve(header)
        at = {role: header.index(name) for role, name in columns.to_dict().items()}
        number = 0
        for row in rows:
            if not row:
                continue
            number += 1
            if isinstance(row, str):
                yield Record("", None, reading.where(number), fault=row)
                continue
            if len(row) != len(header):
                what = f" has {len(row)} fields, the header has {len(header)}"
                yield reading.fault(number, what, "quote fields that hold the delimiter")
                continue
            yield reading.record(number, {role: row[index] for role, index in at.items()})
