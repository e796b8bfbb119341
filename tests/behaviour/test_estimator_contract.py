"""What scikit-learn asks of a classifier of texts. Its own `check_estimator` skips almost all of it for text, so the
contract is written out here, one rule a test."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import check_estimator

import emhrnn
from emhrnn import DocumentClassifier, EMHRNNClassifier
from emhrnn.errors import ConfigError, DataError, EmhrnnError, TrainingError
from tests.behaviour.commands import SMALL, known, rows

SETTINGS: dict[str, Any] = known("em-hrnn", SMALL) | {
    "em.estep": "blocks",
    "em.block_length": 1,
    "training.learning_rate": 0.02,
    "training.batch_words": 150,
}
TEXTS = [text for text, _ in rows(24)]
NAMES = [label for _, label in rows(24)]
SETS = [["good", "cheap"] if name == "good" else ["cheap"] if i % 4 else [] for i, name in enumerate(NAMES)]
TABLE = np.array([[name in labels for name in ("cheap", "good")] for labels in SETS]).astype(int)


def small(**options: Any) -> EMHRNNClassifier:
    return EMHRNNClassifier(**{"settings": SETTINGS, **options})


@pytest.fixture(scope="module")
def fitted() -> EMHRNNClassifier:
    return small().fit(TEXTS, NAMES)


def same(one: Any, other: Any, texts: list[str] = TEXTS) -> None:
    np.testing.assert_array_equal(one.predict_proba(texts), other.predict_proba(texts))


# ---------------------------------------------------------------------- parameters


def test_init_only_assigns() -> None:
    given = {
        "epochs": -3, "preset": "none", "vectors": "none", "settings": {"no.such": 1}, "random_state": 9,
        "verbose": False, "class_weight": "odd", "validation_fraction": 7.0, "n_iter_no_change": -1,
    }  # fmt: skip
    assert EMHRNNClassifier(**given).get_params() == given  # type: ignore[arg-type]
    assert DocumentClassifier("none", **given).get_params() == {"model": "none", **given}  # type: ignore[arg-type]


def test_clone_and_set_params() -> None:
    settings = {"em.estep": "blocks"}
    copy = clone(small(settings=settings, epochs=3))
    assert copy.get_params() == small(settings=settings, epochs=3).get_params()
    assert copy.set_params(epochs=2).epochs == 2
    with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
        copy.set_params(epoch=2)


def test_clone_of_a_fitted_one_is_not_fitted(fitted: EMHRNNClassifier) -> None:
    with pytest.raises(NotFittedError):
        clone(fitted).predict(TEXTS)


def test_repr_names_what_was_changed() -> None:
    assert repr(EMHRNNClassifier(epochs=3)) == "EMHRNNClassifier(epochs=3)"
    assert repr(DocumentClassifier(model="hn-att")) == "DocumentClassifier(model='hn-att')"


def test_tags() -> None:
    tags = get_tags(small())
    assert is_classifier(small())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.classifier_tags.multi_label
    assert tags.target_tags.required


def test_check_estimator_finds_no_fault() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)  # it says that it cannot test estimators of texts
        found = check_estimator(small(), on_fail=None)
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []


# Every check of scikit-learn for a classifier that is a transformer and has partial_fit. Those of numbers build rows of
# features and labels of their own, which a classifier of texts refuses; what they ask for is tested here with texts.
CHECKS = {
    "run": """estimator_cloneable estimator_repr estimator_tags_renamed
        estimators_unfitted get_params_invariance mixin_order no_attributes_set_in_init
        parameters_default_constructible set_params supervised_y_no_nan transformers_unfitted valid_tag_types""",
    "X is a column of texts: there are no features, dtypes, sparse or array-API forms of it": """array_api_input
        array_api_mixed_inputs array_api_same_namespace complex_data dtype_object estimator_sparse_array
        estimator_sparse_matrix estimator_sparse_tag estimators_dtypes estimators_nan_inf
        estimators_partial_fit_n_features f_contiguous_array_estimator fit1d fit2d_1feature fit2d_1sample
        fit2d_predict1d n_features_in n_features_in_after_fitting positive_only_tag_during_fit readonly_memmap_input
        sample_weight_equivalence_on_sparse_data transformer_preserve_dtypes""",
    "fits rows of numbers; texts: tests of fit, predict, score and containers below": """classifier_data_not_an_array
        classifiers_classes classifiers_train decision_proba_consistency dict_unchanged dont_overwrite_parameters
        estimators_empty_data_messages estimators_fit_returns_self estimators_overwrite_params estimators_pickle
        fit_check_is_fitted fit_idempotent fit_score_takes_y methods_sample_order_invariance methods_subset_invariance
        non_transformer_estimators_n_iter pipeline_consistency requires_y_none supervised_y_2d
        transformer_data_not_an_array transformer_general transformer_n_iter""",
    "fits rows of numbers; texts: tests of weights below": """all_zero_sample_weights_error
        class_weight_balanced_linear_classifier class_weight_classifiers sample_weight_equivalence_on_dense_data
        sample_weights_list sample_weights_not_an_array sample_weights_not_overwritten sample_weights_pandas_series
        sample_weights_shape""",
    "fits rows of numbers; texts: tests of several labels below": """
        classifiers_multilabel_output_format_decision_function classifiers_multilabel_output_format_predict
        classifiers_multilabel_output_format_predict_proba classifiers_multilabel_representation_invariance""",
    "one class is refused, with what to do: a model of one class would hide a wrong label column": """
        classifiers_one_label classifiers_one_label_sample_weights""",
    "labels that are fractions are classes up to 50 of them: grades such as 3.5": "classifiers_regression_target",
    "there are no coefficients": "sparsify_coefficients",
    "gives values of wrong types, which type checks refuse in this test run; test_init_only_assigns": (
        "do_not_raise_errors_in_init_or_set_params"
    ),
}


def test_every_check_of_scikit_learn_runs_or_has_a_reason() -> None:
    """A check that is new in scikit-learn fails here until it is run or has a reason."""
    known = {f"check_{name}" for names in CHECKS.values() for name in names.split()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = set()
        for estimator in (SGDClassifier(), LinearDiscriminantAnalysis(), MLPClassifier()):
            for _, check in estimator_checks.estimator_checks_generator(estimator, legacy=True):
                while hasattr(check, "func"):
                    check = check.func
                listed.add(check.__name__)
    assert listed == known


@pytest.mark.parametrize("name", CHECKS["run"].split())
def test_checks_that_need_no_numbers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        getattr(estimator_checks, f"check_{name}")("DocumentClassifier", DocumentClassifier())


@pytest.mark.parametrize(
    ("options", "texts", "labels"),
    [
        ({}, "one text", ["good"]),
        ({}, TEXTS, NAMES[1:]),
        ({}, [*TEXTS[1:], float("nan")], NAMES),
        ({"epochs": 0, "settings": {}}, TEXTS, NAMES),
        ({"preset": "none"}, TEXTS, NAMES),
        ({"settings": {"no.such": 1}}, TEXTS, NAMES),
        ({"vectors": "no such file"}, TEXTS, NAMES),
    ],
)
def test_bad_data_and_parameters_are_value_errors(options: dict[str, Any], texts: Any, labels: list[str]) -> None:
    """As scikit-learn's own, so that `except ValueError` finds them; each is one of ours, too."""
    with pytest.raises(ValueError, match=r"; |epochs|unknown|vectors") as caught:
        small(**options).fit(texts, labels)
    assert isinstance(caught.value, EmhrnnError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 3, "settings": {"training.epochs": 1}}, "epochs is 3, and the settings have training.epochs = 1;"),
        ({"settings": {"model.name": "hn-att"}}, "model is 'em-hrnn', and the settings have model.name = 'hn-att'"),
        ({"random_state": 4, "settings": {"training.seed": 5}}, "random_state is 4, and the settings have"),
        ({"settings": ["em.estep=none"]}, "give a dict of names and values"),
    ],
)
def test_settings_are_given_once_and_by_name(options: dict[str, Any], message: str) -> None:
    """A search over `epochs` would find all alike if the settings won in silence."""
    with pytest.raises(ConfigError, match=message):
        EMHRNNClassifier().set_params(**options).fit(TEXTS, NAMES)


