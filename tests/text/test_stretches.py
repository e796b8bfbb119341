"""The table in Python and the compiled one: the same words for any text, in bounded memory."""

import copy
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emhrnn.text import Vocabulary, WordEncoder, tokenise
from emhrnn.text.stretches import LONGEST_KEPT, NativeStretches, PythonStretches, _library, stretches
from tests.oracles.text import count_words
from tests.text.strategies import FRAGMENTS, texts

VOCABULARY = Vocabulary.from_counts(count_words(FRAGMENTS))
ASCII = "aZ5nt'’.,;:!?()\"-/&<3@é日\u0301ह_D"
words_and_marks = st.lists(
    st.sampled_from(
        ["Hello", "a", "It", "U.S", "http://", "www", "Mr", "etc", "n't", "'s", "5", "x@y.com", "é", *ASCII, *"....!!"]
    ),
    min_size=1,
    max_size=8,
).map("".join)


class Growing:
    """Numbers words as they are first asked for."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def id_of(self, word: str) -> int:
        if word not in self.words:
            self.words.append(word)
        return self.words.index(word)


@pytest.fixture(scope="module", params=[True, False], ids=["native", "python"])
def native(request: pytest.FixtureRequest) -> bool:
    if request.param and _library() is None:
        pytest.skip("no compiled library on this machine")
    return bool(request.param)


def words_of(sentences: list[str], *, native: bool, lowercase: bool) -> list[list[str]]:
    """Through a table, from ids back to words."""
    vocabulary = Growing()
    ids, lengths = stretches(vocabulary, lowercase=lowercase, native=native).encode(sentences)
    return [[vocabulary.words[i] for i in part] for part in np.split(ids, np.cumsum(lengths)[:-1])]


@given(sentences=st.lists(st.one_of(texts, words_and_marks), min_size=1, max_size=5), lowercase=st.booleans())
@example(
    sentences=["U.S.,", "hello.,", "http://a-", ":-),", "(:)", 'say"("', "'s", "It's,", "a--b", "A\0", "A"],
    lowercase=True,
)
def test_words_are_those_of_tokenise(native: bool, sentences: list[str], lowercase: bool) -> None:
    expected = [tokenise(sentence, lowercase=lowercase) for sentence in sentences]
    assert words_of(sentences, native=native, lowercase=lowercase) == expected


@given(sentences=st.lists(st.one_of(texts, words_and_marks), max_size=5), lowercase=st.booleans())
def test_both_ask_for_the_same_ids_in_the_same_order(sentences: list[str], lowercase: bool) -> None:
    one, other = Growing(), Growing()
    tables = [stretches(v, lowercase=lowercase, native=native) for v, native in ((one, True), (other, False))]
    for part in (sentences[:2], sentences[2:]):
        results = [table.encode(part) for table in tables]
        for left, right in zip(*results, strict=True):
            assert left.dtype == right.dtype
            assert np.array_equal(left, right)
    assert one.words == other.words


def test_every_character_is_a_blank_or_not_as_in_python(native: bool) -> None:
    # All blanks are among the first; of the rest, a few.
    characters = [chr(c) for c in [*range(0x3100), *range(0x3100, sys.maxunicode + 1, 499)]]
    table = stretches(Vocabulary.from_words(["a"]), lowercase=True, native=native)
    separates = np.array([len(f"a{c}a".split()) == 2 for c in characters])
    ids, lengths = table.encode([f"a{c}a" for c in characters])
    ends = np.cumsum(lengths)
    two_plain_words = (lengths == 2) & (ids[ends - 1] == 1) & (ids[ends - lengths] == 1)
    assert np.array_equal(two_plain_words, separates)


def test_no_sentence_and_no_word(native: bool) -> None:
    table = stretches(VOCABULARY, lowercase=True, native=native)
    assert [part.tolist() for part in table.encode([])] == [[], []]
    assert [part.tolist() for part in table.encode(["", " \t", "\x1f"])] == [[], [0, 0, 0]]


def test_a_sentence_ends_a_word(native: bool) -> None:
    assert words_of(["a", "b", "c d", "e"], native=native, lowercase=True) == [["a"], ["b"], ["c", "d"], ["e"]]
    assert words_of(["abcdefgh", "abcdefgh" * 9, "i"], native=native, lowercase=True)[2] == ["i"]


@pytest.mark.parametrize("unit", ["a ", ",", "(", '"', "a-a ", "n't ", "é "])
def test_a_megabyte_of_anything(unit: str) -> None:
    """No clock: cuts that were quadratic would need hours."""
    if _library() is None:
        pytest.skip("no compiled library on this machine")
    count = 1_000_000 // len(unit)
    _, lengths = stretches(VOCABULARY, lowercase=True).encode([unit * count])
    assert lengths.tolist() == [count]


def test_the_python_table_stays_bounded_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.text.stretches.MAX_ENTRIES", 10)
    table = PythonStretches(VOCABULARY, lowercase=True)
    for i in range(100):
        words, _ = table.encode([f"Hello{i},world", "x" * (LONGEST_KEPT + 1)])
        assert words[-2:].tolist() == [VOCABULARY.id_of("world"), 0]
        assert table._kept.cache_info().currsize == min(i + 1, 10)


def test_the_native_table_stays_bounded_and_right() -> None:
    if (library := _library()) is None:
        pytest.skip("no compiled library on this machine")
    table = NativeStretches(library, VOCABULARY, lowercase=True, max_bytes=100_000)
    largest = 0
    for i in range(0, 5_000, 100):
        words, _ = table.encode([" ".join(f"new{j}/word{j} world" for j in range(i, i + 100))])
        assert set(words[3::4].tolist()) == {VOCABULARY.id_of("world")}
        largest = max(largest, table.table_bytes)
    assert 50_000 < largest < 200_000


def test_a_failure_to_learn_leaves_no_trace(native: bool) -> None:
    class Failing(Growing):
        def id_of(self, word: str) -> int:
            if word == "bad" and not self.words:
                raise KeyboardInterrupt
            return super().id_of(word)

    table = stretches(Failing(), lowercase=True, native=native)
    with pytest.raises(KeyboardInterrupt):
        table.encode(["bad good"])
    assert table.encode(["good bad"])[0].tolist() == [0, 1]


def test_threads_can_share_a_table(native: bool) -> None:
    table = stretches(VOCABULARY, lowercase=True, native=native)
    jobs = [[f"{fragment} hello {i}" for fragment in FRAGMENTS] for i in range(40)]
    expected = [PythonStretches(VOCABULARY, lowercase=True).encode(job)[0].tolist() for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        assert [words.tolist() for words, _ in pool.map(table.encode, jobs)] == expected


def test_a_table_can_be_copied(native: bool) -> None:
    table = stretches(VOCABULARY, lowercase=False, native=native)
    expected = table.encode(["Hello world hello"])[0].tolist()
    twin = copy.deepcopy(table)  # by the same protocol that workers use
    assert type(twin) is type(table)
    assert twin.encode(["Hello world hello"])[0].tolist() == expected


def test_without_native_code_python_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMHRNN_NATIVE", "0")
    _library.cache_clear()
    try:
        assert isinstance(WordEncoder(VOCABULARY)._stretches, PythonStretches)
    finally:
        _library.cache_clear()
