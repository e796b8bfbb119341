"""Table 3 and the two runs behind it."""

from dataclasses import replace
from pathlib import Path

import pytest

from emhrnn.errors import ConfigError
from emhrnn.paper.analysis.table3 import Pair, Table3, describe_training, render_table3, train_job
from emhrnn.training.run import is_run
from tests.behaviour.commands import TINY, write_reviews
from tests.explain.documents import REVIEW
from tests.paper.analysis.made_up import made_up_analysis

TRAINED = {
    "model": "em-hrnn", "data": "d.jsonl", "documents": 5, "epochs": 1, "seed": 0, "vectors": None, "estep": "local",
    "settings": {"training.epochs": 1},
}  # fmt: skip


def test_the_papers_numbers_stand_beside_ours() -> None:
    text = render_table3(Table3(made_up_analysis(), [TRAINED, {**TRAINED, "estep": None}]))
    assert "| EM-HRNN | 4.10 | 1 | 9 | 4.31 | 1 | 11 |" in text
    assert "| MHS-RNN | 4.10 | 1 | 9 | 4.72 | 1 | 17 |" in text
    assert "| good | 0.50 | 0.69 | 0.50 | 0.62 |" in text
    assert "EM-HRNN was trained with training.epochs=1 set" in text
    assert "176 of 200" in text
    assert "not been judged by people" in text


def test_no_text_of_others_is_passed_on() -> None:
    table = Table3(made_up_analysis(), [TRAINED] * 2)
    told = str(table.to_dict()) + render_table3(table)
    assert "so it goes" in told
    assert "somebody else" not in told
    assert REVIEW.split(".")[0] not in told
    assert "<b>" not in render_table3(table)


def test_runs_or_data(tmp_path: Path) -> None:
    given = Pair(em=tmp_path / "a", mhs=tmp_path / "b")
    assert given.folders(tmp_path) == (tmp_path / "a", tmp_path / "b")
    for pair, words in (
        (Pair(), "no runs"),
        (Pair(em=tmp_path), "one run was given"),
        (replace(given, train=tmp_path), "give one of them"),
    ):
        with pytest.raises(ConfigError, match=words):
            pair.folders(tmp_path)


def test_training_a_run_of_the_pair(tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "reviews.csv", 12)
    settings = [assignment for assignment in TINY if assignment != "--set"]
    pair = Pair(train=data, assignments=settings)
    job = pair._job("mhs-rnn-att", data)
    result = train_job(job.given, tmp_path / "job")
    assert result["epochs"] == 1
    run = tmp_path / "job" / "run"
    assert is_run(run)
    assert describe_training(run)["data"] == "reviews.csv"
    assert describe_training(run)["model"] == "mhs-rnn-att"
    assert describe_training(run)["settings"]["model.word_size"] == 3
    assert "training.seed" not in describe_training(run)["settings"]
    assert train_job(job.given, tmp_path / "job") == result  # what is done is not done again
