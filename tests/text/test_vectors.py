import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from emhrnn.errors import DataError
from emhrnn.text import Vectors, Vocabulary, read_vectors

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "glove6B_100d_top100k_fp16.npz"
WORDS = ["the", ",", '"', "]", "\\", "don't", "日本", "x1", "{"]
MATRIX = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32).round(5)


def glove(words: list[str], matrix: np.ndarray) -> bytes:
    lines = [" ".join([word, *(repr(float(x)) for x in row)]) for word, row in zip(words, matrix, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def word2vec(words: list[str], matrix: np.ndarray) -> bytes:
    return b"%d %d\n" % matrix.shape + glove(words, matrix)


def binary(words: list[str], matrix: np.ndarray, end: bytes = b"\n") -> bytes:
    rows = [word.encode() + b" " + row.astype("<f4").tobytes() + end for word, row in zip(words, matrix, strict=True)]
    return b"%d %d\n" % matrix.shape + b"".join(rows)


def binary_without_line_ends(words: list[str], matrix: np.ndarray) -> bytes:
    return binary(words, matrix, b"")


FORMATS = [glove, word2vec, binary, binary_without_line_ends]
Format = Callable[[list[str], np.ndarray], bytes]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format_", FORMATS)
def test_formats(tmp_path: Path, format_: Format, packed: bool) -> None:
    content = format_(WORDS, MATRIX)
    path = tmp_path / "vectors"
    path.write_bytes(gzip.compress(content) if packed else content)
    read = read_vectors(path)
    assert read.words == WORDS
    assert read.matrix.dtype == np.float32
    assert np.array_equal(read.matrix, MATRIX)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b" ", b"\xef\xbb\xbf "])
@pytest.mark.parametrize("format_", FORMATS)
def test_a_mark_or_a_blank_before_the_first_word(tmp_path: Path, format_: Format, before: bytes, packed: bool) -> None:
    content = before + format_(WORDS, MATRIX)
    (tmp_path / "v").write_bytes(gzip.compress(content) if packed else content)
    read = read_vectors(tmp_path / "v")
    assert read.words == WORDS
    assert np.array_equal(read.matrix, MATRIX)


