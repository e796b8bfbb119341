"""Tables and JSON as people have them. A stray quote costs a lenient reader one row, never the rows after it."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.corpus import Columns, Source
from emhrnn.corpus.readers import text_formats
from emhrnn.corpus.readers.input import InputFile
from emhrnn.corpus.readers.text_formats import archive_bytes
from emhrnn.errors import DataError, ExtraError

LINE = st.text(alphabet='ab",', max_size=8)


def read(path: Path, content: str, **options: str) -> list[str | None]:
    """The text of each row, or None where it has a fault; rows are numbered without gaps."""
    path.write_text(content, newline="")
    source = Source(path, columns=Columns(labelled=False), lenient=True, **options)
    records = list(source)
    assert [record.where.row for record in records] == [*range(1, len(records) + 1)]
    assert source.meter.done == source.meter.total
    return [None if record.fault else record.text for record in records]


def faults(path: Path) -> list[str]:
    return [record.fault for record in Source(path, columns=Columns(labelled=False), lenient=True) if record.fault]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Bounds can be made small, also that of the csv module, which is for all of the process."""
    limit = csv.field_size_limit()
    yield monkeypatch
    csv.field_size_limit(limit)


def test_a_quote_that_never_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    content = 'text,label\nfoo good,1\n"open quote here,2\nsecond row,3\n\nthird row,4\nfourth row,5\n'
    assert read(path, content) == ["foo good", None, "second row", "third row", "fourth row"]
    assert faults(path) == ["the row from line 3 on has unbalanced quotes (unexpected end of data)"]
    assert read(path, content.replace("\n", "\r\n")) == ["foo good", None, "second row", "third row", "fourth row"]


def test_a_quote_in_the_last_row(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv", 'text,label\na,1\nb,2\n"c,3') == ["a", "b", None]
    assert read(tmp_path / "a.csv", 'text,label\na,1\nb,2\nc,"') == ["a", "b", None]


def test_a_quote_that_a_later_field_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    content = 'text,label\nfoo,1\n"open,2\nsecond,3\n"third, row",4\nfourth,5\n'
    assert read(path, content) == ["foo", None, "second", "third, row", "fourth"]
    assert read(path, content.replace('"third, row"', '"third,\nrow"')) == [
        "foo", None, "second", "third,\nrow", "fourth",
    ]  # fmt: skip


def test_a_field_that_swallowed_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert read(path, 'label,text\n1,"open\n2,second\n3,third"\n4,fourth\n') == ["open\n2,second\n3,third", "fourth"]
    assert read(path, 'text,label\n"open,1\nsecond,2\nthird,"\n') == [None, "second", None]
    assert faults(path)[0] == "the row from line 2 on has 1 fields in 3 lines, the header has 2"
    assert read(path, 'text,label\n"open,1\nsecond,2\n3,"\nlabel"\n4,5\n') == [None, "second", "3", "4"]


def test_several_stray_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f'"stray {number},1' if number % 3 == 1 else f"good {number},1" for number in range(3000)]
    expected = [None if row.startswith('"') else row[:-2] for row in rows]
    assert read(path, "\n".join(["text,label", *rows]) + "\n") == expected
    lines = [number for number, row in enumerate(rows, 2) if row.startswith('"')]
    assert [line_of(fault) for fault in faults(path)] == lines


def test_no_line_is_read_over_and_over(tmp_path: Path) -> None:
    """Each of these lines leaves a quote open that no other ends: reading all the rest for each would take minutes."""
    assert read(tmp_path / "a.csv", "text,label\n" + 'x","y\n' * 20_000 + "z,1\n") == [None] * 20_000 + ["z"]


def test_good_fields_of_several_lines(tmp_path: Path) -> None:
    texts = ["one\ntwo", "", 'He said "no",\n\nthen\r\nleft', "three", "\n", '"\n"', "a\n,1\nb,2\n"]
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["text", "label"], *([text, "1"] for text in texts)])
    assert read(tmp_path / "a.csv", out.getvalue()) == texts
    stray = out.getvalue().replace("three,1", '"three,1')
    assert read(tmp_path / "a.csv", stray) == [*texts[:3], None, *texts[4:]]


