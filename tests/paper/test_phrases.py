"""Phrase ends beside gold chunks, and the shown phrases of evidence beside the sum over all."""

import json
import zipfile
from pathlib import Path

import pytest

from emhrnn.errors import DataError
from emhrnn.paper.phrases import as_batch, learned, read_chunks
from emhrnn.training.run import load_run
from tests.behaviour.commands import Cli, tiny
from tests.oracles.chunks import chunk_ends, scores

GOLD = [
    [("The", "B-NP"), ("soup", "I-NP"), ("was", "B-VP"), ("good", "B-ADJP"), (".", "O")],
    [
        ("We", "B-NP"),
        ("have", "B-VP"),
        ("liked", "I-VP"),
        ("the", "B-NP"),
        ("waiter", "I-NP"),
        (",", "O"),
        ("too", "O"),
    ],
    [("Good", "O")],
]


@pytest.fixture
def conll(tmp_path: Path) -> Path:
    text = "\n\n".join("\n".join(f"{word} X {tag}" for word, tag in sentence) for sentence in GOLD) + "\n\n"
    path = tmp_path / "conll2000.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conll2000/test.txt", text)
    return path


def gold() -> set[tuple[int, int]]:
    return {(i, end) for i, sentence in enumerate(GOLD) for end in chunk_ends([tag for _, tag in sentence])}


def test_chunk_ends_are_read(conll: Path) -> None:
    chunked = read_chunks(conll, "test")
    assert chunked.sentences == [[word for word, _ in sentence] for sentence in GOLD]
    places = [(i, t) for i, sentence in enumerate(GOLD) for t in range(len(sentence))]
    found = {place for place, ends in zip(places, chunked.ends.tolist(), strict=True) if ends}
    assert {(i, t) for i, t in found if t < len(GOLD[i]) - 1} == gold()
    assert all((i, len(sentence) - 1) in found for i, sentence in enumerate(GOLD))


def test_the_table_is_what_sets_say(cli: Cli, run: Path, conll: Path, tmp_path: Path) -> None:
    told = cli.ok("paper", "chunks", run, conll, "--out", tmp_path / "out").out
    rows = {row["name"]: row for row in json.loads((tmp_path / "out" / "chunks.json").read_text())["rows"]}
    loaded, chunked = load_run(run), read_chunks(conll, "test")
    z, _ = learned(loaded, as_batch(loaded, chunked.sentences))
    places = [(i, t) for i, sentence in enumerate(GOLD) for t in range(len(sentence))]
    inner = {(i, t) for i, t in places if t < len(GOLD[i]) - 1}
    found = {place for place, ends in zip(places, z.tolist(), strict=True) if ends} & inner
    model = rows["em-hrnn"]
    assert (model["precision"], model["recall"], model["f1"]) == pytest.approx(scores(found, gold()))
    assert rows["every word"]["recall"] == 1
    assert rows["every word"]["precision"] == pytest.approx(len(gold()) / len(inner))
    assert (tmp_path / "out" / "chunks.md").read_text().strip() in told


def test_what_is_no_gold_standard(cli: Cli, run: Path, conll: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    assert "does not exist" in cli.error("paper", "chunks", run, tmp_path / "none.zip", *out)
    assert "no train.txt" in cli.error("paper", "chunks", run, conll, "--part", "train", *out)
    (tmp_path / "wrong.txt").write_text("just words here please\n")
    assert "line 1" in cli.error("paper", "chunks", run, tmp_path / "wrong.txt", *out)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x81")
    assert "not text" in cli.error("paper", "chunks", run, tmp_path / "binary", *out)
    (tmp_path / "empty").write_text("\n\n")
    assert "no sentences" in cli.error("paper", "chunks", run, tmp_path / "empty", *out)


def test_a_damaged_zip(conll: Path) -> None:
    """Bytes of the member, of its header and of the directory: an error that names the file, or the same words."""
    original = conll.read_bytes()
    expected, refused = read_chunks(conll, "test").sentences, 0
    for place in range(0, len(original), 3):
        content = bytearray(original)
        content[place] ^= 0x41
        conll.write_bytes(content)
        try:
            assert read_chunks(conll, "test").sentences == expected
        except DataError as error:
            refused += str(conll) in str(error)
    assert refused > len(original) // 10


def test_other_runs_are_refused(cli: Cli, made: Path, run: Path) -> None:
    refused = cli.error("paper", "segmentations", run, made / "test.jsonl")
    assert "is not a run of evidence with learned phrases" in refused


def test_the_shown_phrases_of_evidence_are_compared_with_the_sum(cli: Cli, made: Path, tmp_path: Path) -> None:
    run, test = tmp_path / "evidence", made / "test.jsonl"
    cli.ok("train", made / "reviews.csv", "--out", run, *tiny("evidence"))
    found = cli.ok("paper", "segmentations", run, test, "--json").json
    assert found["exact"] == cli.ok("evaluate", run, test, "--json").json["accuracy"]
    assert abs(found["exact"] - found["shown"]) <= found["differs"]
    assert 0 <= found["best"] <= 1
    assert 1 <= found["words_per_phrase"] <= 6
    assert "by the best one alone" in cli.ok("paper", "segmentations", run, test).out
