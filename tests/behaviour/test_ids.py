"""Rows that read who wrote a document: the ids reach them from files, prepared corpora and Python alike."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import Model, load, train
from emhrnn.cli.evaluate import evaluate_run
from emhrnn.corpus import prepare
from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.explain import removal
from emhrnn.training.data import Named
from emhrnn.training.run import Run
from tests.behaviour.commands import Cli, known

TEXT = "It was a meal."
SETTINGS = {
    "training.epochs": 25,
    "training.batch_documents": 4,
    "training.learning_rate": 0.02,
    "model.word_size": 4,
    "model.id_size": 8,
    "model.tune_embedding": False,
    "model.ids": True,  # evidence does not read them by default
}


def rows(users: list[str | None], product: str = "soup") -> list[dict[str, str]]:
    """All say the same; those of ann are good, those of bob are bad."""
    return [
        {"text": TEXT, "label": "bad" if user == "bob" else "good", "product": product}
        | ({} if user is None else {"user": user})
        for user in users
    ]


def write(path: Path, data: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return path


@pytest.fixture(scope="module", params=["cma", "basis-cust", "evidence"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ids")
    data = write(folder / "train.jsonl", rows(["ann", "bob"] * 20))
    train(
        data, folder / "run", settings={**known(request.param, SETTINGS), "model.name": request.param}, progress=False
    )
    return folder / "run"


def test_python(run: Path) -> None:
    model = load(run)
    assert model.predict([TEXT] * 2, users=["ann", "bob"], products=["soup"] * 2) == ["good", "bad"]
    stranger, nobody = model.predict_proba([TEXT] * 2, users=["eve", None], products=["soup", "soup"])
    np.testing.assert_allclose(stranger, nobody, rtol=1e-5)
    with pytest.raises(DataError, match=r"reads who wrote a text and about what; give users= and products="):
        model.predict([TEXT])
    with pytest.raises(DataError, match="1 texts and 2 for users; give one for each text, None where unknown"):
        model.predict([TEXT], users=["ann", "bob"], products=["soup"])
    with pytest.raises(DataError, match="1 texts and one string for users"):
        model.predict([TEXT], users="ann", products=["soup"])


def test_evaluate_and_predict(run: Path, tmp_path: Path, cli: Cli) -> None:
    """In another order than in training, so that ids of their own would be wrong."""
    data = write(tmp_path / "test.jsonl", rows(["bob", "ann", "bob", "ann", "ann"]))
    assert evaluate_run(run, Named(path=data), progress=False)[0].accuracy == 1
    prepare(data, tmp_path / "corpus", progress=False)
    assert evaluate_run(run, Named(path=tmp_path / "corpus"), progress=False)[0].accuracy == 1
    cli.ok("predict", run, data, "--out", tmp_path / "out.jsonl", "--quiet")
    labels = [json.loads(line)["label"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert labels == ["bad", "good", "bad", "good", "good"]


def test_a_missing_id_is_an_unknown_one(run: Path, tmp_path: Path, cli: Cli) -> None:
    data = write(tmp_path / "test.jsonl", rows(["bob", None]))
    cli.ok("predict", run, data, "--out", tmp_path / "out.jsonl", "--quiet")
    known, unknown = (json.loads(line)["p_bad"] for line in (tmp_path / "out.jsonl").read_text().splitlines())
    expected = load(run).predict_proba([TEXT] * 2, users=["bob", None], products=["soup"] * 2)[:, 0]
    assert [known, unknown] == pytest.approx(expected.tolist(), rel=1e-5)
    assert known > unknown


def test_a_counterfactual_is_of_the_user(run: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen, really = load(run), list[Batch](), removal.logits_of

    def logits_of(of: Run, batch: Batch, z: np.ndarray) -> np.ndarray:
        seen.append(batch)
        return really(of, batch, z)

    monkeypatch.setattr("emhrnn.explain.removal.logits_of", logits_of)
    text = f"{TEXT} Meal. It was."
    expected = model.predict_proba([text], users=["bob"], products=["soup"])[0]
    found = model.counterfactual(text, user="bob", product="soup")
    assert found.before == pytest.approx(expected, abs=1e-6)
    told = cli.ok("explain", run, text, "--user", "bob", "--product", "soup", "--counterfactual", "--json").json[
        "counterfactual"
    ]
    assert told == found.to_dict()
    assert len(seen) >= 2
    for batch in seen:
        assert batch.users is not None
        assert batch.products is not None
        assert set(batch.users) == {model.run.users.index("bob")}
        assert set(batch.products) == {model.run.products.index("soup")}


def test_an_explanation_of_evidence_has_users_in_its_prior(run: Path) -> None:
    model = load(run)
    if model.run.config.model.name != "evidence":
        pytest.skip("its explanations do not add up to logits")
    ann, bob, eve = model.explain([TEXT] * 3, users=["ann", "bob", "eve"], products=["soup"] * 3)
    assert ann.evidence is not None
    assert bob.evidence is not None
    assert eve.evidence is not None
    assert ann.evidence.bias.argmax() != bob.evidence.bias.argmax()
    between = np.abs(ann.evidence.bias - bob.evidence.bias)
    assert (np.abs(eve.evidence.bias - bob.evidence.bias) < between).all()  # whom the model does not know
    np.testing.assert_allclose(ann.evidence.logits(), ann.evidence.bias + ann.evidence.phrases.sum(axis=0))


def test_whoever_is_rare_is_read_as_the_average(tmp_path: Path, cli: Cli) -> None:
    """Of the documents that are trained on, not of those held out; and a run that goes on knows the same names."""
    users = ["ann", "bob"] * 20 + ["eve"] * 4
    data = write(tmp_path / "train.jsonl", rows([*users]))
    valid = write(tmp_path / "valid.jsonl", rows(["ann", "bob", "eve", "eve"]))
    tiny = {**SETTINGS, "model.name": "cma", "training.epochs": 1}
    trained = train(data, tmp_path / "run", valid=valid, settings=tiny, progress=False)
    assert load(tmp_path / "run").run.users == ("ann", "bob")
    rare, stranger = trained.model.predict_proba([TEXT] * 2, users=["eve", "zoe"], products=["soup"] * 2)
    np.testing.assert_allclose(rare, stranger, rtol=1e-5)
    went_on = train(None, tmp_path / "run", settings={"training.epochs": 2}, resume=True, progress=False)
    assert went_on.model.run.users == ("ann", "bob")

    train(data, tmp_path / "four", valid=valid, settings={**tiny, "model.id_count": 4}, progress=False)
    assert load(tmp_path / "four").run.users == ("ann", "bob", "eve")
    message = cli.error("train", data, "--out", tmp_path / "none", "--model", "cma", "--set", "model.id_count=30")
    assert "no user has 30 training documents or more" in message
    assert "lower model.id_count, or set model.ids=false" in message


def test_data_without_ids(run: Path, tmp_path: Path, cli: Cli) -> None:
    data = write(tmp_path / "bare.jsonl", [{"text": TEXT, "label": "good"}])
    assert "has no user column; give data with one" in cli.error("evaluate", run, data, "--quiet")
    message = cli.error("predict", run, data, "--out", tmp_path / "out.csv", "--quiet")
    assert "reads user ids and" in message
    assert not (tmp_path / "out.csv").exists()


def test_text_only_models_need_none(made: Path) -> None:
    assert len(Model(load(made / "run").run).predict([TEXT], users=[None], products=[None])) == 1
