"""Odd and bad input for the model `evidence`: one line that says what to do, or an answer that can be relied on."""

import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn import DocumentClassifier
from emhrnn.api import Model
from emhrnn.errors import CheckpointError, DataError
from emhrnn.models.predictor import probabilities
from emhrnn.training.arrays import load_arrays, save_arrays
from emhrnn.training.run import load_run
from tests.behaviour.commands import BAD, GOOD, Cli, rows, write_reviews
from tests.behaviour.test_evidence import OPTIONS, classifier

KIB_PER_UNIT = 1 if sys.platform == "linux" else 1024  # of ru_maxrss


def peak_megabytes() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_UNIT / 1024


def check_sound(fitted: DocumentClassifier, texts: list[str]) -> np.ndarray:
    shares = fitted.predict_proba(texts)
    assert np.isfinite(shares).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    return shares


# ---------------------------------------------------------------------------------------------------- odd documents


def test_a_class_with_one_document() -> None:
    """Wherever it falls, among the texts that are learned from or those that are held out."""
    texts, labels = (list(column) for column in zip(*rows(40), strict=True))
    for place in (0, 40):
        some = [*texts[:place], "An ugly place, really.", *texts[place:]]
        fitted = classifier().fit(some, [*labels[:place], "ugly", *labels[place:]])
        check_sound(fitted, [*some, "ugly"])
        assert fitted.predict([GOOD, BAD]).tolist() == ["good", "bad"]


def test_a_document_without_a_known_word_gets_the_prior() -> None:
    texts, labels = (list(column) for column in zip(*rows(39), strict=True))
    fitted = classifier().fit(texts, labels)
    run = fitted.model_.run
    expected = probabilities(run.model.bias.detach().numpy()[None], multi_label=False, temperature=run.temperature)
    shares = check_sound(fitted, ["Zebras xylophone!!", "qqq", GOOD])
    np.testing.assert_allclose(shares[:2], expected.repeat(2, axis=0), atol=1e-6)
    assert abs(shares[2] - shares[0]).max() > 0.1


def test_documents_that_are_all_alike() -> None:
    """No text tells the labels apart, so that their shares are all there is to learn."""
    fitted = classifier().fit([GOOD] * 60, ["a", "b", "b", "b"] * 15)
    assert check_sound(fitted, [GOOD])[0, 0] == pytest.approx(0.25, abs=0.07)


def test_documents_of_one_word() -> None:
    texts, labels = ["good", "bad", "fine", "awful"] * 12, ["y", "n", "y", "n"] * 12
    fitted = classifier(**{"model.longest": 8}).fit(texts, labels)  # K is longer than every sentence
    assert fitted.predict(["good", "bad", "fine", "awful", "good bad"])[:4].tolist() == ["y", "n", "y", "n"]
    check_sound(fitted, ["good", "new", "good good good"])


def test_a_thousand_classes() -> None:
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(1000)]
    texts = [f"word{i} " + " ".join(f"w{j}" for j in rng.integers(0, 50, 6)) for i in range(1000) for _ in range(2)]
    before = peak_megabytes()
    fitted = DocumentClassifier(
        "evidence", epochs=1, validation_fraction=0.1,
        settings={"model.embedding_size": 4, "model.encoder_size": 3, "model.megabytes": 30.0, "data.min_count": 1},
    ).fit(texts, np.repeat(names, 2))  # fmt: skip
    shares = check_sound(fitted, texts[:4])
    assert shares.shape == (4, 1000)
    assert peak_megabytes() - before < 500
    size = sum(tensor.numel() * tensor.element_size() for tensor in fitted.model_.run.model.state_dict().values())
    assert size < 30_000_000


