"""A run goes through MLflow with a local store, and predicts as before."""

from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import load
from emhrnn.errors import CheckpointError, ExtraError
from emhrnn.export import mlflow_model

TEXTS = ["The soup was good.", "I will never come back!"]


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module = pytest.importorskip("mlflow", reason="needs the extra mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    module.set_tracking_uri(f"file://{tmp_path / 'store'}")
    yield module
    module.set_tracking_uri("")


@pytest.mark.filterwarnings("ignore")  # of its own libraries
def test_saved_and_logged_models_predict_as_the_run_does(mlflow, tmp_path: Path) -> None:
    import pandas

    model = load("demo")
    mlflow_model.save_model("demo", tmp_path / "saved")
    with mlflow.start_run():
        logged = mlflow_model.log_model("demo", name="reviews")
    for place in (str(tmp_path / "saved"), logged.model_uri):
        loaded = mlflow.pyfunc.load_model(place)
        for given in (TEXTS, pandas.DataFrame({"text": TEXTS}), pandas.DataFrame({"other": TEXTS})):
            told = loaded.predict(given)
            assert told["label"].tolist() == model.predict(TEXTS)
            np.testing.assert_array_equal(told[list(model.classes)].to_numpy(), model.predict_proba(TEXTS))
    assert "emhrnn==" in (tmp_path / "saved" / "requirements.txt").read_text()
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".pkl", ".pickle")]


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.extras.installed", lambda library: library != "mlflow")
    with pytest.raises(ExtraError, match=r"emhrnn\[mlflow\]"):
        mlflow_model.save_model("demo", tmp_path / "saved")


@pytest.mark.filterwarnings("ignore")
def test_a_folder_that_is_no_run(mlflow, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        mlflow_model.save_model(tmp_path / "nothing", tmp_path / "saved")
