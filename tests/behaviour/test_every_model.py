"""Every row of the table trains, is the same for the same seed, saves, loads bit-equally and scores in the same way."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import train
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import ConfigError
from emhrnn.evaluation.predict import predict
from emhrnn.models.row import VECTORS
from emhrnn.models.table import MODELS
from emhrnn.text import Vectors
from emhrnn.training.config import make_config
from emhrnn.training.run import load_run

NAMES = sorted(set(MODELS) - {"transformer"})  # which needs pretrained weights; tests/models has its own
SETTINGS = ("training.epochs=1", "em.warmup_epochs=0", "model.means=20", "model.features=8", "model.dense_size=8")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "reviews.jsonl"
    rows = [
        {"text": review.text, "label": review.label, "user": f"u{i % 7}", "product": f"p{i % 5}"}
        for i, review in enumerate(generate_reviews(60, seed=0))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def vectors() -> Vectors:
    words = sorted({word for review in generate_reviews(60, seed=0) for word in review.text.lower().split()})
    return Vectors(words, np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32))


@pytest.mark.parametrize(("name", "more"), [*((name, ()) for name in NAMES), ("em-hrnn", ("model.cell=gru",))])
def test_train_save_load(name: str, more: tuple[str, ...], data: Path, tmp_path: Path) -> None:
    if name == "fasttext":
        pytest.importorskip("fasttext")
    config = make_config(assignments=[f"model.name={name}", *more], shared=SETTINGS)
    given = vectors() if VECTORS in MODELS[name].needs else None
    trained = train(data, tmp_path / "run", config=config, vectors=given, progress=False)
    again = train(data, tmp_path / "again", config=config, vectors=given, progress=False)
    for tensor, name in zip(
        trained.model.run.model.state_dict().values(), again.model.run.model.state_dict(), strict=True
    ):
        assert np.array_equal(tensor, again.model.run.model.state_dict()[name]), name
    before = predict(trained.model.run.model, trained.valid, multi_label=False).probabilities
    loaded = load_run(tmp_path / "run")
    assert np.array_equal(before, predict(loaded.model, trained.valid, multi_label=False).probabilities)
    assert np.allclose(before.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", ["cma", "basis-cust"])
def test_rows_that_need_ids_say_so(name: str, data: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    bare.write_text("".join(json.dumps({"text": row["text"], "label": row["label"]}) + "\n" for row in rows))
    with pytest.raises(ConfigError, match=r"give data with a user column, or set model\.ids=false"):
        train(
            bare,
            tmp_path / "run",
            config=make_config(assignments=[f"model.name={name}"], shared=SETTINGS),
            progress=False,
        )