@pytest.mark.parametrize("labels", ["gb" * 12, b"gb" * 12, {"good", "bad"}, dict.fromkeys(range(24)), np.array("good")])
def test_what_has_no_order_or_is_one_value_is_no_sequence(labels: Any) -> None:
    """Letters of a string were labels, one each; a set has its own order."""
    with pytest.raises(DataError, match=r"the labels are .*; give a list of them, one label per text"):
        small().fit(TEXTS, labels)
    for texts in (set(TEXTS), np.array(TEXTS[0]), b"bytes"):
        with pytest.raises(DataError, match="was given; give a list of texts"):
            small().fit(texts, NAMES)


def test_columns_of_arrow_and_tables_of_labels(fitted: EMHRNNClassifier) -> None:
    table = pa.table({"text": TEXTS, "label": NAMES})
    same(small().fit(table["text"], table["label"]), fitted)
    with pytest.raises(DataError, match=r"the labels have the shape \(24, 1\)"):
        small().fit(TEXTS, pl.DataFrame({"label": NAMES}))
    with pytest.raises(DataError, match=r"the labels have the shape \(24, 2\)"):
        small().fit(TEXTS, pd.DataFrame(TABLE, dtype="Int64").mask(TABLE == 1))
    assert small().fit(TEXTS, pl.DataFrame(TABLE)).predict(TEXTS).shape == TABLE.shape


