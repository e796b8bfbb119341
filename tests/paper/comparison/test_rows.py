"""Rows as they are written on the command line; and one row on one set: what is tested is what was trained."""

import json
from pathlib import Path

import pytest

from emhrnn.errors import ConfigError
from emhrnn.paper.comparison import rows
from emhrnn.paper.comparison.data import DataSet, data_job, prepare_data
from emhrnn.paper.comparison.rows import SystemRow, parse_rows, train_row, unpack
from emhrnn.training.config import make_config
from emhrnn.training.data import Named


def test_one_syntax() -> None:
    assert parse_rows(
        ["tfidf-lr,hn-att", "em-hrnn[em.estep=blocks,em.block_length=5], w1 = em-hrnn[em.block_length=1]"]
    ) == [
        SystemRow("tfidf-lr", "tfidf-lr"),
        SystemRow("hn-att", "hn-att"),
        SystemRow("em-hrnn[em.estep=blocks,em.block_length=5]", "em-hrnn", ("em.estep=blocks", "em.block_length=5")),
        SystemRow("w1", "em-hrnn", ("em.block_length=1",)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hn-at", "unknown model 'hn-at'; did you mean 'hn-att'\\?"),
        ("zzzzzz", "unknown model 'zzzzzz'; `emhrnn models` lists them all"),
        ("em-hrnn[em.blocks=5", "cannot read the row 'em-hrnn\\[em.blocks=5'"),
        ("lstm,lstm", "the row 'lstm' is given twice; give one of them another name: NAME=lstm"),
        (" , ", "no model was given"),
        ("lstm[data.min_count=3]", "sets data.min_count, which is the same for all rows; give it by --set"),
        ("lstm[model.word_size=2|3,training.learning_rate=1|2]", "tries values of several settings; write | in one"),
        ("lstm[training.seed=3]", "sets training.seed, which is the same for all rows"),
    ],
)
def test_bad_rows(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rows([text])


SETTINGS = (
    "model.name=basis-cust", "model.embedding_size=4", "model.word_size=4", "model.attention_size=4", "model.id_size=8",
    "model.dropout=0.0", "training.epochs=12", "training.learning_rate=0.05", "training.batch_words=200",
    "training.decay='none'",
)  # fmt: skip


def test_values_to_pick_from() -> None:
    (row,) = parse_rows(["lstm[training.learning_rate=0.1|0.2,model.word_size=3,data.vocabulary=vectors]"])
    assert row.first == ("model.word_size=3", "data.vocabulary=vectors", "training.learning_rate=0.1")
    assert row.tried == ("training.learning_rate=0.1", "training.learning_rate=0.2")


def test_the_test_rows_have_the_users_of_the_training_rows(tmp_path: Path) -> None:
    """Only the user tells the label here: with users unknown, half of the test rows would be wrong."""
    rows = [
        {"text": "it came and I opened it", "label": "ab"[i % 2], "user": f"u{i % 2}", "product": "p", "split": part}
        for part, count in (("train", 120), ("dev", 20), ("test", 40))
        for i in range(count)
    ]
    source = tmp_path / "ids.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = make_config(assignments=SETTINGS, model="em-hrnn")
    data, own = tmp_path / "data" / "ids", tmp_path / "runs" / "row"
    data.mkdir(parents=True)
    own.mkdir(parents=True)
    prepare_data(data_job(DataSet("ids", source), config).given, data)
    tried = [f"training.learning_rate={rate}" for rate in ("1e-9", "0.05", "1e-8")]
    result = train_row({"data": "ids", "settings": config.model_dump(), "vectors": None, "tried": tried}, own)
    assert result["valid_accuracy"] == 1.0
    assert result["accuracy"] == 1.0
    assert result["class_f1"] == {"a": 1.0, "b": 1.0}
    assert (result["picked"], list(result["tried"])) == (tried[1], tried)
    assert result["tried"][tried[1]] > max(result["tried"][tried[0]], result["tried"][tried[2]])
    assert unpack(result["right"], 40).all()
    assert sorted(path.name for path in own.glob("run*")) == ["run-0.05", "run-1e-8", "run-1e-9"]


def test_progress_moves_within_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, str]] = []
    monkeypatch.setattr(rows, "EVERY", 0.0)
    monkeypatch.setattr(rows, "report_progress", lambda folder, share, what: told.append((share, what)))
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"text": f"soup {x}", "label": x}) + "\n" for x in 20 * "ab"))
    config = make_config(
        assignments=(
            "model.name=lstm", "model.embedding_size=4", "model.word_size=4", "training.epochs=2",
            "training.batch_documents=9",
        )
    )  # fmt: skip
    trained = rows.train_or_resume(tmp_path / "run", Named(path=data), config, vectors=None)
    assert len(trained.fitted.epochs) == 2
    shares = [round(share * 3 * 4) for share, _ in told]  # of four batches in an epoch, and a third epoch to test in
    assert shares == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    assert told[0][1] == "reading"
    assert told[4][1] == "epoch 1 of 2"
    assert told[5][1].startswith("epoch 1 of 2, valid ")
    assert told[6][1].startswith("epoch 2 of 2, valid ")
