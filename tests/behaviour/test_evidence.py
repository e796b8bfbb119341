"""The model `evidence` through commands and estimator: training, resuming, portions, weights, several labels."""

import json
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from emhrnn import DocumentClassifier
from emhrnn.api import train
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import DataError
from emhrnn.models.evidence import Evidence
from emhrnn.training.arrays import load_arrays
from emhrnn.training.config import make_config
from emhrnn.training.progress import Meter
from emhrnn.training.run import load_run
from tests.back_ends import threads_kept
from tests.behaviour.commands import BAD, GOOD, Cli, rows, write_reviews, write_rows
from tests.training.kill import check_equal

TINY = (
    "model.name=evidence", "model.embedding_size=4", "model.encoder_size=3", "model.table_documents=2",
    "data.min_count=1", "training.batch_documents=8", "training.threads=1",
)  # fmt: skip
OPTIONS = [part for assignment in TINY for part in ("--set", assignment)]
SETTINGS: dict[str, Any] = {
    "model.embedding_size": 4, "model.encoder_size": 3, "model.table_documents": 2, "data.min_count": 1,
    "training.batch_documents": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """reviews.csv, of which some have the wrong label, and the run of three epochs on them."""
    folder = tmp_path_factory.mktemp("evidence")
    write_rows(folder / "reviews.csv", noisy(60))
    config = make_config(assignments=[*TINY, "training.epochs=3", "data.validation=0.4"])
    with threads_kept():
        train(folder / "reviews.csv", folder / "run", config=config, progress=False)
    return folder


def noisy(count: int) -> list[tuple[str, str]]:
    return [(text, "good" if i % 7 == 0 else label) for i, (text, label) in enumerate(rows(count))]


def classifier(**settings: Any) -> DocumentClassifier:
    return DocumentClassifier("evidence", epochs=2, validation_fraction=0.25, settings={**SETTINGS, **settings})


# ----------------------------------------------------------------------------------------------------------- commands


def test_commands(cli: Cli, folder: Path, tmp_path: Path) -> None:
    run, new = folder / "run", write_reviews(tmp_path / "new.csv", 20)
    assert cli.ok("evaluate", run, new, "--quiet", "--json").json["accuracy"] == 1
    cli.ok("predict", run, new, "--out", tmp_path / "p.jsonl", "--quiet")
    labels = [json.loads(line)["label"] for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert labels == [label for _, label in rows(20)]
    assert "evidence" in cli.ok("info", run, "--card").out
    fitted = cli.ok("calibrate", run, write_rows(tmp_path / "other.csv", noisy(50)), "--quiet", "--json").json
    assert fitted["loss_after"] <= fitted["loss_before"]
    assert load_run(run).temperature == pytest.approx(fitted["temperature"])
    again = cli.ok("calibrate", run, tmp_path / "other.csv", "--quiet", "--json").json
    assert again["temperature"] == pytest.approx(fitted["temperature"])


def test_ctrl_c_and_resume(cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rows(tmp_path / "reviews.csv", noisy(60))
    options = [*OPTIONS, "--set", "training.epochs=3", "--set", "data.validation=0.4"]
    add, seen = Meter.add, []

    def stop_later(*arguments: Any) -> None:
        add(*arguments)
        seen.append(1)
        if len(seen) == 7:  # in the second epoch of 5 steps
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Meter, "add", stop_later)
        stopped = cli("train", tmp_path / "reviews.csv", "--out", tmp_path / "run", "--quiet", *options)
    assert stopped.code == 130
    cli.ok("train", "--out", tmp_path / "run", "--resume", "--quiet")
    whole = tmp_path / "whole"
    train(tmp_path / "reviews.csv", whole, config=make_config(assignments=options[1::2]), progress=False)
    check_equal(whole, tmp_path / "run")


def test_more_epochs(cli: Cli, tmp_path: Path) -> None:
    """A finished run that trains on goes on from its last epoch, table and optimiser included."""
    data = write_rows(tmp_path / "reviews.csv", noisy(40))
    options = [*OPTIONS, "--set", "training.decay=none"]
    cli.ok("train", data, "--out", tmp_path / "two", "--quiet", *options, "--set", "training.epochs=1")
    cli.ok("train", "--out", tmp_path / "two", "--resume", "--quiet", "--set", "training.epochs=2")
    cli.ok("train", data, "--out", tmp_path / "one", "--quiet", *options, "--set", "training.epochs=2")
    check_equal(tmp_path / "one", tmp_path / "two")


def test_early_stopping(tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv", 40)
    fast = ("training.epochs=9", "training.patience=2", "training.learning_rate=1.0")  # nothing is left to learn soon
    config = make_config(assignments=[*TINY, *fast])
    trained = train(tmp_path / "reviews.csv", tmp_path / "run", config=config, progress=False)
    best = trained.fitted.best.epoch
    assert len(trained.fitted.epochs) == best + 3 < 9
    saved, note = load_arrays(tmp_path / "run" / "model.safetensors")
    assert note["epoch"] == best
    assert all(np.array_equal(tensor, saved[name]) for name, tensor in trained.model.run.model.state_dict().items())


def test_other_segmentations(cli: Cli, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "reviews.csv", 24)
    for cut in ("every-2", "overlapping", "random-0.5"):
        options = [*OPTIONS, "--set", f"model.segmentation={cut}", "--set", "training.epochs=2"]
        cli.ok("train", data, "--out", tmp_path / cut, "--quiet", *options)
        assert cli.ok("evaluate", tmp_path / cut, data, "--quiet", "--json").json["accuracy"] == 1


# ---------------------------------------------------------------------------------------------------------- estimator


def test_fit_predict_pickle_and_save(tmp_path: Path) -> None:
    texts, labels = (list(column) for column in zip(*rows(40), strict=True))
    fitted = classifier().fit(texts, labels)
    assert fitted.predict([GOOD, BAD]).tolist() == ["good", "bad"]
    copy = pickle.loads(pickle.dumps(fitted))  # noqa: S301 # our own
    np.testing.assert_array_equal(copy.predict_proba(texts), fitted.predict_proba(texts))
    assert fitted.transform(texts).shape == (40, 2 + 6)  # evidence of the classes, phrases by their words
    fitted.save(tmp_path / "run")
    np.testing.assert_array_equal(load_run(tmp_path / "run").model.state_dict()["ngrams.keys"], evidence(fitted).keys)


def evidence(fitted: DocumentClassifier) -> Any:
    model = fitted.model_.run.model
    assert isinstance(model, Evidence)
    return model.ngrams


def test_partial_fit_counts_and_learns_by_portions() -> None:
    texts, labels = (list(column) for column in zip(*rows(48), strict=True))
    learner = classifier()
    for first in range(0, 48, 16):
        learner.partial_fit(texts[first : first + 16], labels[first : first + 16], classes=["bad", "good"])
    assert learner.predict([GOOD, BAD]).tolist() == ["good", "bad"]
    assert float(evidence(learner).total) == 48
    assert evidence(learner).class_documents.tolist() == [24, 24]

    copy = pickle.loads(pickle.dumps(learner))  # noqa: S301 # our own
    for one in (learner, copy):
        one.partial_fit(texts[:8], labels[:8])
    np.testing.assert_array_equal(copy.predict_proba(texts), learner.predict_proba(texts))


def test_partial_fit_after_fit_keeps_what_was_learned() -> None:
    texts, labels = (list(column) for column in zip(*rows(40), strict=True))
    fitted = classifier().fit(texts, labels)
    keys, total = evidence(fitted).keys.clone(), float(evidence(fitted).total)
    fitted.partial_fit(["The soup was great."], ["good"])
    assert torch.equal(evidence(fitted).keys, keys)
    assert float(evidence(fitted).total) == total + 1
    assert fitted.predict([GOOD, BAD]).tolist() == ["good", "bad"]


def test_a_first_portion_of_one_class() -> None:
    """As of a stream that is sorted."""
    learner = classifier()
    for _ in range(6):
        for text, label in ((GOOD, "good"), (BAD, "bad")):
            learner.partial_fit([text] * 8, [label] * 8, classes=["bad", "good"])
    probabilities = learner.predict_proba([GOOD, BAD])
    assert np.isfinite(probabilities).all()
    with pytest.raises(DataError, match=r"2 training documents"):
        classifier().partial_fit([GOOD], ["good"], classes=["bad", "good"])


def test_sample_weights_and_balanced_classes() -> None:
    """Three of four documents that say the same are good; weights turn that round."""
    texts, labels = ["It was a meal."] * 40, ["good", "good", "good", "bad"] * 10
    assert set(classifier().fit(texts, labels).predict(texts)) == {"good"}
    weights = [9.0 if label == "bad" else 1.0 for label in labels]
    weighted = classifier().fit(texts, labels, sample_weight=weights)
    assert set(weighted.predict(texts)) == {"bad"}
    share = evidence(weighted).class_documents / evidence(weighted).total
    assert share[0] == pytest.approx(0.75, abs=0.05)
    balanced = classifier(**{"training.class_weight": "balanced", "training.calibrate": False}).fit(texts, labels)
    assert balanced.predict_proba(texts[:1])[0, 0] == pytest.approx(0.5, abs=0.1)


def test_a_text_of_weight_0_is_not_learned_from() -> None:
    texts, labels = (list(column) for column in zip(*rows(32), strict=True))
    strange = [text.replace("soup", "zebra") for text in texts[:8]]
    learner = classifier()
    learner.partial_fit(
        texts + strange, labels + ["good"] * 8, classes=["bad", "good"], sample_weight=[1.0] * 32 + [0.0] * 8
    )
    assert float(evidence(learner).total) == 32
    assert float(evidence(learner).documents.min()) > 0


def test_label_smoothing_makes_less_sure() -> None:
    texts, labels = (list(column) for column in zip(*rows(40), strict=True))
    sure, smooth = (
        classifier(**{"training.label_smoothing": amount, "training.calibrate": False})
        .fit(texts, labels)
        .predict_proba(texts)
        .max(axis=1)
        .mean()
        for amount in (0.0, 0.4)
    )
    assert smooth < sure


def test_several_labels() -> None:
    drinks = ["The tea was hot.", "We had coffee."]
    texts = [f"{GOOD if i % 2 else BAD} {drinks[i // 2 % 2]} Visit {i}." for i in range(64)]
    labels = [["good"] * (i % 2) + ["tea"] * (i // 2 % 2 == 0) for i in range(64)]
    fitted = classifier().set_params(epochs=6).fit(texts, labels)
    assert fitted.score(texts, labels) > 0.95
    assert evidence(fitted).several
    none, both = fitted.predict_proba([f"{BAD} We had coffee.", f"{GOOD} The tea was hot."])
    assert none.max() < 0.5 < both.min()


def test_learns_generated_reviews() -> None:
    """Single words are made uninformative about the rating there: phrases have to be learned."""
    texts, labels = zip(*((r.text, r.label) for r in generate_reviews(1100, seed=1)), strict=True)
    fitted = DocumentClassifier("evidence", epochs=3).fit(texts[:800], labels[:800])
    majority = max(labels[800:].count(label) for label in set(labels)) / 300
    assert fitted.score(texts[800:], labels[800:]) > majority + 0.1


# -------------------------------------------------------------------------------------------------------------- small


def test_small_is_a_file_of_20_megabytes(cli: Cli, tmp_path: Path) -> None:
    """With more words and more phrases than fit: some texts are there three times, others twice."""
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.integers(0, 16_000, 4000)) for _ in range(24)]
    copies = [(text, str(i % 5)) for i, text in enumerate(texts) for _ in range(3 - i % 2)]
    data, run = write_rows(tmp_path / "long.csv", copies), tmp_path / "run"
    cli.ok(
        "train", data, "--valid", data, "--out", run, "--quiet", "--model", "evidence", "--small",
        "--set", "training.epochs=1", "--set", "model.longest=4", "--set", "model.sentence_weights=32",
    )  # fmt: skip
    loaded = load_run(run)
    seen = loaded.model.state_dict()
    assert len(loaded.vocabulary) == 15_001  # and unknown words
    assert len(seen["ngrams.keys"]) > 100_000
    assert float(seen["ngrams.documents"].min()) == 3  # the others did not fit
    assert 10_000_000 < sum(array.nbytes for array in seen.values()) <= 20_000_000
    assert (run / "model.safetensors").stat().st_size <= 20_000_000


def test_small_is_for_models_with_a_bound(cli: Cli, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "reviews.csv", 24)
    for options in (["--model", "em-hrnn"], ["--model", "tfidf-lr"]):
        message = cli.error("train", data, "--out", tmp_path / "run", "--small", *options)
        assert "--small" in message
        assert "--model evidence" in message
    assert not (tmp_path / "run").exists()
    cli.ok(
        "train", data, "--out", tmp_path / "run", "--small", "--quiet", *OPTIONS, "--set", "training.epochs=1",
        "--set", "model.megabytes=1",
    )  # fmt: skip
    settings = load_run(tmp_path / "run").config
    assert (settings.model.megabytes, settings.data.max_vocabulary, settings.data.vocabulary) == (1, 15_000, "data")
    assert "--small" in cli.ok("train", "--help").out
