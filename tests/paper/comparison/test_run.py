"""One row on one set: what is tested is what was trained."""

import json
from pathlib import Path

from emhrnn.paper.comparison.data import DataSet, data_job, prepare_data
from emhrnn.paper.comparison.run import train_row
from emhrnn.training.config import make_config

SETTINGS = (
    "model.name=basis-cust", "model.embedding_size=4", "model.word_size=4", "model.attention_size=4", "model.id_size=8",
    "model.dropout=0.0", "training.epochs=12", "training.learning_rate=0.05", "training.batch_words=200",
    "training.decay='none'",
)  # fmt: skip


def test_the_test_rows_have_the_users_of_the_training_rows(tmp_path: Path) -> None:
    """Only the user tells the label here: with users unknown, half of the test rows would be wrong."""
    rows = [
        {"text": "it came and I opened it", "label": "ab"[i % 2], "user": f"u{i % 2}", "product": "p", "split": part}
        for part, count in (("train", 120), ("dev", 20), ("test", 40))
        for i in range(count)
    ]
    source = tmp_path / "ids.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = make_config(assignments=SETTINGS)
    data, own = tmp_path / "data" / "ids", tmp_path / "runs" / "row"
    data.mkdir(parents=True)
    own.mkdir(parents=True)
    prepare_data(data_job(DataSet("ids", source), config).given, data)
    result = train_row({"data": "ids", "settings": config.model_dump(), "vectors": None}, own)
    assert result["valid_accuracy"] == 1.0
    assert result["accuracy"] == 1.0