def test_a_document_of_a_megabyte() -> None:
    texts, labels = (list(column) for column in zip(*rows(24), strict=True))
    fitted = classifier().fit(texts, labels)
    long = f"{GOOD} " * (1_000_000 // len(GOOD))
    for text in (long, long.replace(".", "")):  # the second is one sentence
        before = peak_megabytes()
        shares = check_sound(fitted, [BAD, text])
        np.testing.assert_allclose(shares[0], fitted.predict_proba([BAD])[0], rtol=1e-4)  # whatever is beside it
        assert peak_megabytes() - before < 500
    learner = classifier()
    learner.partial_fit([*texts, long], [*labels, "good"], classes=["bad", "good"])
    check_sound(learner, [long])


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["data.min_count=1000"], ("vocabulary", "data.min_count")),
        (["model.least_documents=1000"], ("1000 training documents", "model.least_documents")),
        (["model.megabytes=0.01"], ("model.megabytes = 0.01", "raise it")),
        (["model.longest=9"], ("model.longest", "less than or equal to 8")),
        (["model.counts=false", "model.tables=false", "model.encoder_size=0"], ("switch one of them on",)),
        (["model.segmentation=guess"], ("unknown segmentation 'guess'",)),
        (["model.name=hn-att", "model.segmentation=overlapping"], ("hn-att has no setting",)),
        (["model.name=em-hrnn", "model.segmentation=overlapping"], ("em-hrnn has no setting",)),
    ],
)
def test_settings_that_leave_nothing(cli: Cli, tmp_path: Path, options: list[str], told: tuple[str, ...]) -> None:
    data, out = write_reviews(tmp_path / "reviews.csv", 24), tmp_path / "run"
    given = [part for option in options for part in ("--set", option)]
    result = cli("train", data, "--out", out, "--quiet", *OPTIONS, *given)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert all(words in result.err for words in told), result.err
    assert not out.exists()


def test_vectors_that_are_not_finite(cli: Cli, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "reviews.csv", 24)
    (tmp_path / "vectors.txt").write_text("soup 1 2 3 4\nwaiter 1 nan 3 4\n")
    message = cli.error("train", data, "--out", tmp_path / "run", "--vectors", tmp_path / "vectors.txt", *OPTIONS)
    assert "'waiter'" in message
    assert not (tmp_path / "run").exists()


def test_a_corrupt_model_file(cli: Cli, tmp_path: Path) -> None:
    data, run = write_reviews(tmp_path / "reviews.csv", 24), tmp_path / "run"
    cli.ok("train", data, "--out", run, "--quiet", *OPTIONS, "--set", "training.epochs=1")
    path = run / "model.safetensors"
    whole = path.read_bytes()
    broken = bytearray(whole)
    broken[-100] ^= 0x40
    path.write_bytes(broken)
    assert "checksum" in cli.error("predict", run, data, "--out", tmp_path / "p.csv")
    path.write_bytes(whole[: len(whole) // 2])
    assert "corrupt" in cli.error("evaluate", run, data)
    path.write_bytes(whole)
    cli.ok("evaluate", run, data, "--quiet")


def test_tensors_of_other_shapes(tmp_path: Path) -> None:
    texts, labels = (list(column) for column in zip(*rows(24), strict=True))
    classifier().fit(texts, labels).save(tmp_path / "run")
    path = tmp_path / "run" / "model.safetensors"
    tensors, note = load_arrays(path)
    damage: dict[str, Any] = {
        "ngrams.keys": np.array(3),
        "ngrams.counts": tensors["ngrams.counts"][:-1],
        "vectors": tensors["vectors"][:-1],
    }
    for name, tensor in damage.items():
        save_arrays(path, {**tensors, name: tensor}, note)
        with pytest.raises(CheckpointError, match=name.partition(".")[0]):
            load_run(tmp_path / "run")
    save_arrays(path, {name: t for name, t in tensors.items() if name != "ngrams.keys"}, note)
    with pytest.raises(CheckpointError, match=r"ngrams"):
        load_run(tmp_path / "run")
    save_arrays(path, tensors, note)
    assert Model(load_run(tmp_path / "run")).predict([GOOD, BAD]) == ["good", "bad"]


def test_a_portion_without_known_words_is_refused_at_first_and_harmless_later() -> None:
    texts, labels = (list(column) for column in zip(*rows(24), strict=True))
    learner = classifier()
    with pytest.raises(DataError):
        learner.partial_fit(["one", "two"], ["good", "bad"], classes=["bad", "good"])  # no phrase is there twice
    learner.partial_fit(texts, labels, classes=["bad", "good"])
    learner.partial_fit(["zebra", "xylophone"], ["good", "bad"])
    check_sound(learner, [*texts, "zebra"])


def test_documents_without_any_of_several_labels() -> None:
    texts = [f"{GOOD if i % 2 else BAD} Visit {i}." for i in range(32)]
    fitted = classifier().fit(texts, [["good"] if i % 2 else ["rare"] * (i == 0) for i in range(32)])
    shares = fitted.predict_proba([GOOD, BAD, "zebra"])
    assert np.isfinite(shares).all()
    assert shares[0, 0] > 0.5 > shares[1, 0]
    assert (shares[:, 1] < 0.5).all()
