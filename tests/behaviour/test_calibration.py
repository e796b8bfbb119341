"""The temperature is fitted at the end of training, kept with the weights, and used wherever probabilities appear."""

import csv
import json
import pickle
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn import EMHRNNClassifier, load
from emhrnn.api import train
from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.evaluation.predict import predict
from emhrnn.evaluation.scores import METRICS
from emhrnn.training.arrays import load_arrays, save_arrays
from emhrnn.training.config import TrainingConfig, make_config
from emhrnn.training.data import Named
from emhrnn.training.distributed import Processes
from emhrnn.training.folder import locked_run
from emhrnn.training.run import WEIGHTS, load_run, save_weights
from emhrnn.training.schedule import Best
from emhrnn.training.validation import calibrate_run, validate_epoch
from tests.behaviour.commands import BAD, GOOD, Cli, rows, write_rows
from tests.oracles import calibration as oracle

TEXTS = [GOOD, BAD, "Neither this nor that."]


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reviews whose labels are half wrong: a model that believes them is too sure."""
    return half_wrong(tmp_path_factory.mktemp("noisy") / "reviews.csv", seed=1)


def half_wrong(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(0)
    reviews = [(review.text, rng.choice(["1", review.label])) for review in generate_reviews(150, seed=seed)]
    return write_rows(path, [(text, str(label)) for text, label in reviews])


def test_training_fits_what_the_grid_finds(cli: Cli, noisy: Path, tmp_path: Path) -> None:
    run, options = tmp_path / "run", ("--model", "tfidf-lr", "--set", "data.validation=0.4", "--quiet")
    cli.ok("train", noisy, "--out", run, *options)
    calibration = json.loads((run / "metrics.json").read_text())["calibration"]
    loaded = load_run(run)
    assert loaded.temperature == calibration["temperature"] != 1.0
    assert calibration["loss_after"] < calibration["loss_before"]
    cli.ok("train", noisy, "--out", tmp_path / "plain", *options, "--set", "training.calibrate=false")
    assert load_run(tmp_path / "plain").temperature == 1.0
    plain = json.loads((tmp_path / "plain" / "metrics.json").read_text())
    assert plain["calibration"] is None
    assert plain["valid"]["ece"] == pytest.approx(calibration["ece_before"])
    assert plain["valid"]["accuracy"] == json.loads((run / "metrics.json").read_text())["valid"]["accuracy"]
    corpus = Corpus.open(run / "corpus" / "train")
    assert corpus.labels is not None
    told = cli.ok("info", run).out
    assert f" {loaded.temperature:.3f}; calibration error" in told
    scored = cli.ok("evaluate", run, noisy, "--json").json
    p = predict(loaded.model, corpus, multi_label=False, temperature=loaded.temperature).probabilities
    assert scored["ece"] == pytest.approx(
        oracle.calibration_error(p.max(1), p.argmax(1) == corpus.labels, 15), abs=1e-6
    )
    assert "ECE " in cli.ok("evaluate", run, noisy).out


def test_all_ways_to_a_probability_give_the_same(cli: Cli, own_run: Path, tmp_path: Path) -> None:
    before = load(own_run)
    before.run.temperature = 0.2
    save_weights(own_run, before.run, 0)
    model = load(own_run)
    corpus = Corpus.from_texts(TEXTS, vocabulary=model.run.vocabulary, text=model.run.text)
    logits = predict(model.run.model, corpus, multi_label=False).logits
    expected = torch.softmax(torch.from_numpy(logits).double() / 0.2, dim=1).numpy()
    assert np.allclose(model.predict_proba(TEXTS), expected, atol=1e-6)
    assert np.allclose([explanation.probabilities for explanation in model.explain(TEXTS)], expected, atol=1e-5)
    data = write_rows(tmp_path / "texts.csv", [(text, "good") for text in TEXTS])
    cli.ok("predict", own_run, data, "--out", tmp_path / "out.csv", "--quiet")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
    assert np.allclose([[float(row[f"p_{name}"]) for name in model.classes] for row in rows], expected, atol=1e-6)
    scored = cli.ok("evaluate", own_run, data, "--json").json
    assert scored["loss"] == pytest.approx(-np.log(expected[:, model.classes.index("good")]).mean(), abs=1e-5)


def test_the_classifier_is_calibrated_and_saves_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [GOOD if i % 2 else BAD for i in range(60)]
    classifier = EMHRNNClassifier(
        epochs=2, settings={"data.validation": 0.5, "em.warmup_epochs": 0, "data.min_count": 1}
    ).fit(texts, rng.integers(0, 2, 60))  # fmt: skip
    run = classifier.model_.run
    assert run.temperature != 1.0
    classifier.save(tmp_path / "run")
    assert load_run(tmp_path / "run").temperature == run.temperature
    assert np.array_equal(load(tmp_path / "run").predict_proba(TEXTS), classifier.predict_proba(TEXTS))
    tensors, note = load_arrays(tmp_path / "run" / WEIGHTS)
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["calibration"]["shares"] is None
    pickle.loads(pickle.dumps(classifier)).save(tmp_path / "again")  # noqa: S301 # our own
    again, same_note = load_arrays(tmp_path / "again" / WEIGHTS)
    assert same_note == note
    assert all(np.array_equal(again[name], tensor) for name, tensor in tensors.items())


def test_runs_without_a_temperature_load_and_damaged_ones_are_refused(own_run: Path) -> None:
    tensors, note = load_arrays(own_run / WEIGHTS)
    save_arrays(own_run / WEIGHTS, tensors, {name: value for name, value in note.items() if name != "temperature"})
    assert load_run(own_run).temperature == 1.0
    for wrong in (0.0, -1.0, "1", None):
        save_arrays(own_run / WEIGHTS, tensors, {**note, "temperature": wrong})
        with pytest.raises(CheckpointError, match=r"corrupt \(temperature .*; copy the run again or train again"):
            load_run(own_run)


@pytest.fixture(scope="module")
def too_sure(noisy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four experts that have learned half-wrong labels."""
    out = tmp_path_factory.mktemp("too-sure") / "run"
    config = make_config(
        assignments=["training.epochs=2", "em.warmup_epochs=1", "data.validation=0.4"], model="em-hrnn+ngrams"
    )
    train(noisy, out, config=config, progress=False)
    return out


