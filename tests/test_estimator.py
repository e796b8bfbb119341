"""EMHRNNClassifier: what scikit-learn users expect, the same model as elsewhere, and `partial_fit` after `fit`."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emhrnn
from emhrnn import EMHRNNClassifier, Explanation
from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.training.arrays import load_arrays
from emhrnn.training.run import CARD, HISTORY, METRICS, WEIGHTS
from tests.behaviour.commands import BAD, GOOD, SMALL, SMALL_EM, known, rows, write_reviews

TEXTS = [text for text, _ in rows(24)]
NAMES = [label for _, label in rows(24)]


def small(**options: Any) -> EMHRNNClassifier:
    return EMHRNNClassifier(settings=known("em-hrnn", SMALL), **options)


@pytest.fixture(scope="module")
def fitted() -> EMHRNNClassifier:
    return small().fit(TEXTS, NAMES)


def test_predictions(fitted: EMHRNNClassifier) -> None:
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.shape == (24, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert fitted.predict(TEXTS).tolist() == fitted.classes_[probabilities.argmax(axis=1)].tolist()
    assert fitted.score(TEXTS, NAMES) == np.mean(fitted.predict(TEXTS) == np.array(NAMES))
    assert fitted.predict_proba([]).shape == (0, 2)
    assert [epoch.epoch for epoch in fitted.history_] == [0]
    assert fitted.best_epoch_ == 0


def test_it_learns() -> None:
    settings = {
        **known("em-hrnn", SMALL),
        "em.estep": "none",
        "training.learning_rate": 0.05,
        "training.batch_words": 100,
        "model.word_size": 12,
    }
    del settings["training.epochs"]
    classifier = EMHRNNClassifier(settings=settings, epochs=12).fit(TEXTS * 2, NAMES * 2)
    assert classifier.score(TEXTS, NAMES) > 0.9


def test_explanations(fitted: EMHRNNClassifier) -> None:
    one = fitted.explain(GOOD)
    assert isinstance(one, Explanation)
    assert one.text == GOOD
    assert "Decided most by" in str(one)
    several = fitted.explain([GOOD, "bad"])
    assert [explanation.text for explanation in several] == [GOOD, "bad"]
    assert several[0].predicted == one.predicted


def test_a_saved_classifier_is_a_run(fitted: EMHRNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run")
    model = emhrnn.load(tmp_path / "run")
    np.testing.assert_array_equal(model.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert model.predict(TEXTS) == fitted.predict(TEXTS).tolist()
    with pytest.raises(DataError, match="exists and is not empty"):
        fitted.save(tmp_path / "run")
    fitted.save(tmp_path / "run", overwrite=True)


def test_it_is_the_same_model_as_that_of_the_command_line(fitted: EMHRNNClassifier, tmp_path: Path) -> None:
    trained = emhrnn.train(
        write_reviews(tmp_path / "reviews.csv", 24), tmp_path / "run", settings=SMALL_EM, progress=False
    )
    np.testing.assert_array_equal(trained.model.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_vectors(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("good 1 2 3 4\nbad 4 3 2 1\nexcellent 1 2 3 5\n")
    classifier = small(vectors=tmp_path / "vectors.txt").fit(TEXTS, NAMES)
    assert "excellent" in classifier.model_.run.vocabulary


@pytest.mark.parametrize(
    ("texts", "labels", "told"),
    [
        ("one text", ["a"], "give a list of texts"),
        ([*TEXTS[:23], None], NAMES, "text 24 is a NoneType"),
        (TEXTS, NAMES[:-1], "24 texts and 23 labels"),
        (TEXTS, ["a"] * 24, "training needs at least two classes"),
        (TEXTS, ["a", " a"] * 12, "are both written 'a'"),
        (TEXTS, ["a", ""] * 12, r"label 2 is missing \(''\)"),
        (TEXTS, np.array(["a", None] * 12, dtype=object), r"label 2 is missing \(None\)"),
        (TEXTS, [True, 2] * 12, "of several types"),
        (TEXTS, None, "the labels are None; give a list of them, one label per text"),
        (TEXTS, [["a"], []] * 12, "the only label is 'a'"),
        ({"text": TEXTS}, NAMES, "a table was given"),
        ([*TEXTS[:-1], " "], NAMES, "text 24 has no words"),
        (TEXTS, np.array([1, "n"] * 12, dtype=object), "of several types"),
        (TEXTS, [[1, "n"], ["n"]] * 12, "of several types"),
        (TEXTS[:2], NAMES[:2], "too few"),
    ],
)
def test_input_that_cannot_be_used(texts: Any, labels: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        small().fit(texts, labels)


def test_a_model_refuses_what_the_classifier_refuses(fitted: EMHRNNClassifier) -> None:
    """To go through a table is to go through the names of its columns."""
    model, table = fitted.model_, {"text": TEXTS, "label": NAMES}
    for ask in (model.predict, model.predict_proba, model.explain, fitted.predict):
        with pytest.raises(DataError, match="a table was given; give its column of texts"):
            ask(table)
    assert model.predict(text for text in TEXTS) == model.predict(TEXTS)
    with pytest.raises(DataError, match="the limit is 0 phrases; give 1 or more"):
        model.counterfactual(GOOD, limit=0)


def test_labels_and_weights_that_can_be_read_once(fitted: EMHRNNClassifier) -> None:
    other = small().fit(iter(TEXTS), iter(NAMES), iter([1.0] * 24))
    np.testing.assert_array_equal(other.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    with pytest.raises(DataError, match="give one number per text"):
        small().fit(TEXTS, NAMES, ["a"] * 24)


def test_a_label_that_was_never_seen_is_wrong() -> None:
    classifier = small().fit(TEXTS, [["good"], ["bad", "cheap"]] * 12)
    found = classifier.predict(TEXTS)
    assert classifier.score(TEXTS, found) == 1
    assert classifier.score(TEXTS, [*found[:12], *[["new"]] * 12]) == 0.5
    assert classifier.score(TEXTS, [*found[:12], *[["new"]] * 12], [1] * 12 + [3] * 12) == 0.25


def test_document_vectors_have_names(fitted: EMHRNNClassifier) -> None:
    names = fitted.get_feature_names_out()
    assert names.tolist()[:2] == ["emhrnnclassifier0", "emhrnnclassifier1"]
    assert len(names) == fitted.transform(TEXTS).shape[1]
    assert small().fit_transform(TEXTS, NAMES).shape == (24, len(names))
    table = small().set_output(transform="pandas").fit(TEXTS, NAMES).transform(TEXTS)
    assert table.columns.tolist() == names.tolist()


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'training.epochs'"):
        EMHRNNClassifier(settings={"training.epoch": 3}).fit(TEXTS, NAMES)
    with pytest.raises(ConfigError, match=r"write section\.key"):
        EMHRNNClassifier(settings={"epochs": 3}).fit(TEXTS, NAMES)
    with pytest.raises(ConfigError, match="unknown preset"):
        EMHRNNClassifier(preset="none").fit(TEXTS, NAMES)


PORTIONS: dict[str, Any] = {
    "data.validation": 0.4, "em.warmup_epochs": 1, "model.embedding_size": 12,
    "model.word_size": 10, "model.phrase_size": 10, "model.sentence_size": 10,
}  # fmt: skip


@pytest.fixture(scope="module")
def reviews() -> tuple[list[str], list[str]]:
    """Half of the labels are wrong, so that there is something to calibrate."""
    rng = np.random.default_rng(0)
    some = list(generate_reviews(150, seed=1))
    return [r.text for r in some], [str(rng.choice(["1", r.label])) for r in some]


@pytest.fixture
def trained(reviews: tuple[list[str], list[str]]) -> EMHRNNClassifier:
    return EMHRNNClassifier(epochs=2, settings=PORTIONS).fit(*reviews)


def boundary_rate(classifier: EMHRNNClassifier, texts: list[str]) -> float:
    """Of the places that end no sentence."""
    run = classifier.model_.run
    assert isinstance(run.model, EMHRNN)
    batch = Corpus.from_texts(texts, vocabulary=run.vocabulary, text=run.text).batch(np.arange(len(texts)))
    z = run.model.segment(batch, run.model.words(batch))
    return float(z[~batch.sentence_final].mean())


@pytest.mark.parametrize("portion", [["great"], ["great food, and so cheap"]], ids=["one word", "a few words"])
def test_a_small_portion_does_not_undo_the_phrases(
    trained: EMHRNNClassifier, reviews: tuple[list[str], list[str]], portion: list[str]
) -> None:
    before = boundary_rate(trained, reviews[0])
    assert before > 0.1
    for _ in range(3):
        trained.partial_fit(portion, ["5"])
    assert boundary_rate(trained, reviews[0]) == pytest.approx(before, abs=0.03)


def test_more_is_learned_by_what_was_learned_and_is_not_calibrated(trained: EMHRNNClassifier, tmp_path: Path) -> None:
    run = trained.model_.run
    assert run.temperature != 1.0
    loaded = pickle.loads(pickle.dumps(trained))  # noqa: S301 # our own
    for classifier in (trained, loaded):
        classifier.partial_fit(["great"], ["5"])
    assert run.temperature == 1.0
    np.testing.assert_array_equal(loaded.predict_proba(["great food"]), trained.predict_proba(["great food"]))

    trained.save(tmp_path / "run")
    assert not any((tmp_path / "run" / name).exists() for name in (METRICS, CARD, HISTORY))
    note = load_arrays(tmp_path / "run" / WEIGHTS)[1]
    assert (note["temperature"], note["epoch"]) == (1.0, trained.n_iter_ - 1)


def test_a_first_portion_may_be_of_one_class() -> None:
    """As of a stream that is sorted; the others were announced."""
    texts = [GOOD, BAD]
    classifier = EMHRNNClassifier(settings={**PORTIONS, "em.estep": "none", "training.learning_rate": 0.05})
    for _ in range(12):
        for text, label in zip(texts, ("good", "bad"), strict=True):
            classifier.partial_fit([text] * 8, [label] * 8, classes=["bad", "good"])
    assert classifier.predict(texts).tolist() == ["good", "bad"]
    for portion in (EMHRNNClassifier(settings=PORTIONS), classifier):
        with pytest.raises(DataError, match="all 2 texts have the weight 0; give some of them a larger one"):
            portion.partial_fit(texts, ["good", "bad"], classes=["bad", "good"], sample_weight=[0, 0])
    with pytest.raises(DataError, match="the only class is 'good'; announce all labels that will come"):
        EMHRNNClassifier(settings=PORTIONS).partial_fit(texts, ["good"] * 2, classes=["good"])
    with pytest.raises(DataError, match=r"'new' is none of the classes \['bad', 'good'\]; announce all classes in the"):
        classifier.partial_fit(texts, ["new", "good"])
