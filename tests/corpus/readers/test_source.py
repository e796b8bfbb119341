"""Every format, plain and compressed, gives the same records."""

import bz2
import csv
import gzip
import json
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from emhrnn.corpus.readers.source import Source, data_files
from emhrnn.corpus.record import Columns, Record
from emhrnn.errors import DataError

ROWS = [
    {"id": "a", "text": "Good, but “late”.\nTwice!", "stars": 4, "user_id": "u1"},
    {"id": "b", "text": 'A "quoted" 😀 word', "stars": 1, "user_id": "u2"},
    {"id": "c", "text": "مرحبا بالعالم", "stars": 5, "user_id": "u1"},
]


def write(path: Path, delimiter: str = ",") -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ROWS[0], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(ROWS)
    return path


def check(records: list[Record]) -> None:
    assert [r.text for r in records] == [row["text"] for row in ROWS]
    assert [r.label for r in records] == ["4", "1", "5"]
    assert [r.id for r in records] == ["a", "b", "c"]
    assert [r.user for r in records] == ["u1", "u2", "u1"]
    assert [r.where.row for r in records] == [1, 2, 3]
    assert not any(r.repairs for r in records)


COMPRESS = {
    "": lambda content: content,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
}


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("b.csv", ";"), ("a.tsv", "\t"), ("a.jsonl", "")])
def test_text_formats(tmp_path: Path, name: str, delimiter: str, compression: str) -> None:
    path = write(tmp_path / name, delimiter)
    packed = path.with_name(name + compression)
    packed.write_bytes(COMPRESS[compression](path.read_bytes()))
    source = Source(packed)
    check(list(source))
    assert source.taken == {"text": "text", "label": "stars", "id": "id", "user": "user_id"}
    assert source.meter.done == source.meter.total > 0


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv"])
def test_format_from_content_alone(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "\t" if name == "a.tsv" else ",").rename(tmp_path / "data")
    check(list(Source(path)))