@given(
    st.sampled_from(FORMATS),
    hnp.arrays(np.float32, st.tuples(st.integers(1, 8), st.integers(1, 6)), elements=st.floats(-99, 99, width=32)),
)
@example(binary, np.array([[0.02]], dtype=np.float32))  # its first byte is a line end
def test_any_numbers(tmp_path_factory: pytest.TempPathFactory, format_: Format, matrix: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("vectors") / "v"
    path.write_bytes(format_(WORDS[: len(matrix)], matrix))
    read = read_vectors(path)
    assert read.words == WORDS[: len(matrix)]
    assert np.allclose(read.matrix, matrix)


@pytest.mark.parametrize("format_", FORMATS)
def test_more_rows_than_a_block(tmp_path: Path, format_: Format) -> None:
    words = [f"w{i}" for i in range(12_000)]
    matrix = np.random.default_rng(0).normal(size=(12_000, 3)).astype(np.float32)
    (tmp_path / "v").write_bytes(format_(words, matrix))
    read = read_vectors(tmp_path / "v")
    assert read.words == words
    assert np.allclose(read.matrix, matrix)


def test_words_with_blanks_in_them(tmp_path: Path) -> None:
    """As in GloVe 840B."""
    (tmp_path / "v").write_bytes(b"the 0.5 1\n. . . 2 3\r\nat name@x.com 4 -5e-1\n")
    read = read_vectors(tmp_path / "v")
    assert read.words == ["the", ". . .", "at name@x.com"]
    assert read.matrix.tolist() == [[0.5, 1], [2, 3], [4, -0.5]]
    (tmp_path / "v").write_bytes(b". . . 2 3\nthe 0.5 1\na 1 2\n")
    assert read_vectors(tmp_path / "v").words == [". . .", "the", "a"]


def test_npz_with_one_string_a_word(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(WORDS), vectors=MATRIX.astype(np.float64))
    assert read_vectors(tmp_path / "v.npz").words == WORDS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"a 1 2\nb 1\n", r"row 2 \('b 1'...\) is not a word and 2 numbers"),
        (b"a 1 2\n\nb 1 2\n", "row 2"),
        (b"a 1 2\nb 1 x\n", "row 2"),
        (b"a 1 2\nb 1 2 3\n" + b"c 1 x\n", "row 3"),
        (b"the 1\na 1 2\nb 1 2\n", r"row 1 \('the 1'...\) is not a word and 2 numbers"),
        (b"# vectors\na 1 2\nb 1 2\n", r"row 1 \('# vectors'...\) is not a word and 2 numbers"),
        (b"\xef\xbb\xbf\n", "the file is empty"),
        (b"hello\nworld\n", r"row 1 \('hello'...\) is not a word and its numbers"),
        (b"a 1 2\nb 1 nan\n", r"the vector of 'b' \(word 2\) is not finite"),
        (b"3 2\na 1 2\nb 3 4\n", "the first line promises 3 words, but 2 follow"),
        (b"2 3\na 1 2 3\nb 3 4\n", "row 3"),
        (binary(WORDS, MATRIX)[:-9], "it ends inside word 9 of the 9"),
        (binary(WORDS, MATRIX)[:60], "it ends inside word 3 of the 9"),
        (b"999999999999 300\n" + b"a " + b"\x01" * 1200, "it ends inside word 2"),
        (b'{"a": 1}', "row 1"),
        (b"9" * 5000 + b" 2\na 1 2\nb 1 2\n", "row 1"),
        (b"1 " + b"9" * 5000 + b"\na 1 2\nb 1 2\n", "row 1"),
        (b"PK\x03\x04broken", "damaged or cut short"),
        (gzip.compress(glove(WORDS, MATRIX), mtime=0)[:-20], "damaged or cut short"),
        (gzip.compress(glove(WORDS, MATRIX), mtime=0)[:40], "damaged or cut short"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "v"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_vectors(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"words": np.array("a")}, "must hold the arrays"),
        ({"words": np.array(["a"], dtype=object), "vectors": np.ones((1, 2))}, "must hold the arrays"),
        ({"words": np.array([1]), "vectors": np.ones((1, 2))}, "`words` is int64"),
        ({"words": np.array("a"), "vectors": np.ones(2)}, r"`vectors` is float64 \(2,\)"),
        ({"words": np.array("a\nb"), "vectors": np.ones((1, 2))}, "there are 2 words and 1 vectors"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(DataError, match=message):
        read_vectors(tmp_path / "v.npz")


HUGE = 10**12


@pytest.mark.parametrize(
    "content",
    [
        b"%d 100\nthe " % HUGE + b"\0" * 400,
        b"3 %d\nthe " % HUGE + b"\0" * 400,
        gzip.compress(b"3 %d\nthe " % HUGE + b"\0" * 400),
        b"3 %d\nthe 0.1 0.2\n" % HUGE,
        b"%d 2\nthe 0.1 0.2\n" % HUGE,
    ],
    ids=["binary words", "binary numbers", "gzipped", "text numbers", "text words"],
)
def test_a_header_cannot_promise_more_than_the_file_holds(tmp_path: Path, content: bytes) -> None:
    """Memory for 10^12 numbers would be taken before the end of the file is seen."""
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(DataError, match=str(HUGE)):
        read_vectors(tmp_path / "v")


@pytest.mark.parametrize("name", ["words", "vectors"])
def test_an_array_cannot_promise_more_than_the_file_holds(tmp_path: Path, name: str) -> None:
    huge = io.BytesIO()
    shape = (HUGE, 100) if name == "vectors" else (HUGE,)
    np.lib.format.write_array_header_1_0(
        huge, {"descr": "<f4" if name == "vectors" else "<U4", "fortran_order": False, "shape": shape}
    )
    np.savez(tmp_path / "good.npz", words=np.array("the"), vectors=np.ones((1, 2), np.float32))
    with zipfile.ZipFile(tmp_path / "good.npz") as good, zipfile.ZipFile(tmp_path / "v.npz", "w") as bad:
        for member in good.namelist():
            bad.writestr(member, huge.getvalue() if member == f"{name}.npy" else good.read(member))
    with pytest.raises(DataError, match=f"{name}.npy promises {HUGE}"):
        read_vectors(tmp_path / "v.npz")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """Its first bytes tell the format, and would be missing; without a writer it waits forever."""
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(DataError, match="is a pipe, which can be read only once; write it to a file first"):
        read_vectors(tmp_path / "pipe.txt")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read the vectors .*: No such file"):
        read_vectors(tmp_path / "none.txt")
    with pytest.raises(DataError, match=r"cannot read the vectors .*: Is a directory"):
        read_vectors(tmp_path)


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="../shared/data is missing")
def test_the_shared_glove_vectors() -> None:
    read = read_vectors(DATA)
    assert len(read) == 100_000
    assert read.size == 100
    assert read.words[:3] == ["the", ",", "."]


def vectors(*words: str) -> Vectors:
    matrix = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
    return Vectors(list(words), matrix)


def row(of: Vectors, word: str) -> np.ndarray:
    return of.matrix[of.words.index(word)]


def test_known_words_keep_their_vectors() -> None:
    given = vectors("good", "film")
    vocabulary = Vocabulary.from_words(["film", "zzz", "good"])
    matrix = given.lookup(vocabulary, generator=np.random.default_rng(1))
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


def test_without_a_generator_missing_words_have_the_mean() -> None:
    given = vectors("not", "film")
    matrix = given.lookup(Vocabulary.from_words(["film", "n't", "zzz"]), generator=None)
    mean = given.matrix.mean(axis=0)
    assert np.allclose(matrix, [mean, row(given, "film"), row(given, "not"), mean])


def test_a_word_that_comes_twice_has_its_first_vector() -> None:
    given = vectors("a", "b", "a")
    matrix = given.lookup(Vocabulary.from_words(["a"]), generator=np.random.default_rng(1))
    assert np.array_equal(matrix[1], given.matrix[0])


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
