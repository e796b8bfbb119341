"""The embedded corpus: deterministic, balanced, clean text, true phrase ends, and more than a bag of words."""

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from emhrnn.corpus.reviews import (
    BANDS,
    KINDS,
    MIRROR,
    PROFILES,
    Review,
    RuleContext,
    domains,
    draw_label,
    draw_opinions,
    everyday_reviews,
    generate_reviews,
    score,
    symbol,
    write_reviews,
    write_text,
)  # fmt: skip
from emhrnn.text import read_document

WORD = re.compile(r"\w+|[^\w\s]")
SENTENCE_END = re.compile(r"[.!?](?= |$)")


@pytest.fixture(scope="module")
def reviews() -> list[Review]:
    return list(generate_reviews(1200, seed=1))


def test_one_seed_gives_the_same_reviews_and_a_larger_count_only_adds(reviews: list[Review]) -> None:
    assert list(generate_reviews(50, seed=1)) == reviews[:50]
    assert list(generate_reviews(50, seed=2)) != reviews[:50]


def test_the_first_review_never_changes() -> None:
    """Numbers in the documentation come from this corpus: change the grammar on purpose, then this line."""
    (review,) = generate_reviews(1, seed=0)
    assert review.text.startswith(
        "My roommate and I talked about the Invisible Falcon Gallery for eight days. The signage used to be bad,"
    )


def test_classes_and_domains_are_balanced(reviews: list[Review]) -> None:
    labels = Counter(review.label for review in reviews)
    assert sorted(labels) == ["1", "2", "3", "4", "5"]
    assert max(labels.values()) < 0.25 * len(reviews)
    assert {review.domain for review in reviews} == set(domains())
    assert len(domains()) >= 6


def test_lengths_and_vocabulary(reviews: list[Review]) -> None:
    sentences = [len(SENTENCE_END.findall(review.text)) for review in reviews]
    words = [len(WORD.findall(review.text)) for review in reviews]
    assert min(sentences) >= 3
    assert max(sentences) <= 15
    assert 60 <= np.mean(words) <= 150
    assert min(words) >= 20
    assert max(words) <= 200
    assert len({word for review in reviews for word in WORD.findall(review.text.lower())}) > 2000


def test_phrase_ends_are_word_ends_and_hold_every_sentence_end(reviews: list[Review]) -> None:
    for review in reviews:
        ends = review.phrase_ends
        assert list(ends) == sorted(set(ends))
        assert ends[-1] == len(review.text)
        assert {match.end() for match in SENTENCE_END.finditer(review.text)} <= set(ends)
        assert all(review.text[end - 1] != " " and review.text[end : end + 1] in ("", " ") for end in ends)
        assert " ".join(review.phrases) == review.text


def test_our_own_text_reader_finds_the_same_sentences_and_every_phrase_end(reviews: list[Review]) -> None:
    for review in reviews[:300]:
        document = read_document(review.text)
        assert document.n_sentences == len(SENTENCE_END.findall(review.text))
        assert set(review.phrase_ends) <= set(document.ends.tolist())


@pytest.mark.parametrize(
    "artefact",
    [
        r"  |^ | $|\n",
        r" [,.;!?]",
        r"[,;][,.;!?]|[.!?]{2}",
        r"[{}<>\[\]|@%*_/]",
        r"\b[Aa] [aeioAEIO]",
        r"\b[Aa]n [^aeiouAEIOU]",
        r"[.!?] [a-z]",
        r"\bi\b",
        r"\bthe the\b|\bthe The\b",
        r"\bthey was\b|\bit were\b|\bshe were\b|\bs?he are\b",
        r"[^ -~]",
    ],
)
def test_text_has_no_artefacts(reviews: list[Review], artefact: str) -> None:
    pattern = re.compile(artefact)
    assert [review.text for review in reviews if pattern.search(review.text)] == []


def test_stars_follow_the_score_and_bands_do_not_touch() -> None:
    rng = Random(3)
    for stars, (low, high) in BANDS.items():
        assert PROFILES[stars][-1] == 100
        assert all(low <= score(draw_opinions(stars, rng)) <= high for _ in range(200))
    ordered = [BANDS[stars] for stars in range(1, 6)]
    assert all(below[1] < above[0] for below, above in pairwise(ordered))


def test_label_noise_is_small_and_one_star_at_most() -> None:
    rng = Random(4)
    for stars in range(1, 6):
        labels = [int(draw_label(stars, rng)) for _ in range(3000)]
        assert np.mean([label == stars for label in labels]) > 0.95
        assert {1, 2, 3, 4, 5} & {stars - 1, stars, stars + 1} == set(labels)


def test_no_opinion_word_stands_on_both_sides() -> None:
    for kind in KINDS:
        context = RuleContext(domains()[0], kind)
        for word, opposite in MIRROR.items():
            assert not set(map(str, symbol(word, context))) & set(map(str, symbol(opposite, context)))
            assert symbol(word, context._replace(blame=True)) == symbol(opposite, context)


def test_surface_writes_articles_capitals_and_ends() -> None:
    text, ends = write_text(["it was a ordeal, | not a useful one.", "an | end!"])
    assert text == "It was an ordeal, not a useful one. An end!"
    assert [text[:end] for end in ends[:2]] == ["It was an ordeal,", "It was an ordeal, not a useful one."]
    assert ends[-1] == len(text)


def test_write_reviews_is_a_jsonl_file_with_every_field(tmp_path: Path, reviews: list[Review]) -> None:
    path = tmp_path / "reviews.jsonl"
    write_reviews(path, reviews[:3])
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["0", "1", "2"]
    assert [Review(r["text"], r["label"], tuple(r["phrase_ends"]), r["domain"]) for r in rows] == reviews[:3]


def test_everyday_reviews_are_short_plain_and_balanced() -> None:
    everyday = list(everyday_reviews(1500, seed=0))
    assert list(everyday_reviews(20, seed=0)) == everyday[:20]
    labels = Counter(review.label for review in everyday)
    assert sorted(labels) == ["1", "2", "3", "4", "5"]
    assert max(labels.values()) < 0.25 * len(everyday)
    for review in everyday:
        assert 1 <= len(review.phrase_ends) <= 3
        assert " ".join(review.phrases) == review.text
        assert review.text[0].isupper()
        assert review.text[-1] in ".!"
        assert not re.search(r"[{}<>\[\]|@%*_]|  | [,.!]|[.!]{2}", review.text), review.text


def test_a_bag_of_words_learns_something_but_not_enough(reviews: list[Review]) -> None:
    test = list(generate_reviews(500, seed=2))
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    model = LogisticRegression(C=3.0, tol=1e-2).fit(
        vectors.fit_transform([review.text for review in reviews]), [review.label for review in reviews]
    )
    accuracy = model.score(vectors.transform([review.text for review in test]), [review.label for review in test])
    assert 0.35 < accuracy < 0.65
