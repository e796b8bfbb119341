"""`emhrnn paper analyse`: two runs on one set of data, against what `explain` and `evaluate` say of them."""

import json
from pathlib import Path

import pytest

from emhrnn.api import load
from emhrnn.paper.analysis.analyse import Question, analyse
from emhrnn.paper.analysis.judge import Judging, count_votes
from emhrnn.paper.analysis.report import write_analysis
from emhrnn.training.data import Named
from tests.behaviour.commands import TINY, Cli, rows, tiny, write_reviews, write_rows
from tests.explain.documents import HOSTILE


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of MHS-RNN."""
    from emhrnn.api import train
    from emhrnn.training.config import make_config

    folder = tmp_path_factory.mktemp("other")
    settings = [assignment for assignment in TINY if assignment != "--set"]
    config = make_config(assignments=["model.name=mhs-rnn-att", "training.seed=7"], shared=settings)
    train(write_reviews(folder / "reviews.csv", 24), folder / "mhs", config=config, progress=False)
    return folder / "mhs"


@pytest.fixture(scope="module")
def analysed(made: Path, other: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data.jsonl, hostile text in it, and the analysis of it in `out`."""

    folder = tmp_path_factory.mktemp("analysed")
    hostile = HOSTILE.replace("\ud800", "?")  # no file of text can hold half a pair
    data = write_rows(folder / "data.jsonl", [*rows(10), (hostile, "good"), ("  ", "bad")])
    question = Question(documents=6, seed=3, words=("good", "Bad", "nowhere"))
    write_analysis(analyse([made / "run", other], Named(path=data), question, command="c"), folder / "out")
    return folder


def test_numbers_are_those_of_explain_and_evaluate(cli: Cli, made: Path, other: Path, analysed: Path) -> None:
    told = json.loads((analysed / "out" / "report.json").read_text())
    texts = [row["text"] for row in map(json.loads, (analysed / "data.jsonl").read_text().splitlines())][:-1]
    assert (told["documents"], told["skipped"]) == (len(texts), 1)
    choices = []
    for folder, model in zip((made / "run", other), told["models"], strict=True):
        explanations = load(folder).explain(texts)
        lengths = [len(phrase.words) for one in explanations for phrase in one.phrases]
        assert model["phrases"]["phrases"] == len(lengths)
        assert model["phrases"]["mean"] == pytest.approx(sum(lengths) / len(lengths))
        scores = cli.ok("evaluate", folder, analysed / "data.jsonl", "--json", "--quiet").json
        assert model["accuracy"] == pytest.approx(scores["accuracy"])
        choices.append([one.attention_path().word for one in explanations])
        assert [word["word"] for word in model["attention"]] == ["good", "bad", "nowhere"]
        assert [word["count"] for word in model["attention"]] == [5, 5, 0]
    same = sum(a.text.lower() == b.text.lower() for a, b in zip(*choices, strict=True))
    place = sum(a.start == b.start for a, b in zip(*choices, strict=True))
    everywhere = told["agreement_of_all"]
    assert (everywhere["same_word"], everywhere["same_place"]) == (same, place)
    assert told["agreement"]["documents"] == len(told["drawn"]) == 6
    for drawn in told["drawn"]:
        assert drawn["words"] == [column[drawn["row"] - 1].text for column in choices]
    em = load(made / "run").explain(texts)
    weights = [word.weight for one in em for word in one.words if word.text.lower() == "good"]
    lifts = [word.lift for one in em for word in one.words if word.text.lower() == "good"]
    assert told["models"][0]["attention"][0]["weight"] == pytest.approx(sum(weights) / len(weights), rel=1e-5)
    assert told["models"][0]["attention"][0]["lift"] == pytest.approx(sum(lifts) / len(lifts), rel=1e-5)


def test_pages_hold_no_markup_of_the_documents(analysed: Path) -> None:
    for name in ("report.html", "judge.html"):
        page = (analysed / "out" / name).read_text(encoding="utf-8")
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "<img" not in page
        assert "src=" not in page.replace("src=x", "")
        assert page.count("<style>") == 1
    key = json.loads((analysed / "out" / "judge-key.json").read_text())
    judge = (analysed / "out" / "judge.html").read_text(encoding="utf-8")
    assert not any(name in judge for name in (*key["models"], "em-hrnn", "mhs-rnn"))  # blind


