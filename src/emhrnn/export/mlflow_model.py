"""A run as a model of MLflow: `mlflow.pyfunc.load_model` loads it, `mlflow models serve` serves it. The extra `mlflow`.

    from emhrnn.export import mlflow_model
    mlflow_model.save_model("run", "model")                 # a folder
    mlflow_model.log_model("run", name="reviews")           # in the active run of MLflow
    mlflow.pyfunc.load_model("model").predict(["The soup was cold."])

The folder holds the file that `emhrnn pack` writes and the name of this module, which reads it: no pickle.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emhrnn.api import Model, load
from emhrnn.extras import need
from emhrnn.training.pack import located, pack
from emhrnn.version import __version__

FILE = "model.emhrnn"
LABEL, TEXT = "label", "text"  # columns of predictions and of texts


def save_model(run: str | Path, path: str | Path, **options: Any) -> None:
    """Write a run as a folder of MLflow at `path`. `options` are those of `mlflow.pyfunc.save_model`.

    Raises:
        CheckpointError: `run` is not a finished run.
    """
    _written(run, lambda pyfunc, given: pyfunc.save_model(path=str(path), **given), options)


def log_model(run: str | Path, *, name: str = "model", **options: Any) -> Any:
    """Log a run as a model under this name in the active run of MLflow, and return its description. `options`
    are those of `mlflow.pyfunc.log_model`, such as `registered_model_name`.

    Raises:
        CheckpointError: `run` is not a finished run.
    """
    return _written(run, lambda pyfunc, given: pyfunc.log_model(name=name, **given), options)


def _written(run: str | Path, write: Callable[[Any, dict[str, Any]], Any], options: dict[str, Any]) -> Any:
    need("mlflow", "MLflow", "mlflow")
    from mlflow import pyfunc

    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        file = Path(scratch) / FILE
        pack(located(run), file)
        usual = {"pip_requirements": [f"emhrnn=={__version__}"]}
        return write(pyfunc, {"loader_module": __name__, "data_path": str(file), **usual, **options})


class _Predictor:
    """What MLflow calls."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """A table with the label of each text and the probability of each class. `data` is a list or a column of texts,
        or a table with a column `text`, or with one column."""
        import pandas

        if isinstance(data, pandas.DataFrame):
            data = data[TEXT] if TEXT in data else data.squeeze(axis=1)
        texts = list(data)
        labels = self.model.predict(texts)
        shares = self.model.predict_proba(texts)
        return pandas.DataFrame({LABEL: labels, **dict(zip(self.model.classes, shares.T, strict=True))})


def _load_pyfunc(path: str) -> _Predictor:
    """Called by MLflow, with the place of the file."""
    return _Predictor(load(path))