def test_byte_order_mark(tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl"):
        path = write(tmp_path / name)
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        check(list(Source(path)))


def test_parquet(tmp_path: Path) -> None:
    source = Source(write(tmp_path / "a.parquet"))
    check(list(source))
    assert source.meter.done == source.meter.total


def test_parquet_categories_floats_and_broken_text(tmp_path: Path) -> None:
    text = pa.array([b"good \xff", b"fine"], pa.binary()).view(pa.string())
    label = pa.array([float("nan"), 3.0])
    user = pa.array(["u", None]).dictionary_encode()
    pq.write_table(pa.table({"text": text, "label": label, "user": user}), tmp_path / "a.parquet")
    first, second = Source(tmp_path / "a.parquet")
    assert (first.text, first.label, first.user, first.repairs) == ("good \ufffd", None, "u", ("broken UTF-8",))
    assert (second.text, second.label, second.user) == ("fine", "3", None)


def test_several_files_are_one_stream(tmp_path: Path) -> None:
    paths = [write(tmp_path / "a.jsonl"), write(tmp_path / "b.csv")]
    source = Source(paths)
    assert [(Path(r.where.file).name, r.where.row) for r in source] == [
        (name, row) for name in ("a.jsonl", "b.csv") for row in (1, 2, 3)
    ]
    assert source.meter.done == source.meter.total


def test_multi_label_rows(tmp_path: Path) -> None:
    rows = [{"text": "x", "labels": ["b", 1, "b", None]}, {"text": "y", "labels": []}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.table({"text": ["x", "y"], "labels": [["b", "1", "b"], []]}), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        assert [r.label for r in Source(tmp_path / name)] == [("b", "1"), ()]


def test_tang_keeps_the_sentence_ends(tmp_path: Path) -> None:
    path = tmp_path / "yelp-2013-dev.txt.ss"
    path.write_text("u7\t\tp9\t\t4\t\tmr. smith cooks <sssss> it 's -lrb- very -rrb- good . <sssss>\n")
    (record,) = Source(path)
    assert record.sentences == ("mr. smith cooks", "it 's ( very ) good .")
    assert (record.user, record.product, record.label) == ("u7", "p9", "4")
    assert record.text.split() == ["mr.", "smith", "cooks", "it", "'s", "(", "very", ")", "good", "."]


def test_tang_row_with_missing_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.ss"
    path.write_text("u\t\tp\t\t4\t\tgood\nu\t\tp\t\tgood\n")
    with pytest.raises(DataError, match=r"a\.ss, row 2 has 3 fields; give user, product, rating and text"):
        list(Source(path))


def test_zhang_without_header(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text('"5","Great","Loved\\nit, ""really"" \\""yes\\"""\n"1","","Bad"\n')
    first, second = Source(path)
    assert (first.text, first.label) == ('Great\n\nLoved\nit, "really" "yes"', "5")
    assert (second.text, second.label) == ("Bad", "1")


def test_csv_with_number_column_is_not_zhang(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("0,text,label\n1,hello,x\n")
    assert [r.label for r in Source(path)] == ["x"]
    path.write_text("2,hello\n")
    assert [r.text for r in Source(path)] == ["hello"]
    with pytest.raises(DataError, match="no text column 'body'"):
        list(Source(path, columns=Columns(text="body")))


def test_folder_per_class(tmp_path: Path) -> None:
    for name, text in (("good/2.txt", "Nice"), ("good/1.txt", "\ufeffFine"), ("bad/1.txt", "Awful")):
        path = tmp_path / "reviews" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "reviews" / "README").write_text("not a document")
    (tmp_path / "reviews" / ".git").mkdir()
    source = Source(tmp_path / "reviews")
    assert [(r.label, r.text, r.id) for r in source] == [
        ("bad", "Awful", "bad/1.txt"),
        ("good", "Fine", "good/1.txt"),
        ("good", "Nice", "good/2.txt"),
    ]
    assert source.meter.done == source.meter.total
    (tmp_path / "reviews" / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty holds no \.txt file"):
        Source(tmp_path / "reviews")


def test_split_column(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"text": "x", "label": 1, "split": s} for s in ("train", "test", "train")]
    path.write_text("\n".join(map(json.dumps, rows)))
    source = Source(path, split="train")
    assert [r.where.row for r in source] == [1, 3]
    assert source.splits == {"train": 2, "test": 1}
    with pytest.raises(DataError, match=r"no rows of the split 'valid' in .*; it has 'test', 'train'"):
        list(Source(path, split="valid"))
    (tmp_path / "b.csv").write_text("text,label\nx,1\n")
    with pytest.raises(DataError, match=r"b\.csv has no split column; name one 'split' or 'fold'"):
        list(Source(tmp_path / "b.csv", split="valid"))


def test_huge_csv_field(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = "word " * 100_000
    path.write_text(f'text,label\n"{text}",1\n')
    assert [r.text for r in Source(path)] == [text]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "deep/er/c.csv", ".out.csv.1f.partial", ".hidden.csv", "_note.csv", "read.me"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text,label\nGood.,good\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["a.csv", "b.csv", "deep/er/c.csv"]),
        ("a.csv", ["a.csv"]),
        ("*", ["_note.csv", "a.csv", "b.csv", "read.me"]),
        ("[ab].csv", ["a.csv", "b.csv"]),
        (".h*", [".hidden.csv"]),
        ("**/*.csv", ["_note.csv", "a.csv", "b.csv", "deep/er/c.csv"]),
    ],
)
def test_patterns_are_those_of_a_shell(folder: Path, pattern: str, found: list[str]) -> None:
    """So what a killed run left half written is no data."""
    assert data_files(folder / pattern) == [folder / name for name in found]


def test_a_pattern_from_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert data_files(Path("deep/*/*")) == [Path("deep/er/c.csv")]


@pytest.mark.parametrize(("name", "told"), [("x*", "no file matches .*; check the pattern"), ("x", "does not exist")])
def test_nothing_there(folder: Path, name: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        data_files(folder / name)
