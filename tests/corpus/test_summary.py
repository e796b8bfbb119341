"""What people should see of their data before they train on it."""

from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus import Columns, Corpus, prepare
from emhrnn.corpus.summary import DataSummary, look_at, summarise


def texts(count: int) -> list[str]:
    return [f"Visit number{i} was fine." for i in range(count)]


def problems(summary: DataSummary, *words: str) -> list[str]:
    return [problem for problem in summary.problems if all(word in problem for word in words)]


def test_good_data_has_no_problems() -> None:
    summary = summarise(Corpus.from_texts(texts(40), ["a", "b"] * 20))
    assert summary.problems == ()
    assert (summary.median_words, summary.one_word, summary.duplicates, summary.conflicts) == (5, 0, 0, 0)
    assert summary.to_dict()["classes"] == {"a": 20, "b": 20}


def test_splits_that_are_all_used(tmp_path: Path) -> None:
    rows = "".join(f"Visit number{i} was fine.,{'ab'[i % 2]},{'train' if i < 30 else 'test'}\n" for i in range(40))
    (tmp_path / "visits.csv").write_text(f"text,label,part\n{rows}")
    told = look_at(tmp_path / "visits.csv", columns=Columns(split="part"), progress=False)
    assert problems(told, "'train' (30), 'test' (10)", "column 'part'", "--split")
    chosen = prepare(tmp_path / "visits.csv", tmp_path / "train", columns=Columns(split="part"), split="train")
    assert summarise(chosen).problems == ()


def test_rare_classes() -> None:
    summary = summarise(Corpus.from_texts(texts(500), ["a"] * 490 + ["b"] * 8 + ["c"] * 2))
    assert len(problems(summary, "'b' (8, 1.6%)", "class_weight=balanced", "macro-F1")) == 1
    assert len(problems(summary, "'c' (2, 0.4%)", "fewer than 5")) == 1
    many = summarise(Corpus.from_texts(texts(1500), [str(i % 150) for i in range(1500)]))
    assert many.problems == ()
    several = summarise(Corpus.from_texts(texts(500), [["a"]] * 490 + [["a", "b"]] * 10))
    (told,) = several.problems
    assert "'b'" in told
    assert "class_weight" not in told  # it is for one label per document


def test_columns_that_are_probably_others() -> None:
    labels = [str(i % 45) for i in range(90)]
    summary = summarise(Corpus.from_texts([*texts(90), "one"], [*labels, "44"]))
    assert problems(summary, "45 classes", "label column")
    assert dict(summary.lines())["classes"].startswith("45; the most frequent: 44 (3), 0 (2), 1 (2),")
    assert "29 (" not in dict(summary.lines())["classes"]
    short = summarise(Corpus.from_texts([*texts(80), *("yes", "no") * 10], ["a", "b"] * 50))
    assert short.one_word == 20
    assert problems(short, "20%", "text column")


def test_duplicates_and_conflicts() -> None:
    some = [*texts(30), "Good soup .", "good  SOUP.", "Good soup.", "bad soup", "bad soup"]
    summary = summarise(Corpus.from_texts(some, [*["a", "b"] * 15, "a", "a", "b", "b", "b"]))
    assert (summary.duplicates, summary.conflicts) == (3, 1)
    assert problems(summary, "3 documents", "repeating")
    assert problems(summary, "1 text with different labels", "'good soup .' (a and b)")
    lists = [[*labels] for labels in ("a", "b") * 15] + [["a"], ["a"], ["a", "b"], ["b"], ["b"]]
    assert summarise(Corpus.from_texts(some, lists)).conflicts == 1
    assert summarise(Corpus.from_texts(some)).conflicts == 0


def test_words_that_are_too_rare_still_tell_texts_apart() -> None:
    corpus = Corpus.from_texts(texts(40), ["a", "b"] * 20, min_count=2)
    assert summarise(corpus).duplicates == 0


def test_a_view_is_summarised_by_itself() -> None:
    corpus = Corpus.from_texts(["good soup", "good soup", "bad soup"], ["a", "b", "b"])
    assert summarise(corpus.select(np.array([1, 2]))).duplicates == 0
    assert summarise(corpus.select(np.array([1, 2])).whole()).duplicates == 1


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text;label\nDie Größe passt;Größe\nSchöne Grüße;Grüße\n;Grüße\n".encode("cp1252"))
    summary = look_at(path, columns=Columns(), progress=False)
    assert summary.report.encodings == ["cp1252"]
    assert summary.report.classes == {"Größe": 1, "Grüße": 1}
    shown = dict(summary.lines())
    assert "empty text" in shown["skipped"]
    assert shown["encoding"] == "cp1252"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("seed", range(5))
def test_equal_texts_stay_on_one_side_of_a_split(seed: int) -> None:
    some = [f"text number {i % 60}" for i in range(200)]
    corpus = Corpus.from_texts(some, [str(i % 60 % 3) for i in range(200)])
    rest, held = corpus.split(0.2, np.random.default_rng(seed))
    sides = [{some[row] for row in part.source_rows().tolist()} for part in (rest, held)]
    assert not sides[0] & sides[1]
    assert len(rest) + len(held) == 200
    assert 0.15 < len(held) / 200 < 0.25


def test_a_class_that_shares_all_its_texts_is_still_trained_on() -> None:
    some = [f"text number {i}" for i in range(20)] + ["text number 3", "text number 4"]
    for seed in range(20):
        rest, held = Corpus.from_texts(some, ["a", "b"] * 10 + ["c", "c"]).split(0.3, np.random.default_rng(seed))
        assert rest.class_counts.all()
        assert len(held)
