"""Tiny files in the published formats."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from emhrnn.errors import DataError
from emhrnn.paper.explanations.human import EditedPair, Highlighted, Rated, read_evidence, write_marked, write_without


def eraser(path: Path) -> Path:
    rows = [
        {"text": "the soup was\nvery good .", "label": "pos", "split": "validation", "evidence_tokens": [[3, 5]]},
        {"text": "bad waiter", "label": "neg", "split": "train", "evidence_tokens": [[0, 1]]},
        {"text": "a bad room", "label": "neg", "split": "validation", "evidence_tokens": [[1, 3]]},
        {"text": "nothing marked", "label": "neg", "split": "validation", "evidence_tokens": []},
    ]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return path


def trees(path: Path) -> Path:
    lines = "(3 (2 It) (4 (2 's) (4 (3 very) (4 good))))\n(1 (2 (2 -LRB-) (2 So)) (0 (0 bad) (2 -RRB-)))\n(2 Well)\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trees/test.txt", lines)
        archive.writestr("trees/dev.txt", "(2 (1 Not) (3 good))\n")
    return path


def pairs(path: Path) -> Path:
    lines = ["Sentiment\tText\tbatch_id", "Negative\tThe soup was bad.\t4", "Positive\tThe soup was good.\t4"]
    lines += ["Positive\tWe liked the waiter.\t5", "Negative\tWe hated the waiter.\t5"]
    path.write_text("\n".join(lines) + "\n")
    return path


def sentences(path: Path) -> Path:
    path.write_text(
        "a_1\nbooks\t2\nneg\tThe soup was bad.\nnr\tWe came.\npos\tThe room was lovely.\n\nb\nx\t5\npos\tGood.\n"
    )
    return path


def test_tokens_of_eraser(tmp_path: Path) -> None:
    found = read_evidence(eraser(tmp_path / "movies.jsonl.gz"))
    assert (found.name, found.part, len(found.items)) == ("ERASER movies", "validation", 2)
    first = found.items[0]
    assert isinstance(first, Highlighted)
    assert [first.text[a:b] for (a, b), on in zip(first.tokens, first.marked, strict=True) if on] == ["very", "good"]
    assert len(read_evidence(tmp_path / "movies.jsonl.gz", "train").items) == 1


def test_phrases_of_the_treebank(tmp_path: Path) -> None:
    found = read_evidence(trees(tmp_path / "sst.zip"))
    assert (found.name, found.part) == ("SST", "test")
    parts = [
        [(item.text[a:b], int(r)) for (a, b), r in zip(item.spans, item.ratings, strict=True)]
        for item in found.items
        if isinstance(item, Rated)
    ]
    assert parts == [[("very good", 2), ("'s very good", 2)], [("( So", 0), ("bad )", -2)], []]
    assert read_evidence(tmp_path / "sst.zip", "dev").part == "dev"


def test_pairs_and_sentences(tmp_path: Path) -> None:
    found = read_evidence(pairs(tmp_path / "test_paired.tsv"))
    assert isinstance(found.items[0], EditedPair)
    assert (found.items[0].label, found.items[0].edited) == ("neg", "The soup was good.")
    first, second = read_evidence(sentences(tmp_path / "fine.txt")).items
    assert isinstance(first, Rated)
    assert [first.text[a:b] for a, b in first.spans] == ["The soup was bad.", "We came.", "The room was lovely."]
    assert first.ratings.tolist() == [-1, 0, 1]
    assert second.text == "Good."


@pytest.mark.parametrize(
    "text", ["", "two words", "(2 (2 open", '{"evidence_tokens": 1}', "Sentiment\tText\tbatch_id\nPositive\tx\t1\n"]
)
def test_what_is_not_evidence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(DataError, match="file"):
        read_evidence(path)


def test_missing_files_and_parts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read_evidence(tmp_path / "none")
    with pytest.raises(DataError, match="--part"):
        read_evidence(trees(tmp_path / "sst.zip"), "valid")
    with pytest.raises(DataError, match="--part"):
        read_evidence(eraser(tmp_path / "movies.jsonl.gz"), "test")
    (tmp_path / "x.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot be read"):
        read_evidence(tmp_path / "x.gz")


TREE = "(3 (2 It) (4 (2 's) (4 good)))\n(1 (2 It) (1 (2 's) (1 bad)))\n"
PAIRS = "Sentiment\tText\tbatch_id\nPositive\tA good film.\t1\nNegative\tA bad film.\t1\n"


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rated_parts_become_documents_once(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(TREE)
    assert write_marked(tmp_path / "train.txt", "train", tmp_path / "out.jsonl") == 6
    expected = [
        ("good", "pos"), ("'s good", "pos"), ("It 's good", "pos"),
        ("bad", "neg"), ("'s bad", "neg"), ("It 's bad", "neg"),
    ]  # fmt: skip
    assert [(row["text"], row["label"]) for row in rows_of(tmp_path / "out.jsonl")] == expected


def test_marked_documents_keep_their_spans(tmp_path: Path) -> None:
    rows = [
        {"text": "a good film", "label": "pos", "split": "train", "evidence_tokens": [[1, 2]]},
        {"text": "a bad film", "label": "neg", "split": "validation", "evidence_tokens": [[1, 2]]},
    ]
    (tmp_path / "movies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert write_marked(tmp_path / "movies.jsonl", "train", tmp_path / "out.jsonl") == 1
    assert rows_of(tmp_path / "out.jsonl") == [{"text": "a good film", "label": "pos", "spans": [[2, 6]]}]
    write_marked(tmp_path / "movies.jsonl", "train", tmp_path / "out.jsonl", marked=0)
    assert rows_of(tmp_path / "out.jsonl") == [{"text": "a good film", "label": "pos", "spans": []}]


def test_texts_of_pairs_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    texts = ["A good film!", "Another film.", "a BAD <br /> film"]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps({"text": text, "label": "x"}) for text in texts))
    assert write_without(tmp_path / "data.jsonl", tmp_path / "pairs.tsv", tmp_path / "out.jsonl") == 1
    assert rows_of(tmp_path / "out.jsonl") == [{"text": "Another film.", "label": "x"}]
    with pytest.raises(DataError, match="edited pairs"):
        write_marked(tmp_path / "pairs.tsv", "train", tmp_path / "out.jsonl")