# ---------------------------------------------------------------------- fit and predict


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "explain"]
)
def test_before_fit_it_says_what_to_do(method: str) -> None:
    with pytest.raises(NotFittedError, match=r"call fit\(texts, labels\) first.*emhrnn\.load"):
        getattr(small(), method)(TEXTS)


def test_before_fit_there_is_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match=r"call fit\(texts, labels\) first"):
        small().save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_fit_returns_itself_and_keeps_its_parameters() -> None:
    classifier = small()
    before = classifier.get_params()
    assert classifier.fit(TEXTS, NAMES) is classifier
    assert classifier.get_params() == before


def test_fitted_attributes(fitted: EMHRNNClassifier) -> None:
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.n_iter_ == len(fitted.history_) == 1
    assert not hasattr(fitted, "n_features_in_")  # a text is one value


def test_probabilities_agree_with_labels_and_score(fitted: EMHRNNClassifier) -> None:
    shares = fitted.predict_proba(TEXTS)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert fitted.predict(TEXTS).tolist() == fitted.classes_[shares.argmax(axis=1)].tolist()
    assert fitted.score(TEXTS, NAMES) == np.mean(fitted.predict(TEXTS) == np.array(NAMES))
    weights = np.arange(24)
    right = fitted.predict(TEXTS) == np.array(NAMES)
    assert fitted.score(TEXTS, NAMES, weights) == pytest.approx(np.average(right, weights=weights))


def test_decisions_and_logarithms_agree_with_probabilities(fitted: EMHRNNClassifier) -> None:
    shares = fitted.predict_proba(TEXTS)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(TEXTS)), shares, rtol=1e-5)
    odds = fitted.decision_function(TEXTS)
    assert odds.shape == (24,)  # two classes
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), shares[:, 1], atol=1e-5)
    assert fitted.decision_function([]).shape == (0,)
    three = DocumentClassifier("tfidf-lr").fit(TEXTS, ["x", "y", "z"] * 8)
    logits = three.decision_function(TEXTS)
    assert logits.shape == (24, 3)
    assert three.classes_[logits.argmax(axis=1)].tolist() == three.predict(TEXTS).tolist()
    several = DocumentClassifier("tfidf-lr").fit(TEXTS, TABLE)
    assert ((several.decision_function(TEXTS) > 0) == several.predict(TEXTS)).all()


