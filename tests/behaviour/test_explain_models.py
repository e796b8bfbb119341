"""`emhrnn explain` with every model that weighs words, and with those that do not."""

import json
from pathlib import Path

import pytest

from emhrnn.api import load
from emhrnn.errors import DataError
from emhrnn.models.table import MODELS
from tests.behaviour.commands import Cli, rows, tiny

WEIGHING = sorted(name for name, row in MODELS.items() if {"words", "sentences"} <= set(row.shows))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explain") / "reviews.jsonl"
    table = [
        {"text": text, "label": label, "user": f"u{i % 3}", "product": f"p{i % 2}"}
        for i, (text, label) in enumerate(rows(24))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in table))
    return path


@pytest.mark.parametrize("name", WEIGHING)
def test_models_that_weigh_words_explain(cli: Cli, data: Path, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    cli.ok("train", data, "--out", run, "--quiet", *tiny(name))
    model = load(run)
    named = model.run.config.reads_ids
    names = ("--user", "u1", "--product", "new") if named else ()
    told = cli.ok("explain", run, "The soup was good. We hated it!", *names, "--json").json
    shares = [
        word["share"]
        for sentence in told["sentences"]  # type: ignore[attr-defined]
        for phrase in sentence["phrases"]
        for word in phrase["words"]
    ]
    assert len(shares) == 9
    assert sum(shares) == pytest.approx(1)
    texts = ["The soup was good. We hated it!"]
    table = model.predict_proba(texts, users=["u1"], products=["new"]) if named else model.predict_proba(texts)
    assert list(told["probabilities"].values()) == pytest.approx(table[0].tolist(), abs=1e-6)  # type: ignore[attr-defined]


def test_a_model_without_weights_says_so(cli: Cli, data: Path, tmp_path: Path) -> None:
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet", *tiny("lstm"))
    assert "no weights of words and sentences" in cli.error("explain", tmp_path / "run", "The soup was good.")


def test_names_are_for_models_that_read_them(cli: Cli, run: Path) -> None:
    for name in ("--user", "--product"):
        error = cli.error("explain", run, "The soup was good.", name, "ann")
        assert "does not read who wrote a text or about what" in error


def test_a_name_for_each_text(run: Path) -> None:
    with pytest.raises(DataError, match="1 texts and 2 for users; give one for each"):
        load(run).explain("The soup was good.", users=[None, None])