def test_the_same_seed_gives_the_same_page(made: Path, other: Path, analysed: Path) -> None:

    data = Named(path=analysed / "data.jsonl")
    runs = [made / "run", other]
    again = [Judging.of(analyse(runs, data, Question(documents=6, seed=seed), command="c")).key() for seed in (3, 4)]
    key = json.loads((analysed / "out" / "judge-key.json").read_text())
    assert again[0] == key
    assert again[1] != key


def test_a_sample_is_drawn_from_all_of_the_data(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "data.csv", 30)
    told = [
        cli.ok(
            "paper",
            "analyse",
            run,
            data,
            "--out",
            tmp_path / "out",
            "--sample",
            "9",
            "--seed",
            seed,
            "--quiet",
            "--json",
        ).json
        for seed in "112"
    ]
    rows = [[example["row"] for example in one["drawn"]] for one in told]  # type: ignore[attr-defined]
    assert told[0]["documents"] == len(rows[0]) == 9
    assert rows[0] == rows[1] != rows[2]
    assert max(rows[0]) > 9


def test_one_run_and_words_tied_to_classes(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "data.csv", 12)
    told = cli.ok("paper", "analyse", run, data, "--out", tmp_path / "out", "--words", "auto", "--quiet", "--json").json
    assert set(told["tied"]) == {"good", "bad"}  # type: ignore[call-overload]
    assert {"liked", "lovely"} <= set(told["tied"]["good"])  # type: ignore[index]
    assert {"hated", "cheap"} <= set(told["tied"]["bad"])  # type: ignore[index]
    assert told["agreement"] is None
    assert not (tmp_path / "out" / "judge.html").exists()
    assert "Give two runs" in (tmp_path / "out" / "report.md").read_text()


def test_a_model_without_phrases_twice(cli: Cli, made: Path, tmp_path: Path) -> None:
    """The same run beside itself agrees everywhere, and what was judged before is gone."""
    out, hn = tmp_path / "out", tmp_path / "hn"
    cli.ok("train", made / "reviews.csv", "--out", hn, "--quiet", *tiny("hn-att"))
    out.mkdir()
    (out / "judge.html").write_text("of another day")
    told = cli.ok("paper", "analyse", hn, hn, made / "test.jsonl", "--out", out, "--quiet", "--json").json
    assert [model["name"] for model in told["models"]] == ["hn (hn-att) 1", "hn (hn-att) 2"]  # type: ignore[attr-defined]
    assert [model["phrases"] for model in told["models"]] == [None, None]  # type: ignore[attr-defined]
    assert told["agreement"]["same_place"] == told["agreement"]["documents"] == 8  # type: ignore[index]
    assert "has no phrases" in (out / "report.md").read_text()
    assert "Phrase lengths" not in (out / "report.html").read_text(encoding="utf-8")
    assert not (out / "judge.html").exists()


def test_data_without_labels(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in rows(6)))
    shown = cli.ok("paper", "analyse", run, data, "--out", tmp_path / "out", "--words", "auto", "--quiet").out
    assert "6 documents of data.jsonl" in shown
    assert "report.html" in shown
    assert json.loads((tmp_path / "out" / "report.json").read_text())["models"][0]["accuracy"] is None


