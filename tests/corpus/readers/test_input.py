"""What a user can give wrongly: each case has its one line, which says what, where and what to do."""

import gzip
import json
import lzma
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from emhrnn.corpus.readers.source import Source
from emhrnn.errors import DataError

GOOD = b'{"text": "good", "label": 1}\n'


def read(path: Path, content: bytes, **options: str) -> list[str]:
    path.write_bytes(content)
    return [record.text for record in Source(path, **options)]


def error_of(path: Path, content: bytes, **options: str) -> str:
    with pytest.raises(DataError) as caught:
        read(path, content, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert path.name in message
    return message


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.csv does not exist; check the name"):
        Source(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="no files given"):
        Source([])


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.ss", "a.jsonl.gz"])
@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path: Path, name: str, content: bytes) -> None:
    assert "is empty; give a file with documents" in error_of(tmp_path / name, content)


def test_empty_compressed_file(tmp_path: Path) -> None:
    assert "is empty" in error_of(tmp_path / "a.jsonl.gz", gzip.compress(b""))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstandard.compress])
def test_truncated_compressed_file(tmp_path: Path, compress) -> None:  # type: ignore[no-untyped-def]
    rng = random.Random(0)
    rows = b"".join(b'{"text": "%x", "label": 1}\n' % rng.getrandbits(40_000) for _ in range(100))
    message = error_of(tmp_path / "a.jsonl.x", compress(rows)[:-1000])
    assert "copy or download it again" in message


def test_damaged_compressed_file(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"".join(GOOD.replace(b"good", b"%d" % i) for i in range(9999))))
    content[2000:2100] = b"x" * 100
    assert "is damaged" in error_of(tmp_path / "a.jsonl.gz", bytes(content))


def test_damaged_parquet(tmp_path: Path) -> None:
    assert "is damaged" in error_of(tmp_path / "a.parquet", b"PAR1" + b"x" * 100)
    assert "is not a parquet file" in error_of(tmp_path / "a.parquet", b"hello there")


def test_missing_text_or_label_column(tmp_path: Path) -> None:
    message = error_of(tmp_path / "a.csv", b"words,label\nx,1\n")
    assert "no text column found" in message
    assert "has the columns 'words', 'label'; give one of them with --text-column" in message
    assert "no label column found" in error_of(tmp_path / "a.jsonl", b'{"text": "x"}\n')
    survey = error_of(tmp_path / "a.csv", b"What did you think?,Your verdict\nx,1\n")
    assert "with --text-column and --label-column" in survey
    assert "header" not in survey
    assert "add a header line" in error_of(tmp_path / "a.csv", b"The soup was good,1\nThe soup was bad,2\n")


def test_columns_are_guessed_by_the_last_word_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"review_id,review_body,Star Rating\n7,x,1\n")
    source = Source(tmp_path / "a.csv")
    assert [(record.text, record.label) for record in source] == [("x", "1")]
    assert source.taken["text"] == "review_body"
    assert "could be 'review_body' or 'long_review'" in error_of(
        tmp_path / "a.csv", b"review_body,long_review,label\nx,y,1\n"
    )


def test_ambiguous_columns(tmp_path: Path) -> None:
    message = error_of(tmp_path / "a.csv", b"text,stars,sentiment\nx,1,2\n")
    assert "the label column could be 'stars' or 'sentiment'" in message
    assert "name it with --label-column" in message
    assert "could be 'text' or 'Text'" in error_of(tmp_path / "a.csv", b"text,Text,label\nx,y,1\n")
    assert "the text column 'text' is there 2 times" in error_of(tmp_path / "a.csv", b"text,text,label\nx,y,1\n")


def test_header_that_is_no_header(tmp_path: Path) -> None:
    message = error_of(tmp_path / "a.csv", b"some long text " * 50 + b",positive\n")
    assert len(message) < 400


def test_wrong_number_of_fields(tmp_path: Path) -> None:
    message = error_of(tmp_path / "a.csv", b"text,label\na,1\nb,c,1\n")
    assert "a.csv, row 2 has 3 fields, the header has 2" in message


def test_unbalanced_quotes(tmp_path: Path) -> None:
    assert "from line 3 on has unbalanced quotes" in error_of(tmp_path / "a.csv", b'text,label\na,1\n"b,1\nc,1\n')


