r"""Formats that are text or tables: csv and tsv, JSON, Excel, a folder per class, and two of published data sets.

csv, tsv      with a header, also after titles or Excel's line `sep=;`; fields of any size, with line ends inside quotes
jsonl         one object a line; blank lines are passed over; the row is the line number. Or one array of objects
xlsx          the first sheet of an Excel workbook, with a header, also after titles
folder        `reviews/good/17.txt` is a document of the class `good`, and its id is `good/17.txt`
tang          `.ss` files of Tang, Qin and Liu (2015): user, product, rating and text, with two tabs between them. The
              text is tokenised and its sentences end with `<sssss>`; these ends are kept. Brackets that
              the Penn Treebank tokeniser wrote as -lrb- are brackets again, as they are in every other text
zhang         headerless csv of Zhang, Zhao and LeCun (2015): "class","title","text", or any number of text fields. Line
              ends inside a field are written as a backslash and an n. The text fields become one text, each its own
              paragraph
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain, filterfalse, islice
from pathlib import Path
from typing import Any

from emhrnn.corpus.readers.input import InputFile, decode, explain_damage
from emhrnn.corpus.record import KNOWN_NAMES, Columns, Record, clean_text
from emhrnn.errors import DataError
from emhrnn.extras import need
from emhrnn.files import from_json

DELIMITERS = ",\t;|"
TITLES, LONGEST_HEADER = 20, 10_000  # lines above a header; characters of it that are looked at
_DELIMITER_LINE = re.compile('"?sep=(.?)"?', re.IGNORECASE)
LENIENT_FIELD = 1 << 26
"""Characters of a field, where a quote that never ends must not fill the memory."""
LENIENT_LINES, LENIENT_BLOCK = 1 << 20, 1 << 14
"""Lines of a row, for the same reason, and after how many lines this is looked at."""


def read_csv(reading: InputFile) -> Iterator[Record]:
    """The delimiter is the one of comma, tab, semicolon and bar that the header holds most of; titles above the header
    are passed over."""
    return _read(reading, delimiter=None)


def read_tsv(reading: InputFile) -> Iterator[Record]:
    """As `read_csv`, with tabs."""
    return _read(reading, delimiter="\t")


def rows_of(
    lines: Iterator[str], reading: InputFile, delimiter: str, headed: bool = False
) -> Iterator[list[str] | str]:
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


def _read(reading: InputFile, delimiter: str | None) -> Iterator[Record]:
    with reading.open_text(newline="") as lines:
        first = list(islice(lines, TITLES + 1))
        if first and (named := _DELIMITER_LINE.fullmatch(first[0].strip())):  # Excel's line that names the delimiter
            delimiter, first[0] = named[1] or "\t", "\n"
        cells = [_split(line, delimiter or _delimiter_of(line)) for line in first]
        above = titles(cells, reading.columns)
        delimiter = delimiter or _delimiter_of("".join(first[above : above + 1]))
        blank = ["\n"] * above  # so that faults name the right line
        rows = rows_of(chain(blank, first[above:], lines), reading, delimiter, headed=True)
        yield from table_records(rows, reading)


def _delimiter_of(line: str) -> str:
    return max(DELIMITERS, key=line.count)


def _split(line: str, delimiter: str) -> list[str]:
    """The cells at the beginning of a line; one that ends inside quotes, which no title does, counts as several."""
    return [line] * 2 if line.count('"') % 2 else line[:LONGEST_HEADER].split(delimiter)


def titles(rows: Sequence[Sequence[str]], columns: Columns) -> int:
    """How many of the first rows stand above the header: those with one cell or none, if the next has several. The name
    of a column is no title."""
    names = {*columns.to_dict().values(), *(name for _, name in columns.trained)}
    for number, row in enumerate(rows):
        cells = [text for cell in row if (text := cell.strip(' "\r\n'))]
        if len(cells) > 1:
            return number
        if any(cell in names or cell.lower() in KNOWN_NAMES for cell in cells):
            break
    return 0


def table_records(rows: Iterator[list[Any] | str], reading: InputFile) -> Iterator[Record]:
    """The records of a table whose first row that is not empty is a header. A row that is a string is one with this
    fault."""
    header = next((row for row in rows if row), [])
    if isinstance(header, str):
        raise DataError(f"{reading.path}: {header}, so it has no header; fix its first line")
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
        elif len(row) != len(header):
            what = f" has {len(row)} fields, the header has {len(header)}"
            yield reading.fault(number, what, "quote fields that hold the delimiter")
        else:
            values = {role: row[index] for role, index in at.items()}
            yield reading.record(number, values, kept=dict(zip(header, row, strict=True)) if columns.keep else None)


def read_xlsx(reading: InputFile) -> Iterator[Record]:
    """The rows of the first sheet of an Excel workbook."""
    need("openpyxl", "reading .xlsx", "xlsx")
    from openpyxl import load_workbook

    size = reading.path.stat().st_size
    with explain_damage(reading.path), reading.meter.file(size, lambda: 0):
        try:
            book = load_workbook(reading.path, read_only=True, data_only=True)
        except (AttributeError, KeyError, ValueError) as error:  # the first of a sheet that is only a chart
            raise DataError(
                f"{reading.path} is not a readable .xlsx file ({error}); save it again, or as csv"
            ) from None
        with closing(book):
            if not book.worksheets:
                raise DataError(f"{reading.path} has no sheet with cells; save it again, or as csv")
            yield from table_records(_sheet_rows(book.worksheets[0], reading.columns), reading)


def archive_bytes(path: Path) -> Iterator[int]:
    """What an .xlsx file is when nothing in it is compressed; no part of it can be unpacked to more than it says."""
    with explain_damage(path), zipfile.ZipFile(path) as archive:
        yield sum(part.file_size for part in archive.infolist())


def _sheet_rows(sheet: Any, columns: Columns) -> Iterator[list[Any]]:
    """Cells as csv has them: empty ones are "", trailing empty columns, empty rows and titles are left out."""
    rows = (["" if cell is None else cell for cell in row] for row in sheet.iter_rows(values_only=True))
    first = list(islice(rows, TITLES + 1))
    above = titles([list(map(str, row)) for row in first], columns)
    width = 0
    for cells in chain(first[above:], rows):
        if not width:  # the header
            width = max((index + 1 for index, cell in enumerate(cells) if cell != ""), default=0)
            cells = [str(cell).strip() for cell in cells]
        if any(cell != "" for cell in cells[:width]):
            yield [str(cell) if isinstance(cell, int) else cell for cell in cells[:width]]


_JSON_BLANKS = "\0 \t\r\n"
_AFTER_ELEMENT = re.compile(r"[\s,]*")
ARRAY_CHARACTERS = 1 << 16  # of a JSON array, read at a time
HEAD_ROWS = 100
"""Rows whose keys count as the columns: an optional key may be missing from the very first."""


def read_jsonl(reading: InputFile) -> Iterator[Record]:
    """The columns are the keys of the first HEAD_ROWS objects."""
    with reading.open_text() as lines:
        rows = _objects(reading, lines)
        first = list(islice(rows, HEAD_ROWS))
        if not first:
            return
        keys = dict.fromkeys(key for _, row in first if isinstance(row, dict) for key in row)
        columns = reading.resolve(list(keys)).to_dict()
        for number, row in chain(first, rows):
            if isinstance(row, dict):
                yield reading.record(number, {role: row.get(name) for role, name in columns.items()}, kept=row)
            else:
                yield row


def _objects(reading: InputFile, lines: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any] | Record]]:
    """The object of each line, or of each element of a JSON array; or the record of its fault."""
    remedy = "give one JSON object a line, or an array of objects"
    for number, value in _values(lines):
        if isinstance(value, dict):
            yield number, value
        elif isinstance(value, Exception):
            yield number, reading.fault(number, f" is not valid JSON ({value})", remedy)
        else:
            yield number, reading.fault(number, f" is a JSON {type(value).__name__}", remedy)


def _values(lines: io.TextIOWrapper) -> Iterator[tuple[int, Any]]:
    """The JSON value of each line or array element, by its number from 1; an exception where it cannot be parsed."""
    start = lines.read(1)
    while start and not start.strip(_JSON_BLANKS):
        start += lines.read(1)
        if start[-1:] not in _JSON_BLANKS:
            break
    if start.endswith("["):
        yield from _elements(lines)
        return
    first = (start + lines.readline()).removesuffix("\n").split("\n")
    for number, line in enumerate(chain(first, lines), start=1):
        if line.strip(_JSON_BLANKS):
            try:
                yield number, from_json(line)
            except ValueError as error:
                yield number, error


def _elements(lines: io.TextIOWrapper) -> Iterator[tuple[int, Any]]:
    """What follows the `[` of a JSON array, parsed one by one, so that memory does not grow with their number."""
    decoder, text, position, number = json.JSONDecoder(), "", 0, 1
    while True:
        position = _AFTER_ELEMENT.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing, too
        if text.startswith("]", position):
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            more = lines.read(max(ARRAY_CHARACTERS, len(text) - position))  # at least doubled: parsing stays linear
            if not more:
                yield number, error
                return
            text, position = text[position:] + more, 0
            continue
        yield number, value
        number += 1


def class_files(folder: Path) -> list[Path]:
    """The documents, class by class in the order of their names; hidden files and loose files are passed over."""
    files = []
    for class_folder in sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")):
        texts = sorted(path for path in class_folder.glob("*.txt") if not path.name.startswith("."))
        if not texts:
            raise DataError(
                f"{class_folder} holds no .txt file; give a folder whose every folder is a class with .txt documents"
            )
        files += texts
    return files


def read_class_folders(reading: InputFile) -> Iterator[Record]:
    """Every file is a row 1 of its own."""
    reading.taken.update(text="file", label="folder")
    for path in class_files(reading.path):
        size = path.stat().st_size
        with explain_damage(path), reading.meter.file(size, lambda: 0):
            text = decode(path.read_bytes(), reading.encoding)
        record = reading.record(1, {"text": text, "label": path.parent.name, "id": f"{path.parent.name}/{path.name}"})
        yield record._replace(where=record.where._replace(file=str(path)))


SENTENCE_END = "<sssss>"
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
_BRACKET = re.compile("|".join(_BRACKETS), re.IGNORECASE)


def read_tang(reading: InputFile) -> Iterator[Record]:
    """The rows of an `.ss` file."""
    with reading.open_text() as lines:
        reading.taken.update(user="field 1", product="field 2", label="field 3", text="field 4")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            fields = line.rstrip("\r\n").split("\t\t", 3)
            if len(fields) != 4:
                remedy = "give user, product, rating and text with two tabs between them"
                yield reading.fault(number, f" has {len(fields)} fields", remedy)
                continue
            user, product, label, text = fields
            text = _BRACKET.sub(lambda match: _BRACKETS[match[0].lower()], text)
            sentences = tuple(s for part in text.split(SENTENCE_END) if (s := clean_text(part)[0].strip()))
            values = {"text": text.replace(SENTENCE_END, " "), "label": label, "user": user, "product": product}
            yield reading.record(number, values, sentences)


_ESCAPE = re.compile(r'\\([n"\\])')


def read_zhang(reading: InputFile) -> Iterator[Record]:
    """The rows of a headerless csv."""
    with reading.open_text(newline="") as lines:
        reading.taken.update(text="fields 2 and on", label="field 1")
        number = 0
        for row in rows_of(lines, reading, ","):
            if not row:
                continue
            number += 1
            if isinstance(row, str):
                yield Record("", None, reading.where(number), fault=row)
                continue
            if len(row) < 2 or not row[0].strip().lstrip("-").isdecimal():
                yield reading.fault(number, ' is not "class number","text"...', "give the format if it has a header")
                continue
            fields = [_ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], field) for field in row[1:]]
            text = "\n\n".join(field for field in fields if field.strip())
            yield reading.record(number, {"text": text, "label": row[0]})
