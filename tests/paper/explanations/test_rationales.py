"""`emhrnn paper rationales` on tiny runs and sets."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from emhrnn.paper.explanations.methods import METHODS, read_groups, score
from emhrnn.paper.explanations.networks import log_odds
from emhrnn.paper.explanations.table import NEARBY, about_run
from emhrnn.training.run import load_run
from tests.behaviour.commands import BAD, GOOD, Cli, tiny
from tests.paper.explanations.test_human import eraser, pairs, sentences, trees


@pytest.fixture(scope="module")
def runs(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run of each kind of model."""
    from emhrnn.api import train
    from emhrnn.training.config import make_config

    folder = tmp_path_factory.mktemp("runs")
    for model in ("evidence", "hn-att", "tfidf-lr", "nb-lr"):
        settings = [f"model.name={model}", *tiny(model)[3::2]]
        train(made / "reviews.csv", folder / model, config=make_config(assignments=settings), progress=False)
    return {"em-hrnn": made / "run", **{model: folder / model for model in ("evidence", "hn-att", "tfidf-lr", "nb-lr")}}


def rows(out: Path, name: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    section = json.loads((out / "rationales.json").read_text())[name]
    return {(row["run"], row["method"], row["level"]): row for row in section["rows"]}


def test_every_model_has_its_methods(cli: Cli, runs: dict[str, Path], tmp_path: Path) -> None:
    data, out = eraser(tmp_path / "movies.jsonl.gz"), tmp_path / "out"
    others = [part for name in ("hn-att", "tfidf-lr", "em-hrnn") for part in ("--other", runs[name])]
    told = cli.ok("paper", "rationales", runs["evidence"], data, *others, "--positive", "good", "--out", out).out
    found = rows(out, "ERASER movies")
    methods = {(run, method) for run, method, _ in found}
    assert {method for run, method in methods if run == "evidence"} == {"evidence", "removal", "random"}
    assert {method for run, method in methods if run == "tfidf-lr"} == {"removal", "weights", "random"}
    networks = {"removal", "first-order", "attention", "integrated gradients", "random"}
    assert {method for run, method in methods if run == "hn-att"} == networks
    assert {method for run, method in methods if run == "run"} == networks
    assert [key for key, row in found.items() if row["default"]] == [("evidence", "evidence", NEARBY)]
    for row in found.values():
        assert 0 <= row["AUPRC"]["low"] <= row["AUPRC"]["value"] <= row["AUPRC"]["high"] <= 1
    assert found["evidence", "evidence", "phrase"]["forward"] == 1
    assert found["hn-att", "integrated gradients", "word"]["backward"] == 50
    assert ("evidence", "removal", "word") not in found
    assert found["evidence", "removal", NEARBY]["AUPRC"]["value"] > 0  # the words of a phrase share its score
    assert all(row["predictions"] > 0 for row in found.values())
    assert "AUPRC" in told
    markdown = (out / "rationales.md").read_text()
    summary, details = markdown.split("# All rows")
    assert "| **evidence** | **evidence** | **nearby words** |" in summary
    assert summary.count("| attention | nearby words |") == 2  # of two runs
    assert summary.count("| random |") == 2  # of the first run: the best level, and nearby words
    assert "- commit:" in details
    assert str(tmp_path) not in markdown


def test_sections_stay_and_parts_have_signs(cli: Cli, runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--positive", "good", "--out", out)
    for path in (trees(tmp_path / "sst.zip"), sentences(tmp_path / "fine.txt"), pairs(tmp_path / "pairs.tsv")):
        cli.ok("paper", "rationales", runs["evidence"], path, *arguments)
    assert list(json.loads((out / "rationales.json").read_text())) == [
        "SST", "fine-grained sentences", "edited IMDB pairs",
    ]  # fmt: skip
    methods = {method for _, method, _ in rows(out, "fine-grained sentences")}
    assert methods == {"evidence", "removal", "alone", "random"}
    assert rows(out, "fine-grained sentences")["evidence", "evidence", "part"]["sign"]["value"] == 1
    assert rows(out, "edited IMDB pairs")["evidence", "evidence", "phrase"]["top 5"]["value"] == 1
    section = json.loads((out / "rationales.json").read_text())["edited IMDB pairs"]
    assert section["runs"][0]["flips"] == section["runs"][0]["both right"] == 1
    assert "flips 100.0 %" in (out / "rationales.md").read_text()


def test_the_command_that_trained_a_run(runs: dict[str, Path], tmp_path: Path) -> None:
    """Without folders; what a script trained has none."""
    folder = shutil.copytree(runs["nb-lr"], tmp_path / "run")
    description = json.loads((folder / "config.json").read_text())
    commands = {
        "/opt/bin/emhrnn train /data/reviews.csv --model nb-lr": "emhrnn train reviews.csv --model nb-lr",
        "pytest": None,
    }
    for command, told in commands.items():
        (folder / "config.json").write_text(json.dumps(description | {"command": command}))
        assert about_run(load_run(folder), folder).get("trained") == told


def test_what_cannot_be_compared(cli: Cli, runs: dict[str, Path], tmp_path: Path) -> None:
    data = pairs(tmp_path / "pairs.tsv")
    assert "--positive" in cli.error("paper", "rationales", runs["evidence"], data, "--positive", "great")
    assert "no explanation method" in cli.error("paper", "rationales", runs["evidence"], data, "--method", "tea")
    assert "at least 2" in cli.error("paper", "rationales", runs["evidence"], data, "--documents", "1")


@pytest.mark.parametrize("model", ["tfidf-lr", "nb-lr", "evidence"])
def test_scores_that_add_up(model: str, runs: dict[str, Path]) -> None:
    """Words of a linear model, and of the evidence model, sum to the log-odds less those of the bias."""
    run = load_run(runs[model])
    (texts,) = read_groups(run, [GOOD, BAD, GOOD + " " + BAD])
    found = score("evidence" if model == "evidence" else "weights", texts, np.random.default_rng(0))
    assert found is not None
    bias = torch.as_tensor(run.model.bias).expand(3, -1)
    base = log_odds(bias, texts.chosen, multi_label=False, temperature=run.temperature).numpy()
    sums = np.add.reduceat(found.levels["word"], texts.batch.word_offsets[:-1])
    np.testing.assert_allclose(sums, texts.odds - base, atol=1e-4)


def test_the_methods_agree_on_a_linear_model(runs: dict[str, Path]) -> None:
    (texts,) = read_groups(load_run(runs["nb-lr"]), [GOOD, BAD])
    scores = {name: score(name, texts, np.random.default_rng(0)) for name in ("weights", "lime", "removal")}
    by = {name: one.levels["sentence"] for name, one in scores.items() if one is not None}
    assert np.corrcoef(by["weights"], by["lime"])[0, 1] > 0.8
    assert np.corrcoef(by["weights"], by["removal"])[0, 1] > 0.8
    assert set(scores) < set(METHODS)
