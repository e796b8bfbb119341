from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.text import UNK, Vocabulary
from tests.oracles.text import count_words
from tests.text.strategies import texts

COUNTS = Counter({"b": 3, "a": 3, "c": 1, "d": 2})


def test_from_counts_is_by_frequency_then_spelling() -> None:
    assert Vocabulary.from_counts(COUNTS).words == [UNK, "a", "b", "d", "c"]
    assert Vocabulary.from_counts(COUNTS, min_count=2).words == [UNK, "a", "b", "d"]
    assert Vocabulary.from_counts(COUNTS, max_size=2).words == [UNK, "a", "b"]
    assert Vocabulary.from_counts({}).words == [UNK]


def test_unknown_words_have_id_0() -> None:
    vocabulary = Vocabulary.from_words(["x", "y", "x", UNK])
    assert vocabulary.words == [UNK, "x", "y"]
    ids = vocabulary.encode(["y", "z", "x"])
    assert ids.tolist() == [2, 0, 1]
    assert ids.dtype == np.int32
    assert vocabulary.decode(ids) == ["y", UNK, "x"]
    assert "x" in vocabulary
    assert "z" not in vocabulary


def test_union_keeps_the_first_ids() -> None:
    union = Vocabulary.from_words(["x", "y"]) | Vocabulary.from_words(["z", "y", "w"])
    assert union.words == [UNK, "x", "y", "z", "w"]


@given(st.lists(texts, max_size=3))
def test_save_and_load(tmp_path_factory: pytest.TempPathFactory, some: list[str]) -> None:
    path = tmp_path_factory.mktemp("vocabulary") / "words.txt"
    vocabulary = Vocabulary.from_counts(count_words(some))
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "must begin with '<unk>', the word of id 0, and begins with nothing"),
        (["a"], "begins with 'a'"),
        ([UNK, "a", "a"], "the word 'a' is twice"),
        ([UNK, ""], "'' cannot be in a vocabulary"),
        ([UNK, "a\nb"], "has no line end"),
    ],
)
def test_bad_words(words: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Vocabulary(words)


def test_bad_sizes() -> None:
    with pytest.raises(ConfigError, match="min_count is 0 and max_size is None; both must be 1 or more"):
        Vocabulary.from_counts(COUNTS, min_count=0)
    with pytest.raises(ConfigError, match="max_size is 0"):
        Vocabulary.from_counts(COUNTS, max_size=0)


def test_bad_ids() -> None:
    with pytest.raises(DataError, match="word ids 0 to 7 are not all of a vocabulary of 1 words"):
        Vocabulary([UNK]).decode(np.array([0, 7]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"a\nb\n", "begins with 'a'"),
        (b"<unk>\na\nb", "cut short"),
        (b"<unk>\n\xff\n", "not a vocabulary"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        Vocabulary.load(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot read the vocabulary .*words.txt: No such file"):
        Vocabulary.load(tmp_path / "words.txt")