def test_validation_of_ones_own_and_none() -> None:
    """Scores are of the texts that are given; with nothing held out, all texts are learned from, in all epochs."""
    quick = {"epochs": 2, "settings": {"training.threads": 1}}
    own = DocumentClassifier(**quick).fit(TEXTS, NAMES, validation=(TEXTS[:6], NAMES[:6]))
    assert own._fitted.scores.documents == 6
    assert own.model_.run.model.ngrams.total == 24
    none = DocumentClassifier(**quick, validation_fraction=0.0).fit(TEXTS, NAMES)
    assert none.model_.run.model.ngrams.total == 24
    assert none.best_epoch_ == 1
    assert none.model_.run.temperature == 1
    for wrong in (TEXTS, (TEXTS, NAMES, NAMES)):
        with pytest.raises(DataError, match=r"give validation=\(texts, labels\)"):
            DocumentClassifier(**quick).fit(TEXTS, NAMES, validation=wrong)
    with pytest.raises(DataError):
        DocumentClassifier(**quick).fit(TEXTS, NAMES, validation=(["A text."], ["other"]))


def test_evidence_as_features() -> None:
    classifier = DocumentClassifier(epochs=1, settings={"training.threads": 1, "model.longest": 3}).fit(TEXTS, NAMES)
    features, names = classifier.transform(TEXTS), classifier.get_feature_names_out().tolist()
    assert names == ["evidence_bad", "evidence_good", "phrases_1", "phrases_2", "phrases_3"]
    assert features.shape == (24, 5)
    assert (features[:, 0] < features[:, 1]).tolist() == (classifier.predict(TEXTS) == "good").tolist()
    words = classifier.model_.run.encoder.encode(TEXTS)
    known = np.add.reduceat(words.words != 0, words.word_offsets[:-1])
    assert (features[:, 2] <= known).all()
    assert (np.diff(features[:, 2:], axis=1) <= 0).all()  # a phrase is seen only if what it ends with is
    assert classifier.transform([]).shape == (0, 5)


def test_a_second_fit_forgets_the_first(fitted: EMHRNNClassifier) -> None:
    classifier = small().fit(TEXTS[:12], ["x", "y", "z"] * 4)
    same(classifier.fit(TEXTS, NAMES), fitted)


@pytest.mark.parametrize("kind", [np.array, pd.Series, pl.Series, tuple, lambda x: np.array(x, dtype=object)])
def test_texts_and_labels_of_any_container(kind: Any, fitted: EMHRNNClassifier) -> None:
    classifier = small().fit(kind(TEXTS), kind(NAMES))
    np.testing.assert_array_equal(classifier.predict_proba(kind(TEXTS)), fitted.predict_proba(TEXTS))


def test_a_table_is_refused() -> None:
    with pytest.raises(DataError, match=r"a table was given; give its column of texts"):
        small().fit(pd.DataFrame({"text": TEXTS}), NAMES)


@pytest.mark.parametrize("labels", [["b", "a"], [10, 9], [True, False], [-1, 1], [2.0, 1.0]])
def test_labels_come_back_in_their_own_type(labels: list[Any]) -> None:
    classifier = small().fit(TEXTS, [labels[i % 2] for i in range(24)])
    assert classifier.classes_.tolist() == sorted(labels)
    assert {type(label) for label in classifier.predict(TEXTS).tolist()} == {type(labels[0])}


def test_random_state() -> None:
    def fit(state: Any) -> EMHRNNClassifier:
        return small(random_state=state).fit(TEXTS, NAMES)

    same(fit(3), fit(3))
    same(fit(np.random.RandomState(3)), fit(np.random.RandomState(3)))
    assert not np.array_equal(fit(None).predict_proba(TEXTS), fit(None).predict_proba(TEXTS))