def test_bad_json(tmp_path: Path) -> None:
    assert "a.jsonl, row 2 is not valid JSON" in error_of(tmp_path / "a.jsonl", GOOD + b'{"text": \n')
    assert "row 2 is a JSON list" in error_of(tmp_path / "a.jsonl", GOOD + b"[1]\n")
    assert "row 2 is not valid JSON" in error_of(tmp_path / "a.json", b'[{"text": "x", "label": 1}, {"text": "cut')
    assert "not valid JSON" in error_of(tmp_path / "a.jsonl", GOOD + b"[" * 100_000)


def test_text_that_is_no_string(tmp_path: Path) -> None:
    assert "row 1: the text is of type int, a string is needed" in error_of(
        tmp_path / "a.jsonl", b'{"text": 5, "label": 1}\n'
    )


def test_label_that_is_an_object(tmp_path: Path) -> None:
    assert "row 1: the label is an object" in error_of(tmp_path / "a.jsonl", b'{"text": "x", "label": {"a": 1}}\n')


def test_null_and_absent_values_are_for_the_caller_to_judge(tmp_path: Path) -> None:
    content = GOOD + b'{"text": null, "label": null}\n\n{"label": NaN}\n'
    (tmp_path / "a.jsonl").write_bytes(content)
    records = list(Source(tmp_path / "a.jsonl"))
    assert [(r.text, r.label, r.where.row) for r in records] == [("good", "1", 1), ("", None, 2), ("", None, 4)]


def test_broken_utf8_and_nul_are_replaced_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "caf\xe9 \xc3\xa9 \\u0000 \\ud800", "label": "x"}\n' + GOOD)
    first, second = Source(path)
    assert first.text == "caf\ufffd é   \ufffd"
    assert first.repairs == ("broken UTF-8", "NUL bytes")
    assert second.repairs == ()
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\ncaf\xe9 \0,1\n")
    read = Source(path, encoding="utf-8")
    assert [(r.text, r.repairs) for r in read] == [("caf\ufffd  ", ("broken UTF-8", "NUL bytes"))]


def test_labels_that_cannot_be_decoded_are_an_error(tmp_path: Path) -> None:
    """With U+FFFD for both, Größe and Grüße would be one class."""
    path = tmp_path / "a.csv"
    path.write_bytes("text,label\na,Größe\nb,Grüße\n".encode("cp1252"))
    assert [r.label for r in Source(path)] == ["Größe", "Grüße"]
    with pytest.raises(DataError, match=r"row 1: the label .* cannot be decoded.*--encoding"):
        list(Source(path, encoding="utf-8"))


def test_unknown_format(tmp_path: Path) -> None:
    assert "format of" in error_of(tmp_path / "a.txt", b"just some words")
    assert "archive" in error_of(tmp_path / "a.zip", b"PK\x03\x04....")
    with pytest.raises(DataError, match="unknown format 'xml'; give one of csv"):
        read(tmp_path / "a.jsonl", GOOD, format="xml")
    assert "cannot be read as folder" in error_of(tmp_path / "a.jsonl", GOOD, format="folder")


def test_folders_that_hold_no_documents(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no folders"):
        Source(tmp_path)
    (tmp_path / "corpus.json").write_text(json.dumps({}))
    with pytest.raises(DataError, match="is a prepared corpus already"):
        Source(tmp_path)


def test_a_zstd_frame_is_compared_with_its_checksum(tmp_path: Path) -> None:
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(GOOD * 1000))
    packed[-1] ^= 1  # of the checksum
    assert "damaged" in error_of(tmp_path / "a.jsonl.zst", bytes(packed))


def test_a_parquet_page_is_compared_with_its_checksum(tmp_path: Path) -> None:
    table = pa.table({"text": [f"word{i} is good" for i in range(1000)], "label": [i % 2 for i in range(1000)]})
    plain = {"compression": "none", "use_dictionary": False}
    pq.write_table(table, tmp_path / "good.parquet", write_page_checksum=True, **plain)
    content = bytearray((tmp_path / "good.parquet").read_bytes())
    assert len(read(tmp_path / "good.parquet", bytes(content))) == 1000
    content[content.index(b"word500")] ^= 1
    assert "damaged" in error_of(tmp_path / "bad.parquet", bytes(content))


@pytest.mark.parametrize("name", ["pipe.csv", "classes/good/pipe.txt"])
def test_a_pipe_is_refused_at_once(tmp_path: Path, name: str) -> None:
    """Nobody writes to it, so that reading would wait for ever."""
    pipe = tmp_path / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a pipe"):
        list(Source(tmp_path / name.partition("/")[0]))