def test_what_cannot_be_analysed(cli: Cli, run: Path, made: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "out", made / "test.jsonl"
    assert "--out FOLDER" in cli.error("paper", "analyse", run, data)
    assert "1 paths were given" in cli.error("paper", "analyse", run, "--out", out)
    assert "names no word" in cli.error("paper", "analyse", run, data, "--out", out, "--words", ", ,")
    assert "alone" in cli.error("paper", "analyse", run, data, "--out", out, "--votes", "v.json")
    cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus", "--quiet")
    assert "prepared corpus" in cli.error("paper", "analyse", run, tmp_path / "corpus", "--out", out)
    empty = write_rows(tmp_path / "empty.csv", [(" ", "good")])
    assert "no documents with words" in cli.error("paper", "analyse", run, empty, "--out", out)
    cli.ok("train", data, "--out", tmp_path / "lstm", "--quiet", *tiny("lstm"))
    assert "no weights of words and sentences" in cli.error("paper", "analyse", tmp_path / "lstm", data, "--out", out)
    assert not out.exists()


def test_table3_by_command(cli: Cli, run: Path, other: Path, made: Path, tmp_path: Path) -> None:
    given = ["--em", run, "--mhs", other, "--data", made / "test.jsonl", "--out", tmp_path, "--work", tmp_path / "w"]
    shown = cli.ok("paper", "table3", *given, "--documents", "4", "--quiet").out
    assert "EM-HRNN" in shown
    table = (tmp_path / "table3.md").read_text()
    assert "command: `emhrnn paper table3 --em run --mhs mhs --data test.jsonl --words" in table
    assert str(tmp_path) not in table + (tmp_path / "table3.json").read_text()
    assert (tmp_path / "w" / "analysis" / "report.html").is_file()
    swapped = ["--em", other, "--mhs", run, "--data", made / "test.jsonl", "--out", tmp_path]
    assert "is a run of mhs-rnn-att, not of em-hrnn" in cli.error("paper", "table3", *swapped)


def test_figures_by_command(cli: Cli, run: Path, other: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    shown = cli.ok("paper", "figures", "--em", run, "--mhs", other, "--out", out, "--quiet").out
    assert shown.count("Decided most by") == 2
    for name in ("figure4.svg", "figure5.svg", "figures.html", "figures.txt", "figures.json"):
        assert "emhrnn paper figures --em run --mhs mhs" in (out / name).read_text(encoding="utf-8")
    assert "is no file" in cli.error("paper", "figures", "--em", run, "--mhs", other, "--text", tmp_path)
    assert "one run was given" in cli.error("paper", "figures", "--em", run, "--out", out)
    wrong = tmp_path / "wrong"
    for em, mhs, told in ((other, run, "mhs-rnn-att, not of em-hrnn"), (run, run, "em-hrnn, not of mhs-rnn-att")):
        refused = cli.error("paper", "figures", "--em", em, "--mhs", mhs, "--out", wrong)
        assert f"is a run of {told}; `emhrnn paper analyse` compares any two" in refused
    assert not wrong.exists()


def votes(path: Path, identity: str, given: dict[str, str]) -> Path:
    path.write_text(json.dumps({"format": "emhrnn.votes/1", "id": identity, "votes": given}))
    return path


def judged_key(folder: Path, lefts: list[int]) -> None:
    cases = [{"row": number, "left": left, "words": ["a", "b"]} for number, left in enumerate(lefts)]
    key = {"format": "emhrnn.judging/1", "id": "x", "models": ["em", "mhs"], "cases": cases}
    (folder / "judge-key.json").write_text(json.dumps(key))


def test_votes_are_counted_for_the_model_on_that_side(cli: Cli, tmp_path: Path) -> None:
    """The paper's own count: 14 for EM-HRNN, 3 for MHS-RNN, 7 that nobody could decide."""
    judged_key(tmp_path, [0, 1] * 12 + [0])
    side = {True: "left", False: "right"}
    given = {str(n): side[n % 2 == 0] for n in range(14)}
    given |= {str(n): side[n % 2 == 1] for n in range(14, 17)} | {str(n): "same" for n in range(17, 24)}
    file = votes(tmp_path / "votes.json", "x", given)
    told = cli.ok("paper", "analyse", "--votes", file, "--out", tmp_path, "--json").json
    assert told["wins"] == [14, 3]
    assert (told["undecided"], told["open"], told["winner"]) == (7, 1, "em")
    assert told["p"] == pytest.approx(2 * (1 + 17 + 136 + 680) / 2**17)
    assert json.loads((tmp_path / "verdict.json").read_text()) == told
    assert (
        "Ahead: em, more than luck would explain" in cli.ok("paper", "analyse", "--votes", file, "--out", tmp_path).out
    )
    assert str(count_votes(votes(tmp_path / "none.json", "x", {}), tmp_path)).endswith("not judged: 25.")


def test_votes_that_cannot_be_counted(cli: Cli, tmp_path: Path) -> None:
    judged_key(tmp_path, [0, 1])
    wrong = votes(tmp_path / "votes.json", "y", {})
    assert "belongs to another page" in cli.error("paper", "analyse", "--votes", wrong, "--out", tmp_path)
    strange = votes(tmp_path / "votes.json", "x", {"9": "left"})
    assert "save the votes again" in cli.error("paper", "analyse", "--votes", strange, "--out", tmp_path)
    assert "does not exist" in cli.error("paper", "analyse", "--votes", strange, "--out", tmp_path / "elsewhere")
    strange.write_text("[]")
    assert "is not the file that judge.html saves" in cli.error(
        "paper", "analyse", "--votes", strange, "--out", tmp_path
    )
