import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus import Corpus
from emhrnn.training import word_vectors
from emhrnn.training.word_vectors import SPREAD, WINDOW, learned_vectors
from tests.oracles import word_vectors as oracle

WORDS = ["good", "bad", "soup", "was", "the", "not", "very"]
documents = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8), min_size=1, max_size=3), min_size=2, max_size=6
)


def corpus_of(texts: list[list[list[str]]]) -> Corpus:
    labels = [str(number % 2) for number in range(len(texts))]
    return Corpus.from_texts([" ".join(" ".join(s) + " ." for s in text) for text in texts], labels, min_count=1)


def ids_of(corpus: Corpus) -> list[list[list[int]]]:
    batch = corpus.batch(np.arange(len(corpus)))
    words = np.split(batch.words, batch.sentence_offsets[1:-1])
    return [[words[i].tolist() for i in range(*batch.document_offsets[d : d + 2])] for d in range(len(corpus))]


@settings(max_examples=30, deadline=None)
@given(texts=documents, contexts=st.sampled_from([3, 100]))
def test_vectors_are_those_of_the_dense_decomposition(texts, contexts):
    corpus = corpus_of(texts)
    words = len(corpus.vocabulary)
    before, word_vectors.CONTEXTS = word_vectors.CONTEXTS, contexts
    try:
        x = learned_vectors(corpus, words + 2, seed=0).astype(np.float64)
    finally:
        word_vectors.CONTEXTS = before
    m = oracle.information(ids_of(corpus), words, min(contexts, words), window=WINDOW)
    assert x.shape == (words, words + 2)
    if not m.any():
        assert not x.any()
        return
    np.testing.assert_allclose(x.std(), SPREAD, rtol=1e-4)
    np.testing.assert_allclose(x @ x.T / np.abs(x @ x.T).max(), oracle.products(m), atol=2e-3)


def test_words_of_like_neighbours_have_like_vectors_whatever_the_batches(monkeypatch):
    texts = [[["the", food, "was", taste]] for food in ("soup", "fish") for taste in ("good", "bad")] * 20
    texts += [[["very", "not", "not", "very"]]] * 20
    corpus = corpus_of(texts)
    whole = learned_vectors(corpus, 5, seed=1)
    monkeypatch.setattr(word_vectors, "AT_ONCE", 10)
    np.testing.assert_allclose(learned_vectors(corpus, 5, seed=1), whole, atol=1e-5)
    soup, fish, not_ = (whole[corpus.vocabulary.id_of(word)] for word in ("soup", "fish", "not"))
    assert np.linalg.norm(soup - fish) < 0.2 * np.linalg.norm(soup - not_)


def test_words_that_stand_alone_have_no_vector():
    lonely = Corpus.from_texts(["good", "bad"], ["0", "1"], min_count=1)
    assert not learned_vectors(lonely, 4, seed=0).any()
