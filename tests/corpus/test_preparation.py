"""From files to the corpus folder and back, and everything that can be wrong with either."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn.corpus import Corpus, TextSettings, is_corpus, prepare
from emhrnn.errors import CheckpointError, DataError
from emhrnn.text import TextLimits
from emhrnn.text.vocabulary import Vocabulary

ROWS: list[dict[str, Any]] = [
    {"text": "A good film. Really good!", "label": "pos", "id": "x1", "user": "ann", "product": "m"},
    {"text": "Bad film.", "label": "neg", "id": "x2", "user": "bob", "product": "m"},
    {"text": "   ", "label": "neg", "id": "x3", "user": "eve", "product": "m"},
    {"text": "No label", "label": None, "id": "x4", "user": None, "product": "m"},
    {"text": "Good.\0", "label": "pos", "id": "x5", "user": "ann", "product": "k"},
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "a.jsonl", ROWS)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def words_of(corpus: Corpus) -> list[list[str]]:
    batch = corpus.batch(np.arange(len(corpus)))
    words = [corpus.vocabulary.words[i] for i in batch.words]
    offsets = batch.word_offsets
    return [words[offsets[d] : offsets[d + 1]] for d in range(batch.n_documents)]


def test_a_file_becomes_a_corpus(source: Path, tmp_path: Path) -> None:
    corpus = prepare(source, tmp_path / "c")
    assert is_corpus(tmp_path / "c")
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == [
        "corpus.json", "data.arrow", "products.json", "users.json", "vocabulary.txt",
    ]  # fmt: skip
    for again in (corpus, Corpus.open(tmp_path / "c")):
        assert words_of(again) == [
            ["a", "good", "film", ".", "really", "good", "!"],
            ["bad", "film", "."],
            ["good", "."],
        ]
        assert again.classes == ("neg", "pos")
        assert again.users == ("ann", "bob")
        batch = again.batch(np.array([2, 1]))
        assert np.array_equal(batch.labels, [1, 0])
        assert np.array_equal(batch.users, [0, 1])
        assert np.array_equal(batch.products, [again.products.index("k"), again.products.index("m")])
        assert again.ids() == ["x1", "x2", "x5"]
        assert again.source_rows().tolist() == [0, 1, 4]
        assert again.text == TextSettings()
        assert again.report == corpus.report


def test_the_report_counts_everything(source: Path, tmp_path: Path) -> None:
    report = prepare(source, tmp_path / "c", text=TextSettings(limits=TextLimits(max_sentences=1))).report
    assert (report.documents, report.sentences, report.words, report.longest_document) == (3, 3, 9, 4)
    assert report.classes == {"neg": 1, "pos": 2}
    assert (report.capped, report.limits) == (1, {"max_sentences": 1})
    assert report.skipped == {"no label": 1, "empty text": 1}
    assert report.skipped_first["empty text"].endswith("a.jsonl, row 3")
    assert report.repaired == {"NUL bytes": 1}
    assert report.columns["text"] == "text"
    text = str(report)
    for part in ("documents", "1 documents by the limits: max_sentences 1", "empty text (first: ", "NUL bytes"):
        assert part in text
    json.dumps(report.to_dict(), allow_nan=False)


def test_strict_reading_makes_them_errors(source: Path, tmp_path: Path) -> None:
    for row, message in ((2, "row 1 has empty text"), (3, "row 1 has no label"), (4, "row 1 has NUL bytes")):
        with pytest.raises(DataError, match=message):
            prepare(write(source, [ROWS[row]]), tmp_path / "c", strict=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_test_data_in_the_ids_of_the_training_data(source: Path, tmp_path: Path) -> None:
    train = prepare(source, tmp_path / "train")
    rows = [{"text": "new good", "label": "pos", "user": "eve", "product": "m"}]
    test = prepare(
        write(tmp_path / "b.jsonl", rows),
        tmp_path / "test",
        vocabulary=train.vocabulary,
        classes=train.classes,
        users=train.users,
        products=train.products,
    )
    batch = test.batch(np.array([0]))
    assert test.vocabulary == train.vocabulary
    assert words_of(test) == [["<unk>", "good"]]
    assert np.array_equal(batch.labels, [1])
    assert np.array_equal(batch.users, [-1])
    assert np.array_equal(batch.products, [train.products.index("m")])
    write(tmp_path / "b.jsonl", [{"text": "x", "label": "mixed"}])
    with pytest.raises(DataError, match=r"b\.jsonl, row 1 has the label 'mixed', which is none of the model's classes"):
        prepare(tmp_path / "b.jsonl", tmp_path / "bad", classes=train.classes)


def test_the_size_of_chunks_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.5, 30) % 500) for _ in range(60)]
    source = write(tmp_path / "a.jsonl", [{"text": text, "label": i % 3} for i, text in enumerate(texts)])
    one = prepare(source, tmp_path / "one")
    monkeypatch.setattr("emhrnn.corpus.assembly.CHUNK_CHARACTERS", 200)
    many = prepare(source, tmp_path / "many")
    assert words_of(one) == words_of(many)
    assert one.vocabulary == many.vocabulary
    assert one.report == many.report


def test_tang_sentences_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.ss").write_text("u\t\tp\t\t4\t\tmr . x <sssss> y . z\n")
    corpus = prepare(tmp_path / "a.ss", tmp_path / "c")
    assert corpus.batch(np.array([0])).sentence_lengths.tolist() == [3, 3]
    assert words_of(corpus) == [["mr", ".", "x", "y", ".", "z"]]


def test_a_vocabulary_may_be_given_or_made(source: Path, tmp_path: Path) -> None:
    corpus = prepare(source, tmp_path / "c", min_count=2, max_words=2)
    assert corpus.vocabulary.words == ["<unk>", ".", "good"]
    vocabulary = Vocabulary(["<unk>", "film"])
    assert prepare(source, tmp_path / "d", vocabulary=vocabulary).vocabulary == vocabulary


def test_nothing_usable(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [{"text": " ", "label": 1}, {"text": "x", "label": None}])
    with pytest.raises(
        DataError, match=r"a\.jsonl has no usable document \(2 rows read, 1 with no label, 1 with empty"
    ):
        prepare(source, tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_the_destination_is_not_overwritten_by_accident(source: Path, tmp_path: Path) -> None:
    prepare(source, tmp_path / "c")
    with pytest.raises(DataError, match="exists and is not empty"):
        prepare(source, tmp_path / "c")
    prepare(source, tmp_path / "c", overwrite=True)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "work").write_text("")
    with pytest.raises(DataError, match="no corpus, so it is not overwritten"):
        prepare(source, tmp_path / "precious", overwrite=True)


def damaged(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        Corpus.open(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_damaged_corpora(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    prepare(source, folder)
    data, manifest = (folder / "data.arrow").read_bytes(), json.loads((folder / "corpus.json").read_text())
    assert "is not a prepared corpus" in damaged(tmp_path / "nothing")

    (folder / "data.arrow").write_bytes(data[:-8])
    assert "data.arrow is damaged" in damaged(folder)
    (folder / "data.arrow").write_bytes(data[:500] + b"?" + data[501:])
    assert "its checksum differs" in damaged(folder)
    (folder / "data.arrow").unlink()
    assert "data.arrow is missing; prepare the corpus again" in damaged(folder)
    (folder / "data.arrow").write_bytes(data)

    for values, message in (
        ({**manifest, "version": 99}, "has version 99 of the corpus format, this program reads version 1"),
        ({**manifest, "format": "other"}, "does not describe a prepared corpus"),
        ({**manifest, "report": {}}, "is damaged"),
        ({**manifest, "files": {}}, "the list of files is missing"),
        ([], "does not describe a prepared corpus"),
    ):
        (folder / "corpus.json").write_text(json.dumps(values))
        assert message in damaged(folder)
    (folder / "corpus.json").write_text("{")
    assert "corpus.json is damaged" in damaged(folder)


def test_damage_that_only_arrow_can_see(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    prepare(source, folder)
    size = (folder / "data.arrow").stat().st_size
    (folder / "data.arrow").write_bytes(b"x" * size)
    with pytest.raises(CheckpointError, match="is not a readable Arrow file"):
        Corpus.open(folder, verify=False)


DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.data
def test_real_reviews(tmp_path: Path) -> None:
    path = DATA / "yelp_recsys2013_10k.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    corpus = prepare(path, tmp_path / "c", split="dev")
    assert len(corpus) == corpus.report.documents == 1000
    assert corpus.classes == ("1", "2", "3", "4", "5")
    assert 100 < corpus.lengths.mean() < 200


CELLS = [("one", "plot|cast"), ("two", "cast"), ("three", " cast | plot "), ("four", "music"), ("five", "")]


def test_cells_with_bars_are_several_labels(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [{"text": text, "label": label} for text, label in CELLS])
    corpus = prepare(source, tmp_path / "c")
    assert corpus.multi_label
    assert corpus.classes == ("cast", "music", "plot")
    assert corpus.labels.tolist() == [[1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0]]
    assert corpus.report.classes == {"cast": 3, "music": 1, "plot": 2}
    assert corpus.report.skipped == {"no label": 1}
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in CELLS))
    again = prepare(tmp_path / "a.csv", tmp_path / "d", classes=corpus.classes, multi_label=True)
    assert np.array_equal(again.labels, corpus.labels)
    one = prepare(source, tmp_path / "e", multi_label=False)
    assert (one.multi_label, one.classes) == (False, ("cast", "cast | plot", "music", "plot|cast"))


def test_a_bar_in_the_name_of_a_class_is_kept(tmp_path: Path) -> None:
    rows = [{"text": "x", "label": "Home|Garden"}, {"text": "y", "label": "Cars"}]
    corpus = prepare(write(tmp_path / "a.jsonl", rows), tmp_path / "c")
    assert (corpus.multi_label, corpus.classes) == (False, ("Cars", "Home|Garden"))
    assert not Corpus.from_texts(["x", "y"], ["a|b", "a"]).multi_label
