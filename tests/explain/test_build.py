from typing import Any

import numpy as np
import pytest

from emhrnn.errors import DataError
from emhrnn.text import read_document

from .documents import CLASSES, REVIEW, attention, explain_batch, explain_document, split

PROBABILITIES = np.array([0.1, 0.2, 0.7], dtype=np.float32)


def test_a_batch_is_its_documents_one_by_one() -> None:
    documents = [split(text) for text in (REVIEW, "One.", "Not bad. Not good either.")]
    arrays = [attention(document, seed) for seed, document in enumerate(documents)]
    together = {name: np.concatenate([columns[name] for columns in arrays]) for name in arrays[0]}
    probabilities = np.tile(PROBABILITIES, (3, 1))
    batch = explain_batch(
        documents,
        probabilities=probabilities,
        classes=CLASSES,
        labels=["good", None, "bad"],
        **together,
    )
    for explanation, document, columns, label in zip(batch, documents, arrays, ["good", None, "bad"], strict=True):
        alone = explain_document(document, probabilities=PROBABILITIES, classes=CLASSES, label=label, **columns)
        assert explanation.to_dict() == alone.to_dict()


def test_phrases_end_where_z_is_true() -> None:
    document = split("the plot could not have been better. dear parking.")
    z = np.array([False, True, False, False, False, False, True, True, True])
    alpha = np.array([0.5, 0.5, 0.2, 0.2, 0.2, 0.2, 0.2, 1, 1])
    explanation = explain_document(
        document,
        probabilities=PROBABILITIES,
        classes=CLASSES,
        z=z,
        alpha=alpha,
        beta=np.array([0.25, 0.75, 0.5, 0.5]),
        gamma=np.array([0.9, 0.1]),
        known=np.ones(9, dtype=bool),
    )
    assert [[phrase.text for phrase in sentence.phrases] for sentence in explanation.sentences] == [
        ["the plot", "could not have been better."],
        ["dear", "parking."],
    ]
    assert explanation.attention_path().phrase.share == pytest.approx(0.675)
    assert explanation.words[0].boundary is None
    assert explanation.predicted == "good"


def test_float32_rounding_does_not_reach_the_shares() -> None:
    document = split(" ".join(["word"] * 5000) + ".")
    explanation = explain_document(document, probabilities=PROBABILITIES, classes=CLASSES, **attention(document, 0))
    assert explanation.word_shares.sum() == pytest.approx(1, abs=1e-12)


def test_several_labels_are_those_above_one_half() -> None:
    document = split("One.")
    columns = attention(document, 0)
    probabilities = np.array([0.9, 0.1, 0.6])
    some = explain_document(document, probabilities=probabilities, classes=CLASSES, multi_label=True, **columns)
    assert some.predicted == ("bad", "good")
    none = explain_document(document, probabilities=probabilities / 10, classes=CLASSES, multi_label=True, **columns)
    assert none.predicted == ()


def test_documents_as_the_text_package_reads_them() -> None:
    text = "I don't like it.<br /><br />It's the worst!"
    document = read_document(text)
    explanation = explain_document(document, probabilities=PROBABILITIES, classes=CLASSES, **attention(document, 0))
    assert explanation.sentences[0].text == "I don't like it."
    assert [word.text for word in explanation.words] == [
        "I",
        "do",
        "n't",
        "like",
        "it",
        ".",
        "It",
        "'s",
        "the",
        "worst",
        "!",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gamma": np.array([0.5, 0.2, 0.2])}, "gamma of document 1 sums to 0.9"),
        ({"gamma": np.array([1.5, -0.5, 0.0])}, "gamma holds a negative or missing weight"),
        ({"gamma": np.array([np.nan, 0.5, 0.5])}, "gamma holds a negative or missing weight"),
        ({"alpha": np.ones(23)}, r"alpha of phrase \d+ sums to"),
    ],
)
def test_weights_that_are_no_softmaxes_are_refused(change: dict[str, Any], message: str) -> None:
    document = split(REVIEW)
    given = {"probabilities": PROBABILITIES, "classes": CLASSES, **attention(document, 0), **change}
    with pytest.raises(DataError, match=message):
        explain_document(document, **given)


def test_a_blank_document_has_no_explanation() -> None:
    document, none = read_document("  "), np.zeros(0)
    with pytest.raises(DataError, match="at least one word"):
        explain_document(
            document,
            probabilities=PROBABILITIES,
            classes=CLASSES,
            z=none > 0,
            alpha=none,
            beta=none,
            gamma=none,
            known=none > 0,
        )