def test_shares_of_experts_are_fitted_saved_and_told(cli: Cli, too_sure: Path) -> None:
    metrics = json.loads((too_sure / "metrics.json").read_text())
    calibration, shares = metrics["calibration"], metrics["calibration"]["shares"]
    assert {name for name, share in shares.items() if share == 1.0} == {"rare"}  # there are none among so few words
    assert calibration["loss_after"] < calibration["loss_before"]
    epochs = [json.loads(line) for line in (too_sure / "history.jsonl").read_text().splitlines()]
    chosen = epochs[metrics["best_epoch"]]["valid"]  # told, and chosen, by what it comes to in the end
    assert chosen["accuracy"] == metrics["valid"]["accuracy"]
    assert calibration["loss_after"] <= chosen["loss"] < calibration["loss_before"]
    run = load_run(too_sure)
    assert {name: float(share) for name, share in run.model.shares.items()} == shares
    run.uncalibrate()
    assert set(map(float, run.model.shares.values())) == {1.0}
    told = ", ".join(f"{name} {shares[name]:.2f}" for name in ("network", "common", "rare", "pairs"))
    assert f"{told}\n" in cli.ok("info", too_sure).out
    card = (too_sure / "card.md").read_text(encoding="utf-8")
    assert f"Its experts count: {told}." in card
    assert f"fitted on {calibration['documents']:,} validation documents" in card
    assert "calibrated again" not in card
    assert "measured before" not in cli.ok("info", too_sure).out
    assert "stale" not in metrics