def test_early_stopping() -> None:
    stopped = small(epochs=6, n_iter_no_change=1, validation_fraction=0.5, settings={**SETTINGS, "em.estep": "none"})
    del stopped.settings["training.epochs"]  # type: ignore[index]
    stopped.fit(TEXTS, ["good", "bad"] * 2 * 6)
    assert stopped.n_iter_ <= stopped.best_epoch_ + 2
    assert stopped.model_.run.config.data.validation == 0.5


# ---------------------------------------------------------------------- weights


def test_sample_weight() -> None:
    plain, even = small().fit(TEXTS, NAMES), small().fit(TEXTS, NAMES, sample_weight=np.full(24, 3))
    np.testing.assert_allclose(even.predict_proba(TEXTS), plain.predict_proba(TEXTS), atol=1e-5)  # only ratios matter
    uneven = small().fit(TEXTS, NAMES, sample_weight=pd.Series(range(24)))
    assert not np.allclose(uneven.predict_proba(TEXTS), plain.predict_proba(TEXTS), atol=1e-5)
    with pytest.raises(DataError, match="24 texts and 2 weights"):
        small().fit(TEXTS, NAMES, sample_weight=[1, 2])


@pytest.mark.parametrize("weights", [[2.0], [2.0] * 3])
def test_as_many_sample_weights_as_texts_with_class_weight_too(weights: list[float]) -> None:
    with pytest.raises(DataError, match=f"24 texts and {len(weights)} weights; give one weight per text"):
        small(class_weight="balanced").fit(TEXTS, NAMES, sample_weight=weights)
    with pytest.raises(DataError, match="24 texts and 3 labels; give one label per text"):
        small(class_weight="balanced").fit(TEXTS, NAMES[:3], sample_weight=[1] * 24)


def test_class_weight_is_a_sample_weight() -> None:
    y = ["bad"] * 18 + ["good"] * 6
    by_text = small().fit(TEXTS, y, sample_weight=[24 / 36] * 18 + [2.0] * 6)
    same(small(class_weight="balanced").fit(TEXTS, y), by_text)
    same(small(class_weight={"bad": 24 / 36, "good": 2}).fit(TEXTS, y), by_text)


