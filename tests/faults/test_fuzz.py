"""A few inputs of each target of fuzz.py, by fixed numbers, and what its campaigns found."""

import random
import re
import zipfile
from pathlib import Path

import pytest

from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError, DataError
from tests.faults.fuzz import (
    FILES,
    DamagedFile,
    Target,
    damaged,
    make_compressed,
    make_corpus,
    make_parquet,
    make_xlsx,
    read_source,
)

SLOW = {"run/config.json", "run/vocabulary.txt", "run/metrics.json", "data.xlsx"}  # the last is a zip of XML


@pytest.mark.parametrize("name", [name for name in FILES if name not in SLOW])
def test_damaged_files_are_refused_or_read(name: str, tmp_path: Path) -> None:
    file = DamagedFile(name, tmp_path, seed=1)
    outcomes = [file.outcome(number) for number in range(25)]
    assert {outcome for outcome in outcomes if outcome.startswith(("find", "silent"))} == set()
    assert "refused" in outcomes


def test_damage_is_damage_and_repeatable() -> None:
    content = bytes(range(256)) * 4
    inputs = [damaged(content, random.Random(number)) for number in range(50)]
    assert inputs == [damaged(content, random.Random(number)) for number in range(50)]
    assert len(set(inputs) - {content}) > 45


def test_what_reads_other_content_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: a reader that believes what it reads has silent differences, one that fails has finds."""
    readers = {"silent": Path.read_bytes, "find TypeError": lambda path: path + 1 if b"\x00" in damage else 0}
    for expected, read in readers.items():
        damage = b""
        monkeypatch.setitem(FILES, "data.jsonl.gz", Target(make_compressed, read, checksum=True))
        file = DamagedFile("data.jsonl.gz", tmp_path, seed=1)
        damage = b"\x00"
        assert file.outcome(3).startswith(expected)


@pytest.mark.parametrize("name", ["vectors.npz", "data.xlsx"])
def test_find_zip_with_an_unknown_compression(name: str, tmp_path: Path) -> None:
    path = FILES[name].make(tmp_path / name)
    content = path.read_bytes()
    for header, place in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        content = re.sub(b"(%s.{%d}).." % (header, place - 4), b"\\1\x63\x00", content, flags=re.DOTALL)
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        FILES[name].read(path)


def test_find_workbook_without_cells(tmp_path: Path) -> None:
    """Without sheets, and with a chart alone."""
    import openpyxl

    book, empty = make_xlsx(tmp_path / "book.xlsx"), tmp_path / "empty.xlsx"
    with zipfile.ZipFile(book) as parts, zipfile.ZipFile(empty, "w") as copy:
        for name in parts.namelist():
            content = parts.read(name)
            copy.writestr(name, re.sub(rb"<sheet [^>]*/>", b"", content) if name == "xl/workbook.xml" else content)
    with pytest.raises(DataError, match="no sheet"):
        read_source(empty)
    chart = openpyxl.Workbook()
    chart.create_chartsheet()
    del chart["Sheet"]
    chart.save(tmp_path / "chart.xlsx")
    with pytest.raises(DataError, match="not a readable"):
        read_source(tmp_path / "chart.xlsx")


def test_find_parquet_with_a_column_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = make_parquet(tmp_path / "data.parquet")
    path.write_bytes(path.read_bytes().replace(b"label", b"la\xf8el"))
    with pytest.raises(DataError, match="damaged"):
        read_source(path)


def test_find_corpus_with_a_file_name_that_is_too_long(tmp_path: Path) -> None:
    path = make_corpus(tmp_path / "corpus" / "corpus.json")
    path.write_text(path.read_text().replace('"vocabulary.txt"', f'"{"9" * 400}"', 1))
    with pytest.raises(CheckpointError, match="prepare the corpus again"):
        Corpus.open(path.parent)
