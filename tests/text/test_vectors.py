from pathlib import Path

import numpy as np
import pytest

from emhrnn.errors import DataError
from emhrnn.text import Vectors, Vocabulary, read_vectors


def vectors(*words: str) -> Vectors:
    matrix = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
    return Vectors(list(words), matrix)


def row(of: Vectors, word: str) -> np.ndarray:
    return of.matrix[of.words.index(word)]


def test_known_words_keep_their_vectors() -> None:
    given = vectors("good", "film")
    vocabulary = Vocabulary.from_words(["film", "zzz", "good"])
    matrix = given.lookup(vocabulary, generator=np.random.default_rng(1))
    assert given.known(vocabulary).tolist() == [False, True, False, True]
    assert np.array_equal(matrix[[1, 3]], given.matrix[[1, 0]])
    assert np.allclose(matrix[0], given.matrix.mean(axis=0))
    assert np.isfinite(matrix[2]).all()


def test_missing_words_start_from_a_related_form() -> None:
    given = vectors("not", "mr", "god", "awful", "!")
    vocabulary = Vocabulary.from_words(["n't", "mr.", "god-awful", "god-like", "!!!"])
    matrix = given.lookup(vocabulary, generator=np.random.default_rng(1))
    assert np.array_equal(matrix[1], row(given, "not"))
    assert np.array_equal(matrix[2], row(given, "mr"))
    assert np.allclose(matrix[3], (row(given, "god") + row(given, "awful")) / 2)
    assert not np.allclose(matrix[4], row(given, "god"))
    assert np.array_equal(matrix[5], row(given, "!"))
    assert not given.known(vocabulary).any()


def test_an_own_vector_goes_before_a_related_form() -> None:
    given = vectors("not", "n't")
    matrix = given.lookup(Vocabulary.from_words(["n't"]), generator=np.random.default_rng(1))
    assert np.array_equal(matrix[1], row(given, "n't"))


def test_same_seed_same_matrix() -> None:
    vocabulary = Vocabulary.from_words(["x", "y"])
    first, second, other = (vectors("a", "b").lookup(vocabulary, generator=np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_drawn_vectors_have_the_spread_of_the_known_ones() -> None:
    given = Vectors([str(i) for i in range(500)], np.random.default_rng(0).normal(3, [1, 5], (500, 2)).astype("f4"))
    matrix = given.lookup(Vocabulary.from_words([f"x{i}" for i in range(2000)]), generator=np.random.default_rng(1))
    assert np.allclose(matrix.mean(axis=0), 3, atol=0.6)
    assert np.allclose(matrix.std(axis=0), [1, 5], rtol=0.15)


def test_a_word_that_comes_twice_has_its_first_vector() -> None:
    given = vectors("a", "b", "a")
    matrix = given.lookup(Vocabulary.from_words(["a"]), generator=np.random.default_rng(1))
    assert np.array_equal(matrix[1], given.matrix[0])


def test_save_and_read(tmp_path: Path) -> None:
    given = vectors("a", "don't", "日")
    given.save(tmp_path / "v.npz")
    again = read_vectors(tmp_path / "v.npz")
    assert again.words == given.words
    assert again.matrix.dtype == np.float32
    assert np.allclose(again.matrix, given.matrix, rtol=1e-3)


@pytest.mark.parametrize(
    ("words", "matrix", "message"),
    [
        (["a"], [[1.0], [2.0]], "there are 1 words and 2 vectors"),
        (["a", "b"], [[1.0], [np.nan]], r"the vector of 'b' \(word 2\) is not finite"),
        (["a", "b"], [[np.inf], [1.0]], "the vector of 'a'"),
        ([], np.zeros((0, 3)), "the vectors are 0 x 3"),
    ],
)
def test_bad_vectors(words: list[str], matrix: list[list[float]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Vectors(words, np.array(matrix, dtype=np.float32))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="above 65504"):
        Vectors(["a"], np.array([[1e6]], dtype=np.float32)).save(tmp_path / "v.npz")
    with pytest.raises(DataError, match="has a line end"):
        Vectors(["a\nb"], np.array([[1.0]], dtype=np.float32)).save(tmp_path / "v.npz")