@pytest.mark.parametrize(
    ("class_weight", "told"), [("even", "give 'balanced', a dict"), ({"fine": 2}, "names 'fine', which is not a label")]
)
def test_class_weights_that_cannot_be(class_weight: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        small(class_weight=class_weight).fit(TEXTS, NAMES)


# ---------------------------------------------------------------------- several labels


def test_lists_of_labels() -> None:
    classifier = small().fit(TEXTS, SETS)
    shares = classifier.predict_proba(TEXTS)
    assert classifier.classes_.tolist() == ["cheap", "good"]
    expected = [tuple(classifier.classes_[row > 0.5]) for row in shares]
    assert classifier.predict(TEXTS) == expected
    assert classifier.score(TEXTS, expected) == 1.0
    with pytest.raises(DataError, match="class_weight is for one label per text"):
        small(class_weight="balanced").fit(TEXTS, SETS)
    with pytest.raises(DataError, match="some texts have one label and some have a list"):
        small().fit(TEXTS, [*SETS[:-1], "good"])


def test_settings_that_several_labels_would_not_use() -> None:
    for name, value in (("class_weight", "balanced"), ("label_smoothing", 0.1)):
        classifier = small(settings={**SETTINGS, f"training.{name}": value})
        with pytest.raises(ConfigError, match=f"training.{name} = {value} is for one label per document"):
            classifier.fit(TEXTS, SETS)
        with pytest.raises(ConfigError, match="is for one label per document"):
            classifier.partial_fit(TEXTS, SETS, classes=["cheap", "good"])


def test_columns_keep_the_names_that_partial_fit_was_given() -> None:
    named = small(settings={**SETTINGS, "em.estep": "none", "training.learning_rate": 0.05})
    for _ in range(8):
        named.partial_fit(TEXTS, TABLE[:, ::-1], classes=["good", "cheap"])
    assert named.classes_.tolist() == list(named.model_.classes) == ["good", "cheap"]
    lists = small().partial_fit(TEXTS, SETS, classes=["good", "cheap"])
    assert lists.classes_.tolist() == ["cheap", "good"]
    share = {name: named.predict_proba(TEXTS)[:, k] for k, name in enumerate(named.classes_)}
    assert share["good"][1] > share["good"][0]  # it has learned which texts are good, under that name
    named.partial_fit(TEXTS, TABLE[:, ::-1], classes=["good", "cheap"])
    with pytest.raises(DataError, match="classes differ from those before"):
        named.partial_fit(TEXTS, TABLE, classes=["cheap", "good"])
    with pytest.raises(DataError, match="2 columns for 1 classes"):
        small().partial_fit(TEXTS, TABLE, classes=["good", "good"])


@pytest.mark.parametrize(
    "kind",
    [
        np.asarray,
        pd.DataFrame,
        csr_matrix,
        lambda table: table.tolist(),
        list,
        lambda table: list(table.astype(float)),
        lambda table: list(table.astype(bool)),
    ],
)
def test_an_indicator_matrix(kind: Any) -> None:
    classifier = small().fit(TEXTS, kind(TABLE))
    lists = small().fit(TEXTS, SETS)
    same(classifier, lists)
    assert classifier.classes_.tolist() == [0, 1]
    predicted = classifier.predict(TEXTS)
    assert predicted.tolist() == (lists.predict_proba(TEXTS) > 0.5).astype(int).tolist()
    assert classifier.score(TEXTS, predicted) == classifier.score(TEXTS, kind(predicted)) == 1.0


# ---------------------------------------------------------------------- what fails changes nothing


@pytest.mark.parametrize("error", [TrainingError("stopped"), KeyboardInterrupt()])
def test_what_fails_leaves_the_model_and_its_labels(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    classifier, fresh = small().fit(TEXTS, NAMES), small()
    before = classifier.predict(TEXTS).tolist()

    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("emhrnn.training.train.fit", fail)
    monkeypatch.setattr("emhrnn.training.updates.steps", fail)
    for one in (classifier, fresh):
        with pytest.raises(type(error)):
            one.fit(TEXTS, [len(name) for name in NAMES])
    with pytest.raises(type(error)):
        fresh.partial_fit(TEXTS, NAMES, classes=["bad", "good"])
    assert classifier.predict(TEXTS).tolist() == before
    assert classifier.classes_.tolist() == ["bad", "good"]
    assert not hasattr(fresh, "classes_")
    with pytest.raises(NotFittedError):
        fresh.predict(TEXTS)
    with pytest.raises(DataError, match="was given no classes"):
        fresh.partial_fit(TEXTS, NAMES)


# ---------------------------------------------------------------------- in company


def test_pipeline(fitted: EMHRNNClassifier) -> None:
    pipeline = make_pipeline(FunctionTransformer(lambda texts: [text.replace("#", "") for text in texts]), small())
    pipeline.fit([f"#{text}" for text in TEXTS], NAMES)
    same(pipeline, fitted)


def test_transform_gives_features_to_others(fitted: EMHRNNClassifier) -> None:
    vectors = fitted.transform(TEXTS)
    assert vectors.shape == (24, 6)
    np.testing.assert_allclose(fitted.transform(TEXTS[::-1]), vectors[::-1], atol=1e-6)
    assert fitted.transform([]).shape == (0, 6)
    union = make_pipeline(FeatureUnion([("v", small()), ("w", small(random_state=1))]), LogisticRegression())
    assert union.fit(TEXTS, NAMES).predict(TEXTS).shape == (24,)


def test_cross_validation() -> None:
    assert cross_val_score(small(), TEXTS, NAMES, cv=2).shape == (2,)
    assert cross_val_predict(small(), np.array(TEXTS), NAMES, cv=2, method="predict_proba").shape == (24, 2)


def test_grid_search() -> None:
    search = GridSearchCV(small(), {"epochs": [1], "random_state": [0, 1]}, cv=2, error_score="raise")
    assert search.fit(TEXTS, NAMES).best_params_["random_state"] in (0, 1)
    assert search.predict(TEXTS).shape == (24,)


def test_calibration() -> None:
    calibrated = CalibratedClassifierCV(small(), cv=2).fit(TEXTS, NAMES)
    np.testing.assert_allclose(calibrated.predict_proba(TEXTS).sum(axis=1), 1)


# ---------------------------------------------------------------------- portion by portion


def test_partial_fit_learns_and_keeps_its_words() -> None:
    classifier = small(settings={**SETTINGS, "em.estep": "none", "training.learning_rate": 0.05})
    for _ in range(8):
        assert classifier.partial_fit(TEXTS * 2, NAMES * 2, classes=["good", "bad"]) is classifier
    assert classifier.n_iter_ == 8
    assert classifier.score(TEXTS, NAMES) > 0.9
    words = classifier.model_.run.vocabulary
    classifier.partial_fit(["An unheard word."] * 2, ["good", "bad"])
    assert classifier.model_.run.vocabulary is words
    assert "unheard" not in words


def test_partial_fit_goes_on_from_fit(fitted: EMHRNNClassifier) -> None:
    classifier = small().fit(TEXTS, NAMES).partial_fit(TEXTS, NAMES)
    assert classifier.n_iter_ == 2
    assert not np.array_equal(classifier.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_partial_fit_says_what_it_needs() -> None:
    with pytest.raises(DataError, match="was given no classes; give all labels"):
        small().partial_fit(TEXTS, NAMES)
    begun = small().partial_fit(TEXTS, NAMES, classes=["good", "bad", "fair"])
    assert begun.predict_proba(TEXTS).shape == (24, 3)
    with pytest.raises(DataError, match="the label 'odd' is none of the classes"):
        begun.partial_fit(TEXTS[:1], ["odd"])
    with pytest.raises(DataError, match="classes differ from those before"):
        begun.partial_fit(TEXTS, NAMES, classes=["good", "bad"])
    assert not hasattr(DocumentClassifier(model="tfidf-lr"), "partial_fit")  # it learns in one go


# ---------------------------------------------------------------------- kept for later


@pytest.mark.parametrize("way", ["joblib", "pickle"])
def test_pickles_round_trip(way: str, fitted: EMHRNNClassifier, tmp_path: Path) -> None:
    if way == "joblib":
        joblib.dump(fitted, tmp_path / "a.joblib")
        loaded = joblib.load(tmp_path / "a.joblib")
    else:
        loaded = pickle.loads(pickle.dumps(fitted))  # noqa: S301 # our own
    same(loaded, fitted)
    assert loaded.predict(TEXTS).tolist() == fitted.predict(TEXTS).tolist()
    assert loaded.get_params() == fitted.get_params()
    assert str(loaded.explain(TEXTS[0])) == str(fitted.explain(TEXTS[0]))
    assert {type(content) for content in fitted.__getstate__()["model_"].values()} == {bytes}


def test_training_goes_on_after_a_pickle() -> None:
    begun = small().partial_fit(TEXTS, NAMES, classes=["bad", "good"])
    loaded = pickle.loads(pickle.dumps(begun))  # noqa: S301 # our own
    same(loaded.partial_fit(TEXTS, NAMES), begun.partial_fit(TEXTS, NAMES))


def test_save_and_load(fitted: EMHRNNClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "run")
    same(emhrnn.load(tmp_path / "run"), fitted)
    begun = small().partial_fit(TEXTS, NAMES, classes=["bad", "good"])
    begun.save(tmp_path / "begun")
    same(emhrnn.load(tmp_path / "begun"), begun)


@pytest.mark.parametrize("model", ["hn-att", "tfidf-lr"])
def test_every_model_is_a_classifier(model: str, tmp_path: Path) -> None:
    classifier = DocumentClassifier(model, settings=known(model, SETTINGS)).fit(TEXTS, NAMES)
    assert classifier.model_.run.config.model.name == model
    assert len(classifier.transform(TEXTS)) == 24
    same(pickle.loads(pickle.dumps(classifier)), classifier)  # noqa: S301 # our own
