"""Two runs on one set of data, against what `explain` and `evaluate` say of them; the commands table3 and figures."""

import json
from pathlib import Path

import pytest

from emhrnn.api import load, train
from emhrnn.paper.analysis.analyse import Analysis, analyse
from emhrnn.training.config import make_config
from emhrnn.training.data import Named
from tests.behaviour.commands import TINY, Cli, rows, write_reviews, write_rows
from tests.explain.documents import HOSTILE


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of MHS-RNN."""
    folder = tmp_path_factory.mktemp("other")
    settings = [assignment for assignment in TINY if assignment != "--set"]
    config = make_config(assignments=["model.name=mhs-rnn-att", "training.seed=7"], shared=settings)
    train(write_reviews(folder / "reviews.csv", 24), folder / "mhs", config=config, progress=False)
    return folder / "mhs"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hostile = HOSTILE.replace("\ud800", "?")  # no file of text can hold half a pair
    path = tmp_path_factory.mktemp("analysed") / "data.jsonl"
    return write_rows(path, [*rows(10), (hostile, "good"), ("  ", "bad")])


def analysed(runs: list[Path], data: Path, seed: int = 3) -> Analysis:
    folders = dict(zip(("EM-HRNN", "MHS-RNN"), runs, strict=True))
    words = ("good", "Bad", "nowhere")
    return analyse(folders, Named(path=data), words=words, documents=6, seed=seed, progress=False)


@pytest.fixture(scope="module")
def analysis(made: Path, other: Path, data: Path) -> Analysis:
    return analysed([made / "run", other], data)


def test_numbers_are_those_of_explain_and_evaluate(
    cli: Cli, analysis: Analysis, made: Path, other: Path, data: Path
) -> None:
    told = analysis.to_dict()
    texts = [row["text"] for row in map(json.loads, data.read_text().splitlines())][:-1]
    assert (told["documents"], told["skipped"]) == (len(texts), 1)
    choices = []
    for folder, model in zip((made / "run", other), told["models"], strict=True):
        explanations = load(folder).explain(texts)
        lengths = [len(phrase.words) for one in explanations for phrase in one.phrases]
        assert model["phrases"]["phrases"] == len(lengths)
        assert model["phrases"]["mean"] == pytest.approx(sum(lengths) / len(lengths))
        scores = cli.ok("evaluate", folder, data, "--json", "--quiet").json
        assert model["accuracy"] == pytest.approx(scores["accuracy"])
        choices.append([one.attention_path().word for one in explanations])
        assert [word["word"] for word in model["attention"]] == ["good", "bad", "nowhere"]
        assert [word["count"] for word in model["attention"]] == [5, 5, 0]
    same = sum(a.text.lower() == b.text.lower() for a, b in zip(*choices, strict=True))
    place = sum(a.start == b.start for a, b in zip(*choices, strict=True))
    everywhere = told["agreement_of_all"]
    assert (everywhere["same_word"], everywhere["same_place"]) == (same, place)
    assert everywhere["chance"] == pytest.approx(sum(1 / len(one.starts) for one in explanations) / len(texts))
    assert told["agreement"]["documents"] == len(told["drawn"]) == 6
    for drawn in told["drawn"]:
        assert list(drawn["words"]) == [column[drawn["row"] - 1].text for column in choices]
    em = load(made / "run").explain(texts)
    weights = [word.weight for one in em for word in one.words if word.text.lower() == "good"]
    lifts = [word.lift for one in em for word in one.words if word.text.lower() == "good"]
    assert told["models"][0]["attention"][0]["weight"] == pytest.approx(sum(weights) / len(weights), rel=1e-5)
    assert told["models"][0]["attention"][0]["lift"] == pytest.approx(sum(lifts) / len(lifts), rel=1e-5)


def test_the_seed_decides_which_documents_are_drawn(analysis: Analysis, run: Path, data: Path) -> None:
    drawn = [[one.row for one in analysed([run, run], data, seed).drawn] for seed in (3, 4)]
    assert drawn[0] == [one.row for one in analysis.drawn] != drawn[1]


def test_a_run_beside_itself_agrees_everywhere_also_without_labels(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in rows(6)))
    found = analysed([run, run], data)
    assert found.agreement_of_all.same_place == found.agreement_of_all.documents == 6
    assert [model.accuracy for model in found.models] == [None, None]


def test_table3_by_command(cli: Cli, run: Path, other: Path, made: Path, tmp_path: Path) -> None:
    options = ["--out", tmp_path / "out", "--documents", "4", "--quiet"]

    def refused(*given: str | Path) -> str:
        return cli.error("paper", "table3", *given, *options)

    data = made / "test.jsonl"
    assert "names no word" in refused(run, other, data, "--words", ", ,")
    cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus", "--quiet")
    assert "prepared corpus" in refused(run, other, tmp_path / "corpus")
    assert "no documents with words" in refused(run, other, write_rows(tmp_path / "empty.csv", [(" ", "good")]))
    assert "is a run of mhs-rnn-att, not of em-hrnn" in refused(other, run, data)
    assert not (tmp_path / "out").exists()
    assert "EM-HRNN" in cli.ok("paper", "table3", run, other, data, *options).out
    table = (tmp_path / "out" / "table3.md").read_text()
    assert "command: `emhrnn paper table3 run mhs test.jsonl --out" in table
    assert str(tmp_path) not in table + (tmp_path / "out" / "table3.json").read_text()


def test_figures_by_command(cli: Cli, run: Path, other: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    shown = cli.ok("paper", "figures", run, other, "--out", out).out
    assert shown.count("Decided most by") == 2
    for name in ("figures.html", "figures.txt", "figures.json"):
        assert "emhrnn paper figures run mhs" in (out / name).read_text(encoding="utf-8")
    assert "is not a file" in cli.error("paper", "figures", run, other, "--text", tmp_path)
    wrong = tmp_path / "wrong"
    for em, mhs, told in ((other, run, "mhs-rnn-att, not of em-hrnn"), (run, run, "em-hrnn, not of mhs-rnn-att")):
        assert f"is a run of {told}" in cli.error("paper", "figures", em, mhs, "--out", wrong)
    assert not wrong.exists()
