"""`partial_fit` after `fit`: what was learned stays, and what was fitted to other weights goes."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn import EMHRNNClassifier
from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import DataError
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.training.checkpoint import load_tensors
from emhrnn.training.run import CARD, HISTORY, METRICS, WEIGHTS
from tests.behaviour.commands import BAD, GOOD

SMALL: dict[str, Any] = {
    "data.validation": 0.4, "em.warmup_epochs": 1, "model.buckets": 2000, "model.embedding_size": 12,
    "model.word_size": 10, "model.phrase_size": 10, "model.sentence_size": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def reviews() -> tuple[list[str], list[str]]:
    """Half of the labels are wrong, so that there is something to calibrate."""
    rng = np.random.default_rng(0)
    some = list(generate_reviews(150, seed=1))
    return [r.text for r in some], [str(rng.choice(["1", r.label])) for r in some]


@pytest.fixture
def fitted(reviews: tuple[list[str], list[str]]) -> EMHRNNClassifier:
    return EMHRNNClassifier(epochs=2, settings=SMALL).fit(*reviews)


def boundary_rate(classifier: EMHRNNClassifier, texts: list[str]) -> float:
    """Of the places that end no sentence."""
    run = classifier.model_.run
    assert isinstance(run.model, EMHRNN)
    batch = Corpus.from_texts(texts, vocabulary=run.vocabulary, text=run.text).batch(np.arange(len(texts)))
    z = run.model.segment(batch, run.model.words(batch))
    return float(z[~batch.sentence_final].mean())


@pytest.mark.parametrize("portion", [["great"], ["great food, and so cheap"]], ids=["one word", "a few words"])
def test_a_small_portion_does_not_undo_the_phrases(
    fitted: EMHRNNClassifier, reviews: tuple[list[str], list[str]], portion: list[str]
) -> None:
    before = boundary_rate(fitted, reviews[0])
    assert before > 0.1
    for _ in range(3):
        fitted.partial_fit(portion, ["5"])
    assert boundary_rate(fitted, reviews[0]) == pytest.approx(before, abs=0.03)


def test_more_is_learned_by_what_was_learned_and_is_not_calibrated(fitted: EMHRNNClassifier, tmp_path: Path) -> None:
    run = fitted.model_.run
    learned, weighed = run.weights()["output.weight"].clone(), run.model.get_parameter("output.weight").detach().clone()
    assert run.temperature != 1.0
    assert run.shares is not None
    loaded = pickle.loads(pickle.dumps(fitted))  # noqa: S301 # our own
    for classifier in (fitted, loaded):
        classifier.partial_fit(["great"], ["5"])
    assert (run.temperature, run.shares) == (1.0, None)
    now = run.model.get_parameter("output.weight").detach()
    assert (now - learned).abs().max() < (now - weighed).abs().max() / 10
    np.testing.assert_array_equal(loaded.predict_proba(["great food"]), fitted.predict_proba(["great food"]))

    fitted.save(tmp_path / "run")
    assert not any((tmp_path / "run" / name).exists() for name in (METRICS, CARD, HISTORY))
    note = load_tensors(tmp_path / "run" / WEIGHTS)[1]
    assert (note["temperature"], note["epoch"], "shares" in note) == (1.0, fitted.n_iter_ - 1, False)


def test_a_first_portion_may_be_of_one_class() -> None:
    """As of a stream that is sorted; the others were announced."""
    texts = [GOOD, BAD]
    classifier = EMHRNNClassifier(settings=SMALL)
    for _ in range(12):
        for text, label in zip(texts, ("good", "bad"), strict=True):
            classifier.partial_fit([text] * 8, [label] * 8, classes=["bad", "good"])
    assert classifier.predict(texts).tolist() == ["good", "bad"]
    for portion in (EMHRNNClassifier(settings=SMALL), classifier):
        with pytest.raises(DataError, match="all 2 texts have the weight 0; give some of them a larger one"):
            portion.partial_fit(texts, ["good", "bad"], classes=["bad", "good"], sample_weight=[0, 0])
    with pytest.raises(DataError, match="the only class is 'good'; announce all labels that will come"):
        EMHRNNClassifier(settings=SMALL).partial_fit(texts, ["good"] * 2, classes=["good"])
    with pytest.raises(DataError, match=r"'new' is none of the classes \['bad', 'good'\]; announce all classes in the"):
        classifier.partial_fit(texts, ["new", "good"])