class First(Processes):
    """The first process of a job, which keeps what it hands to the others."""

    def __init__(self) -> None:
        self.told: list[torch.Tensor] = []

    def copy_first(self, tensors: Iterable[torch.Tensor]) -> None:
        self.told += [tensor.clone() for tensor in tensors]


class Other(Processes):
    """Another one, which is told."""

    rank, first = 1, False

    def __init__(self, told: list[torch.Tensor]) -> None:
        self.told = iter(told)

    def copy_first(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            tensor.copy_(next(self.told))


def test_one_process_fits_the_shares_for_all(too_sure: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each for itself, they might round differently, and disagree about the best epoch."""
    run, valid, first = load_run(too_sure), Corpus.open(too_sure / "corpus" / "train"), First()
    run.uncalibrate()
    scores = validate_epoch(run, valid, first)
    run.uncalibrate()
    monkeypatch.setattr(run.model, "fit_shares", None)  # not for the others
    assert validate_epoch(run, valid, Other(first.told)) == scores


def test_a_run_is_calibrated_anew(cli: Cli, too_sure: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(too_sure, tmp_path / "run"))
    new = half_wrong(tmp_path / "reviews.csv", seed=2)
    before = load(run).predict_proba(TEXTS)
    first = cli.ok("calibrate", run, new, "--json", "--quiet").json
    after = load(run).predict_proba(TEXTS)
    assert first["documents"] == 150
    assert first["loss_after"] < first["loss_before"]
    assert np.abs(after - before).max() > 1e-4
    scored = cli.ok("evaluate", run, new, "--json", "--quiet").json
    assert scored["loss"] == pytest.approx(first["loss_after"], abs=1e-5)
    metrics = json.loads((run / "metrics.json").read_text())
    assert (metrics["calibration"]["source"], metrics["calibration"]["documents"]) == ("reviews.csv", 150)
    assert metrics["stale"] == ["valid"]
    info, card = cli.ok("info", run).out, (run / "card.md").read_text(encoding="utf-8")
    assert f"macro-F1 {metrics['valid']['macro_f1']:.4f}, measured before" in info
    assert "on 150 documents of reviews.csv" in info
    assert "fitted on 150 documents of reviews.csv" in card
    assert "This was at the end of training. It has been calibrated again since" in card
    again = cli.ok("calibrate", run, new, "--quiet").out
    assert f"temperature {first['temperature']:.3f}" in again
    assert np.array_equal(load(run).predict_proba(TEXTS), after)


def test_what_was_learned_bit_by_bit_is_calibrated_later(cli: Cli, noisy: Path, tmp_path: Path) -> None:
    classifier = EMHRNNClassifier(settings={"data.min_count": 1})
    reviews = list(generate_reviews(40, seed=2))
    classifier.partial_fit([r.text for r in reviews], [r.label for r in reviews], classes=list("12345"))
    classifier.save(tmp_path / "run")
    before = load(tmp_path / "run").predict_proba(TEXTS)
    told = cli.ok("calibrate", tmp_path / "run", noisy, "--quiet").out
    assert "on 150 documents" in told
    assert np.abs(load(tmp_path / "run").predict_proba(TEXTS) - before).max() > 1e-3


def test_what_cannot_be_calibrated_is_told(cli: Cli, own_run: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.csv"
    bare.write_text("text\nsome words\nothers\n", encoding="utf-8")
    assert "bare.csv" in cli.error("calibrate", own_run, bare)


def test_data_that_cannot_decide_leaves_the_run_as_it_was(cli: Cli, too_sure: Path, tmp_path: Path) -> None:
    """What was fitted to good data is not given up for nothing."""
    run = Path(shutil.copytree(too_sure, tmp_path / "run"))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    few = write_rows(tmp_path / "few.csv", [(GOOD, "1"), (BAD, "2")])
    message = cli.error("calibrate", run, few, "--quiet")
    assert f"cannot calibrate {run} to {few}: 2 documents are too few, 20 are needed" in message
    assert "; give 20 documents or more, some of which it gets wrong. The run is left as it was" in message
    raw = load_run(run)
    raw.uncalibrate()
    corpus = Corpus.from_texts(TEXTS * 10, vocabulary=raw.vocabulary, text=raw.text)
    said = raw.predict(corpus).logits.argmax(axis=1)
    right = [(text, raw.classes[k]) for text, k in zip(TEXTS * 10, said, strict=True)]
    message = cli.error("calibrate", run, write_rows(tmp_path / "right.csv", right), "--quiet")
    assert "every prediction is right" in message
    alike = write_rows(tmp_path / "alike.csv", [(text, raw.classes[0]) for text in TEXTS * 10])
    message = cli.error("calibrate", run, alike, "--quiet")
    assert f"all its documents are of the class {raw.classes[0]!r}; give documents of several classes" in message
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_run_is_read_when_nobody_else_has_it(own_run: Path, noisy: Path) -> None:
    """What is read before may be replaced by whoever trains into it, and then be written over that."""
    (own_run / WEIGHTS).unlink()  # so that reading it would fail
    with locked_run(own_run), pytest.raises(DataError, match="is training into"):
        calibrate_run(own_run, Named(path=noisy), progress=False)


def test_every_metric_can_pick_the_best_epoch() -> None:
    assert set(TrainingConfig.model_fields["metric"].annotation.__args__) == set(METRICS)  # type: ignore[union-attr]
    assert make_config(assignments=["training.metric=ece"], model="em-hrnn").training.metric == "ece"
    with pytest.raises(ConfigError, match="input should be 'accuracy', 'macro_f1', 'loss' or 'ece'"):
        make_config(assignments=["training.metric=f1"], model="em-hrnn")


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(METRICS)), st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_the_best_epoch_is_the_highest_or_the_lowest(metric: str, values: list[float]) -> None:
    best = Best()
    for epoch, value in enumerate(values):
        best.update(epoch, METRICS[metric] * value, 0.0)
    assert values[best.epoch] == (min(values) if metric in ("loss", "ece") else max(values))


def test_the_loss_decides_between_equal_epochs() -> None:
    best = Best()
    assert [best.update(epoch, 0.5, loss) for epoch, loss in enumerate((0.9, 0.7, 0.7, 0.8))] == [
        True,
        True,
        False,
        False,
    ]
    assert (best.epoch, best.waited) == (1, 2)


def test_a_dry_run_and_a_copy_leave_the_run_alone(cli: Cli, own_run: Path, tmp_path: Path) -> None:
    noisy = [(text, "bad" if i % 7 == 0 else label) for i, (text, label) in enumerate(rows(60))]
    data = write_rows(tmp_path / "new.csv", noisy)
    before = {path.name: path.read_bytes() for path in own_run.iterdir() if path.is_file()}
    told = cli.ok("calibrate", own_run, data, "--dry-run", "--quiet").out
    assert "min-confidence" in told
    assert "Nothing was written" in told
    cli.ok("calibrate", own_run, data, "--out", tmp_path / "copy", "--quiet")
    assert {path.name: path.read_bytes() for path in own_run.iterdir() if path.is_file()} == before
    assert not (tmp_path / "copy" / "checkpoint").exists()
    assert (tmp_path / "copy" / "card.md").read_text().startswith("# Model card: copy\n")
    copy, run = load_run(tmp_path / "copy"), load_run(own_run)
    assert copy.temperature != run.temperature
    assert copy.conformal is not None
    assert copy.conformal.documents == 60
    cli.ok("calibrate", own_run, data, "--quiet")
    assert load_run(own_run).conformal == copy.conformal
    assert "is not empty" in cli.error("calibrate", own_run, data, "--out", tmp_path / "copy", "--quiet")
