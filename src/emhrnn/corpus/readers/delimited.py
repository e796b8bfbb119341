"""csv and tsv with a header. Fields may hold line ends inside quotes and may be of any size."""

import csv
from collections.abc import Iterator
from itertools import chain, filterfalse, islice
from pathlib import Path

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import open_text
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError

DELIMITERS = ",\t;|"
LENIENT_FIELD = 1 << 26
"""Characters of a field, where a quote that never ends must not fill the memory."""
LENIENT_LINES, LENIENT_BLOCK = 1 << 20, 1 << 14
"""Lines of a row, for the same reason, and after how many lines this is looked at."""


def read_csv(reading: Reading) -> Iterator[Record]:
    """The delimiter is the one of comma, tab, semicolon and bar that the header holds most of."""
    return _read(reading, delimiter=None)


def read_tsv(reading: Reading) -> Iterator[Record]:
    return _read(reading, delimiter="\t")


def rows_of(lines: Iterator[str], reading: Reading, delimiter: str, headed: bool = False) -> Iterator[list[str] | str]:
    """Rows of fields; quotes must balance, else one stray quote would silently swallow the rest of the file. A lenient
    reader gets what is wrong with the row instead, and goes on at the next line; if the first row is a header, a row of
    several lines must have as many fields."""
    csv.field_size_limit(LENIENT_FIELD if reading.lenient else 2**31 - 1)
    return _lenient_rows(lines, delimiter, headed) if reading.lenient else _strict_rows(lines, reading.path, delimiter)


def _strict_rows(lines: Iterator[str], path: Path, delimiter: str) -> Iterator[list[str]]:
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        start = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "double the quotes inside quoted fields, or give jsonl"
            raise DataError(f"{path}, {_unbalanced(start, error)}; {remedy}") from None
        yield row


def _lenient_rows(lines: Iterator[str], delimiter: str, headed: bool) -> Iterator[list[str] | str]:
    """A row that goes wrong after several lines is a fault of its first line, and the others are read again.

    Those before the last are read one by one: a quote that one of them leaves open would go wrong at the same place.
    So no line is read more than twice, however many quotes are stray.
    """
    held: list[str] = []  # the lines of the row
    rows = csv.reader(_kept(lines, held), delimiter=delimiter, strict=True)
    start, fields = 1, 0
    while True:
        held.clear()
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            fault = _unbalanced(start, error)
        else:
            if len(held) == 1 or not fields or len(row) == fields:
                yield row
                start += len(held)
                if headed and not fields:
                    fields = len(row)
                continue
            fault = f"the row from line {start} on has {len(row)} fields in {len(held)} lines, the header has {fields}"
        yield fault
        for number, line in enumerate(held[1:-1], start + 1):
            yield _row_of(line, number, delimiter)
        start += max(1, len(held) - 1)
        again = held[-1:] if len(held) > 1 else []
        rows = csv.reader(_kept(chain(again, lines), held), delimiter=delimiter, strict=True)


def _kept(lines: Iterator[str], held: list[str]) -> Iterator[str]:
    """The lines, each put into `held`, too, which is emptied between rows and may not grow without bound."""
    return chain.from_iterable(_blocks(lines, held))  # no Python per line


def _blocks(lines: Iterator[str], held: list[str]) -> Iterator[Iterator[str]]:
    for first in lines:
        block = chain([first], islice(lines, LENIENT_BLOCK - 1))
        yield filterfalse(held.append, block)  # append gives None, so every line passes
        if len(held) > LENIENT_LINES or sum(map(len, held)) > LENIENT_FIELD:
            raise csv.Error(f"over {LENIENT_FIELD} characters or {LENIENT_LINES} lines")


def _row_of(line: str, number: int, delimiter: str) -> list[str] | str:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return _unbalanced(number, error)


def _unbalanced(start: int, error: csv.Error) -> str:
    return f"the row from line {start} on has unbalanced quotes ({error})"


def _read(reading: Reading, delimiter: str | None) -> Iterator[Record]:
    with open_text(reading.path, reading.meter, newline="") as lines:
        first = next(lines, "")
        delimiter = delimiter or max(DELIMITERS, key=first.count)
        rows = rows_of(chain([first], lines), reading, delimiter, headed=True)
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
