"""The corpus in memory against plain lists of words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.corpus import Batch, Corpus
from emhrnn.corpus.dataset import records_of, stratified_split
from emhrnn.errors import ConfigError, DataError
from emhrnn.text import read_document
from emhrnn.text.vocabulary import Vocabulary

TEXTS = ["One good film. Really good!", "bad", "no", "Fine. Good.\n\nBad, bad end.", "\0 \u2003 no"]
LABELS = ["pos", "neg", "neg", "pos", "neg"]


def sentences_of(batch: Batch, vocabulary: Vocabulary) -> list[list[list[str]]]:
    """A slow, obvious reading of a batch."""
    documents = []
    for d in range(batch.n_documents):
        sentences = []
        for s in range(batch.document_offsets[d], batch.document_offsets[d + 1]):
            words = batch.words[batch.sentence_offsets[s] : batch.sentence_offsets[s + 1]]
            sentences.append([vocabulary.words[i] for i in words])
        documents.append(sentences)
    return documents


def expected(text: str) -> list[list[str]]:
    return read_document(text).sentences


WORD_TEXTS = st.lists(st.text(alphabet="ab.! \n'", max_size=40).map(lambda text: text + "a"), min_size=1, max_size=12)


@given(WORD_TEXTS, st.data())
def test_a_batch_of_any_rows_is_what_the_texts_say(texts: list[str], data: st.DataObject) -> None:
    corpus = Corpus.from_texts(texts)
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=20))
    batch = corpus.batch(np.array(rows, dtype=np.int64))
    assert sentences_of(batch, corpus.vocabulary) == [expected(texts[row]) for row in rows]
    assert batch.rows.tolist() == rows
    assert corpus.lengths.tolist() == [sum(map(len, expected(text))) for text in texts]


def test_rows_of_many_record_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.corpus.assembly.CHUNK_CHARACTERS", 10)
    texts = [f"word{i} is here. And {i}." * (1 + i % 3) for i in range(30)]
    corpus = Corpus.from_texts(texts, [i % 2 for i in range(30)])
    rows = np.random.default_rng(0).permutation(30)
    batch = corpus.batch(rows)
    assert len(corpus._store._batches) > 10
    assert sentences_of(batch, corpus.vocabulary) == [expected(texts[row]) for row in rows]
    assert batch.labels is not None
    assert batch.labels.tolist() == (rows % 2).tolist()


def test_every_text_has_a_row() -> None:
    corpus = Corpus.from_texts(TEXTS, LABELS)
    assert len(corpus) == len(TEXTS)
    assert corpus.classes == ("neg", "pos")
    assert corpus.labels is not None
    assert corpus.labels.tolist() == [1, 0, 0, 1, 0]
    assert corpus.class_counts.tolist() == [3, 2]
    assert corpus.lengths.tolist()[2] == corpus.lengths.tolist()[4] == 1
    assert corpus.ids() == ["0", "1", "2", "3", "4"]
    assert corpus.report.unknown_words == 0
    assert corpus.report.repaired == {"NUL bytes": 1}


def test_words_are_ordered_by_frequency_and_rare_ones_are_unknown() -> None:
    corpus = Corpus.from_texts(["b a a", "a b c"], min_count=2)
    assert corpus.vocabulary.words == ["<unk>", "a", "b"]
    assert corpus.batch(np.array([1])).words.tolist() == [1, 2, 0]
    assert corpus.report.unknown_rate == pytest.approx(1 / 6)


def test_known_words_enter_the_vocabulary_however_rare_they_are() -> None:
    corpus = Corpus.from_texts(["b a a", "a b c d"], min_count=2, known={"b", "c", "z"})
    assert corpus.vocabulary.words == ["<unk>", "a", "b", "c"]


def test_a_given_vocabulary_is_used_as_it_is() -> None:
    vocabulary = Vocabulary(["<unk>", "z", "a"])
    corpus = Corpus.from_texts(["b a a"], vocabulary=vocabulary)
    assert corpus.vocabulary is vocabulary
    assert corpus.batch(np.array([0])).words.tolist() == [0, 2, 2]


def test_views_select_and_split() -> None:
    corpus = Corpus.from_texts([f"w{i}" for i in range(40)], [i % 2 for i in range(40)])
    view = corpus.select(np.array([5, 3, 9])).select(np.array([2, 0]))
    assert sentences_of(view.batch(np.array([0, 1])), view.vocabulary) == [[["w9"]], [["w5"]]]
    assert view.batch(np.array([1])).rows.tolist() == [1]
    assert view.source_rows().tolist() == [9, 5]
    rest, held = corpus.split(0.25, np.random.default_rng(0))
    assert (len(rest), len(held)) == (30, 10)
    assert held.class_counts.tolist() == [5, 5]
    assert sorted([*rest.source_rows(), *held.source_rows()]) == list(range(40))
    with pytest.raises(IndexError):
        corpus.batch(np.array([40]))


def test_another_vocabulary() -> None:
    corpus = Corpus.from_texts(["b a a", "a b c"])
    other = Vocabulary(["<unk>", "c", "new", "a"])
    remapped = corpus.remap(other).select(np.array([1]))
    assert remapped.vocabulary is other
    assert remapped.batch(np.array([0])).words.tolist() == [3, 0, 1]


def test_multi_label() -> None:
    corpus = Corpus.from_texts(["x", "y", "z"], [["b", "a"], [], ["c"]])
    assert corpus.multi_label
    assert corpus.classes == ("a", "b", "c")
    labels = corpus.batch(np.array([2, 0, 1])).labels
    assert labels is not None
    assert labels.tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]
    assert corpus.class_counts.tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="row 2 has one label and the rows before it have a list"):
        Corpus.from_texts(["x", "y"], [["b"], "b"])


def test_classes_in_the_order_of_numbers() -> None:
    assert Corpus.from_texts(["x"] * 3, [10, 9, 2.0]).classes == ("2", "9", "10")


def test_a_label_that_the_model_does_not_know() -> None:
    with pytest.raises(DataError, match=r"the texts, row 2 has the label 'c', which is none of the model's classes"):
        Corpus.from_texts(["x", "y"], ["a", "c"], classes=["a", "b"])


def test_training_needs_two_classes() -> None:
    corpus = Corpus.from_texts(["x", "y", "z"], ["a", "b", "a"])
    corpus.check_trainable()
    with pytest.raises(DataError, match="all 2 documents have the class 'a'; training needs at least two classes"):
        corpus.select(np.array([0, 2])).check_trainable()
    with pytest.raises(DataError, match="has no labels"):
        Corpus.from_texts(["x"]).check_trainable()


def test_texts_and_labels_that_do_not_fit() -> None:
    with pytest.raises(DataError, match="2 texts and 1 labels; give one label per text"):
        Corpus.from_texts(["x", "y"], ["a"])
    with pytest.raises(DataError, match="row 1 has no label"):
        Corpus.from_texts(["x"], [float("nan")])
    with pytest.raises(DataError, match="the list of texts has no usable document"):
        Corpus.from_texts([])
    with pytest.raises(DataError, match="row 2 is a int; give strings"):
        records_of(["x", 5], None)


@pytest.mark.parametrize("text", ["word", "word " * 100_000, "no punctuation " * 2500, "😀 مرحبا بالعالم 😀"])
def test_documents_of_any_size_and_script(text: str) -> None:
    corpus = Corpus.from_texts([text, "other"])
    assert sentences_of(corpus.batch(np.array([0])), corpus.vocabulary) == [expected(text)]


@given(st.lists(st.integers(0, 4), min_size=30, max_size=300), st.floats(0.1, 0.6), st.integers(0, 99))
def test_parts_are_disjoint_complete_and_stratified(groups: list[int], fraction: float, seed: int) -> None:
    labels = np.array(groups, dtype=np.int64)
    rest, held = stratified_split(labels, fraction, np.random.default_rng(seed))
    assert sorted([*rest, *held]) == list(range(len(groups)))
    for group in set(groups):
        size = groups.count(group)
        taken = int((labels[held] == group).sum())
        assert taken < size
        assert abs(taken - size * fraction) <= 1 + 1e-9 or taken == size - 1


def test_the_generator_decides() -> None:
    labels = np.arange(100) % 3
    first = stratified_split(labels, 0.2, np.random.default_rng(1))[1]
    assert first.tolist() == stratified_split(labels, 0.2, np.random.default_rng(1))[1].tolist()
    assert first.tolist() != stratified_split(labels, 0.2, np.random.default_rng(2))[1].tolist()
    assert len(first) == 20


def test_impossible_splits() -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        stratified_split(np.zeros(5, dtype=np.int64), 1.0, np.random.default_rng(0))
    with pytest.raises(DataError, match="each of the 5 documents has a label of its own"):
        stratified_split(np.arange(5), 0.1, np.random.default_rng(0))
    with pytest.raises(DataError, match="too few to split off 10%"):
        stratified_split(np.zeros(3, dtype=np.int64), 0.1, np.random.default_rng(0))
