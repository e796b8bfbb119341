"""The public names: there, typed, documented, and free until they are used."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import emhrnn
from emhrnn.errors import CheckpointError, ConfigError, DataError
from tests.behaviour.commands import GOOD, SMALL_EM, write_rows


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    assert len(emhrnn.__all__) == 10
    for name in emhrnn.__all__:
        value = getattr(emhrnn, name)
        assert name in dir(emhrnn)
        assert name == "__version__" or value.__doc__


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Classifier'; it has Corpus"):
        emhrnn.Classifier  # noqa: B018


def test_importing_costs_nothing() -> None:
    code = "import sys; before = set(sys.modules); import emhrnn; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("emhrnn")] == ["emhrnn", "emhrnn.version"]
    assert not {"torch", "numpy", "pyarrow", "sklearn", "pydantic"} & set(loaded)


def test_help_imports_neither_torch_nor_numpy() -> None:
    code = "import sys; import emhrnn.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "pyarrow", "sklearn", "pydantic"} & set(loaded)


def test_train_and_load(tmp_path: Path) -> None:
    texts = [(f"{'good' if i % 2 else 'bad'} soup {i}", str(i % 2)) for i in range(20)]
    data = write_rows(tmp_path / "a.jsonl", texts)
    trained = emhrnn.train(data, tmp_path / "run", settings=SMALL_EM, progress=False)
    assert trained.folder == tmp_path / "run"
    model = emhrnn.load(tmp_path / "run")
    assert model.classes == ("0", "1")
    probabilities = model.predict_proba([GOOD, "soup"])
    assert probabilities.dtype == np.float32
    assert model.predict([GOOD, "soup"]) == [model.classes[best] for best in probabilities.argmax(axis=1)]
    assert model.predict([]) == []
    assert isinstance(model.explain(GOOD), emhrnn.Explanation)
    assert "em-hrnn: 2 classes" in repr(model)
    with pytest.raises(DataError, match="give a list of texts"):
        model.predict(GOOD)
    with pytest.raises(ConfigError, match="give one of them"):
        emhrnn.train(data, tmp_path / "x", settings={}, config=trained.model.run.config)
    with pytest.raises(CheckpointError, match="no such run folder"):
        emhrnn.load(tmp_path / "none")


def test_several_labels_per_document(tmp_path: Path) -> None:
    lines = [f'{{"text": "good soup {i}", "label": {labels}}}' for i, labels in enumerate(['["a"]', '["a", "b"]'] * 10)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    model = emhrnn.train(tmp_path / "a.jsonl", tmp_path / "run", settings=SMALL_EM, progress=False).model
    predicted = model.predict(["good soup", "bad"])
    assert all(isinstance(labels, tuple) and set(labels) <= {"a", "b"} for labels in predicted)


def test_corpus_prepare_and_documents(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.jsonl", [("good soup", "1"), ("bad soup", "0")])
    corpus = emhrnn.prepare(data, tmp_path / "corpus", progress=False)
    assert isinstance(corpus, emhrnn.Corpus)
    assert len(emhrnn.Corpus.open(tmp_path / "corpus")) == 2
    document = emhrnn.read_document(GOOD)
    assert isinstance(document, emhrnn.Document)
    assert document.n_sentences == 2