def test_tsv(tmp_path: Path) -> None:
    content = 'text\tlabel\na\t1\n"open\t2\nsecond\t3\n"two\nlines"\t4\n"last\t5\nfourth\t6\n'
    assert read(tmp_path / "a.tsv", content) == ["a", None, "second", "two\nlines", None, "fourth"]


def test_zhang(tmp_path: Path) -> None:
    content = '"1","good"\n"2","open\n"1","second"\n"2","third"\n'
    assert read(tmp_path / "a.csv", content, format="zhang") == ["good", None, "second", "third"]


def test_a_stray_quote_in_the_header(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"from line 1 on has unbalanced quotes .* so it has no header"):
        read(tmp_path / "a.csv", '"text,label\na,1\nb,2\n')


def test_what_is_held_is_bounded(tmp_path: Path, small: pytest.MonkeyPatch) -> None:
    content = 'text,label\n"open,1\n' + "good,1\n" * 500 + '"two\nlines",1\n'
    expected = [None, *["good"] * 500, "two\nlines"]
    small.setattr(text_formats, "LENIENT_FIELD", 100)
    assert read(tmp_path / "a.csv", content) == expected
    assert "field larger than field limit (100)" in faults(tmp_path / "a.csv")[0]
    small.setattr(text_formats, "LENIENT_FIELD", 1 << 20)
    small.setattr(text_formats, "LENIENT_LINES", 50)
    small.setattr(text_formats, "LENIENT_BLOCK", 8)
    assert read(tmp_path / "a.csv", content) == expected
    assert "(over 1048576 characters or 50 lines)" in faults(tmp_path / "a.csv")[0]


@given(st.lists(LINE, max_size=12), st.booleans())
def test_rows_are_as_if_the_file_were_read_anew_after_each_fault(lines: list[str], headed: bool) -> None:
    text = [f"{line}\n" for line in ["ab,a", *lines]]
    found = text_formats.rows_of(iter(text), InputFile(Path("a.csv"), lenient=True), ",", headed)
    assert [line_of(row) if isinstance(row, str) else row for row in found] == slow_rows(text, 2 if headed else 0)


def line_of(fault: str) -> int:
    return int(fault.split()[4])


def slow_rows(text: list[str], fields: int) -> list[list[str] | int]:
    """Rows, or the lines of faults, where all the rest of the file is read again from the line after each fault."""
    rows: list[list[str] | int] = []
    at = single = 0  # lines before `single` were in a row with the wrong number of fields: each is a row or a fault
    while at < len(text):
        reader = csv.reader(text[at:], strict=True)
        try:
            row = next(reader)
        except csv.Error:
            row = None
        end = at + reader.line_num
        several = row is not None and end > at + 1
        if several and fields and len(row or []) != fields:
            single = max(single, end - 1)
            row = None
        if row is None or (several and at < single):
            rows.append(at + 1)
            at += 1
        else:
            rows.append(row)
            at = end
    return rows


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;"])
def test_the_line_of_excel_that_names_the_delimiter(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f'\ufeff{line}\r\ntext;label\r\n"a, b, c";"x\ny"\r\n'.encode())
    assert [(r.text, r.label) for r in Source(path)] == [("a, b, c", "x y")]


TITLES = ["Reviews of 2025", 'The "Golden" Inn;;', ";;", "", "sep=;\n\nReviews, all of them;;"]


