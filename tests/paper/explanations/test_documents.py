"""Training data from evidence that people marked."""

import json
from pathlib import Path

import pytest

from emhrnn.errors import DataError
from emhrnn.paper.explanations.documents import write_marked, write_without

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