@pytest.mark.parametrize("title", [*TITLES, "\n".join(TITLES[:4])])
def test_titles_above_a_header_are_passed_over(tmp_path: Path, title: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{title}\ntext;label;id\na, b, c;x;1\nd;y;2\n")
    assert [(r.text, r.label, r.where.row) for r in Source(path)] == [("a, b, c", "x", 1), ("d", "y", 2)]
    path.write_text(f'{title}\n"text";label;"the\nid"\na, b;x;1\n')
    assert [(r.text, r.label) for r in Source(path)] == [("a, b", "x")]
    path.write_text(f'{title}\ntext;label;id\na "b;x;1\n"c')
    with pytest.raises(DataError, match=f"line {title.count(chr(10)) + 4} on"):
        list(Source(path))


@pytest.mark.parametrize("header", ["text", "TEXT", "opinion", '"long\nopinion"'])
def test_one_column_has_no_titles(tmp_path: Path, header: str) -> None:
    path, name = tmp_path / "a.csv", header.strip('"')
    path.write_text(f"{header}\ngood\n\nbad\n")
    assert [r.text for r in Source(path, columns=Columns(text=name, labelled=False))] == ["good", "bad"]
    path.write_text(f"{header}\ngood, but loud\n")
    with pytest.raises(DataError, match="has 2 fields, the header has 1"):
        list(Source(path, columns=Columns(text=name, labelled=False)))


def test_line_ends_inside_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'text,label\r\n"one\r\ntwo\n\nthree",x\r\nfour,y\r\n')
    assert [(r.text, r.label) for r in Source(path)] == [("one\r\ntwo\n\nthree", "x"), ("four", "y")]


ARRAY = [{"text": f"text {i} [,]" * (1 + i), "label": i % 2} for i in range(300)]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a"])
def test_a_json_array(tmp_path: Path, name: str, indent: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_formats, "ARRAY_CHARACTERS", 100)
    (tmp_path / name).write_text("\n " + json.dumps(ARRAY, indent=indent))
    found = list(Source(tmp_path / name))
    assert [(r.text, r.label) for r in found] == [(row["text"], str(row["label"])) for row in ARRAY]
    assert [r.where.row for r in found] == list(range(1, 301))


def test_a_json_array_that_ends_early_or_holds_other_things(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content, told in (
        (json.dumps(ARRAY)[:-1], "row 301 is not valid JSON"),
        (json.dumps(ARRAY)[:-30], "row 300 is not valid JSON"),
        (json.dumps([*ARRAY, 5]), "row 301 is a JSON int"),
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=told):
            list(Source(path))
    path.write_text("[]")
    assert list(Source(path)) == []


def write_xlsx(path: Path, rows: list[list[object]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra: xlsx")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("another").append(["not", "read"])
    book.save(path)
    return path


def test_titles_of_xlsx(tmp_path: Path) -> None:
    rows: list[list[object]] = [["Reviews"], [], [None, 2025], ["text", "label"], ["one", "a"], ["two", "b"]]
    assert [(r.text, r.label) for r in Source(write_xlsx(tmp_path / "a.xlsx", rows))] == [("one", "a"), ("two", "b")]


def test_xlsx(tmp_path: Path) -> None:
    rows = [
        ["text", "label", "id"],
        ["Größe\nM", 1, "a"],
        [None, None, None],
        ["zwei", 2.0, 7],
        ["drei", None, "c"],
    ]
    found = list(Source(write_xlsx(tmp_path / "a.xlsx", rows)))
    assert [(r.text, r.label, r.id) for r in found] == [
        ("Größe\nM", "1", "a"),
        ("zwei", "2", "7"),
        ("drei", None, "c"),
    ]


def test_broken_xlsx(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", [["text", "label"], ["good", "x"]])
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(DataError, match=r"a\.xlsx is damaged"):
        list(Source(path))
    (tmp_path / "b.xlsx").write_text("text,label\n")
    with pytest.raises(DataError, match="is not a xlsx file"):
        Source(tmp_path / "b.xlsx")
    (unpacked,) = archive_bytes(write_xlsx(tmp_path / "c.xlsx", [["text" * 8_000]]))
    assert unpacked > 32_000 > (tmp_path / "c.xlsx").stat().st_size


def test_xlsx_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", [["text", "label"], ["good", "x"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ExtraError, match=r"emhrnn\[xlsx\]"):
        list(Source(path))
