"""A run folder: a trained model with all that is needed to use it, and how it came to be.

config.json          format version, settings, classes, seed, versions, checksums of the data
model.safetensors    weights of the best epoch; in its header, the temperature of probabilities
vocabulary.txt       one word a line, line number = word id
ids.json             names of users and products, where the model reads them
encoder/             configuration and tokenizer of a pretrained encoder, where the model has one
history.jsonl        one JSON object per epoch
card.md              the model card, for people; written when training is done
metrics.json         scores of the best epoch on the validation data; there when training is done
checkpoint/          to resume from; not needed to use the model
corpus/              the data as word ids, where it was not given so
"""

import hashlib
import json
import math
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import TextEncoder
from emhrnn.corpus.store import is_corpus
from emhrnn.errors import CheckpointError, ExtraError
from emhrnn.evaluation.decision import Conformal
from emhrnn.evaluation.predict import Documents, Predictions, predict
from emhrnn.extras import need
from emhrnn.files import from_json, write_json
from emhrnn.models.predictor import probabilities
from emhrnn.models.row import Facts
from emhrnn.models.table import MODELS, build_model
from emhrnn.shapes import Float
from emhrnn.text import TextSettings, Vocabulary
from emhrnn.training.arrays import check_arrays, load_arrays, load_into, save_arrays
from emhrnn.training.compatibility import migrated, migrated_tensors
from emhrnn.training.config import Config, validated
from emhrnn.version import __version__

FORMAT = 1
CONFIG, WEIGHTS, VOCABULARY, IDS = "config.json", "model.safetensors", "vocabulary.txt", "ids.json"
ENCODER, HISTORY, METRICS, CARD = "encoder", "history.jsonl", "metrics.json", "card.md"
MODEL = (CONFIG, WEIGHTS, VOCABULARY, IDS, ENCODER, HISTORY, METRICS, CARD)  # to use it; the rest is to go on training
CORPUS, TENSORBOARD, CHECKPOINTS, BAD_BATCH = "corpus", "tensorboard", "checkpoint", "bad-batch.safetensors"
SHIPPED = Path(__file__).parents[1] / "demo" / "model"  # trained by tools/demo_model.py


@dataclass(eq=False)
class Run:
    """A model with its words and classes."""

    model: Any  # a Predictor; to be trained, a DocumentModel of torch
    config: Config
    vocabulary: Vocabulary
    classes: tuple[str, ...]
    multi_label: bool
    text: TextSettings  # how the training data was read; new text is read the same way
    users: tuple[str, ...] = ()  # names by id, for models that know their users and products
    products: tuple[str, ...] = ()
    embedding_size: int = 0  # of the word vectors it was built with; some models keep none of them
    temperature: float = 1.0  # of its probabilities; fitted when the weights are final
    conformal: Conformal | None = None  # for sets of labels; fitted with the temperature
    lengths: tuple[int, int] | None = None  # fewest and most words of a training document; None in old runs

    @cached_property
    def encoder(self) -> TextEncoder:
        """Reads new text as the training data was read. It is kept, because it knows the words that it has seen."""
        return TextEncoder(self.vocabulary, self.text, users=self.users, products=self.products)

    def probabilities(self, logits: Float[np.ndarray, "documents classes"]) -> Float[np.ndarray, "documents classes"]:
        """As they are shown wherever the run is used."""
        return probabilities(logits, multi_label=self.multi_label, temperature=self.temperature)

    def predict(self, documents: Documents | Batch) -> Predictions:
        """Of documents in the words of this run."""
        return predict(self.model, documents, multi_label=self.multi_label, temperature=self.temperature)

    def uncalibrate(self) -> None:
        """Undo calibration: temperature and shares are 1, and there are no sets of labels."""
        self.temperature, self.conformal = 1.0, None
        for share in self.model.shares.values():
            share.fill_(1)


def new_run(
    config: Config,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    table: Any,
    *,
    multi_label: bool,
    text: TextSettings,
    users: tuple[str, ...] = (),
    products: tuple[str, ...] = (),
    saved: Path | None = None,
) -> Run:
    """An untrained model of the configured kind on word vectors, a tensor (vocabulary, size); `saved` is the folder of
    a run whose weights it will be given."""
    run = Run(None, config, vocabulary, classes, multi_label, text, users, products, table.shape[1])
    run.model = build_model(config.model, facts_of(run, saved), table, vocabulary.words, config.training.seed)
    return run


def facts_of(run: Run, saved: Path | None = None) -> Facts:
    """What the model of a run is built for."""
    return Facts(
        classes=len(run.classes),
        several=run.multi_label,
        users=len(run.users),
        products=len(run.products),
        rate=run.config.em.rate,
        encoder="" if saved is None else str(saved / ENCODER),
    )


def is_run(path: Path) -> bool:
    """True for a folder with the description of a run."""
    return (path / CONFIG).is_file() and not is_corpus(path)


def identity(run: Run) -> str:
    """A checksum of the words and classes, which the weights know by number only: with others of the same count they
    would load, and be wrong in silence."""
    parts = [run.multi_label, run.classes, run.vocabulary.words, run.users, run.products]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def describe(folder: Path, run: Run, **facts: Any) -> None:
    """Write everything of the run folder but the weights; `facts` are kept as given (data, command, ...). The
    description comes last: where it is, the rest is there, too."""
    from importlib.metadata import version

    run.vocabulary.save(folder / VOCABULARY)
    if run.users or run.products:
        write_json(folder / IDS, {"users": run.users, "products": run.products})
    run.model.save_files(folder / ENCODER)
    write_json(
        folder / CONFIG,
        {
            "format": FORMAT,
            "config": run.config.model_dump(),
            "classes": run.classes,
            "multi_label": run.multi_label,
            "text": asdict(run.text),
            "embedding_size": run.embedding_size,
            "lengths": run.lengths,
            "parameters": run.model.parameter_count,
            "versions": {
                "emhrnn": __version__,
                "python": platform.python_version(),
                "torch": version("torch"),
                "numpy": np.__version__,
            },
            **facts,
        },
    )


def save_weights(folder: Path, run: Run, epoch: int) -> None:
    """With the temperature and what sets of labels are made with, which are of no use to other weights."""
    note = {"format": FORMAT, "epoch": epoch, "run": identity(run), "temperature": run.temperature}
    if run.conformal is not None:
        note["conformal"] = run.conformal.to_dict()
    save_arrays(folder / WEIGHTS, run.model.state_dict(), note, compact=True)


def trained_columns(folder: Path) -> tuple[tuple[str, str], ...]:
    """The columns that were named when the run was trained, as (role, name)."""
    return tuple(read_description(folder).get("data", {}).get("train", {}).get("read_as", {}).items())


def read_description(folder: Path) -> dict[str, Any]:
    """config.json, checked for being one that this version can read."""
    path = folder / CONFIG
    if not folder.exists():
        raise CheckpointError(f"{folder}: no such run folder; `emhrnn train DATA --out {folder}` makes one")
    if is_corpus(folder) or not folder.is_dir():
        kind = "a prepared corpus" if folder.is_dir() else "a file"
        raise CheckpointError(f"{folder} is {kind}, not a run folder; give the folder of a run first, then the data")
    if not path.is_file():
        raise CheckpointError(f"{folder}: not a run folder, it has no {CONFIG}; give a folder made by `emhrnn train`")
    description = _read_json(path)
    if "format" not in description:
        raise corrupt(path)
    if (version := description["format"]) != FORMAT:
        raise CheckpointError(f"{path}: format {version}, this emhrnn reads format {FORMAT}; install the matching one")
    return {**description, "config": migrated(description.get("config"))}


def corrupt(path: Path, why: object = "") -> CheckpointError:
    """The error for a file of a run that is not as it was written."""
    return CheckpointError(f"{path}: corrupt{f' ({why})' if why else ''}; copy the run again or train again")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(from_json(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}; correct that, and try again") from None
    except (ValueError, TypeError):
        raise corrupt(path) from None


def run_files(run: Run) -> dict[str, bytes]:
    """The files of a run folder by name, without history and scores."""
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        describe(Path(scratch), run)
        save_weights(Path(scratch), run, 0)
        return {path.name: path.read_bytes() for path in Path(scratch).iterdir()}


def run_of_files(files: Mapping[str, bytes], *, trainable: bool = False) -> Run:
    """The run that `run_files` gave, read with the same checks as a run folder."""
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        for name, content in files.items():
            (Path(scratch) / Path(name).name).write_bytes(content)
        return load_run(Path(scratch), trainable=trainable)


def copy_model(folder: Path, destination: Path) -> None:
    """Copy what is needed to use a run, without checkpoints and training data, into an empty folder."""
    for path in (folder / name for name in MODEL):
        if path.is_dir():
            shutil.copytree(path, destination / path.name)
        elif path.is_file():
            shutil.copyfile(path, destination / path.name)


def model_of(folder: Path) -> str:
    """The name of the model of a run."""
    try:
        return str(read_description(folder)["config"]["model"]["name"])
    except (KeyError, TypeError):
        raise corrupt(folder / CONFIG) from None


def save_metrics(folder: Path, metrics: dict[str, Any]) -> None:
    """Write metrics.json, with a checksum of itself: a flipped digit would be shown as a score."""
    write_json(folder / METRICS, {**metrics, "checksum": _checksum(metrics)})


def read_metrics(folder: Path) -> dict[str, Any] | None:
    """metrics.json; None where training is not done.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = folder / METRICS
    if not path.is_file():
        return None
    metrics = _read_json(path)
    if metrics.pop("checksum", None) not in (None, _checksum(metrics)):  # version 0.1 wrote none
        raise corrupt(path)
    return metrics


def _checksum(metrics: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(metrics, sort_keys=True).encode()).hexdigest()


def load_run(folder: Path, *, trainable: bool = False) -> Run:
    """The trained model of a run folder. To be trained on, `trainable`, every model needs torch.

    Raises:
        CheckpointError: the folder is not a run, is damaged, or of another version.
        ExtraError: the model needs torch, or another library, which is not installed.
    """
    description = read_description(folder)
    arrays, note = load_arrays(folder / WEIGHTS)
    if not (folder / VOCABULARY).is_file():
        raise CheckpointError(f"{folder}: {VOCABULARY} is missing; copy the run again or train again")
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    table = next((array for name, array in arrays.items() if name.endswith("embedding.table")), None)
    if table is not None and (table.ndim != 2 or len(table) != len(vocabulary)):
        raise CheckpointError(f"{folder}: {WEIGHTS} and {VOCABULARY} do not belong together; copy the run again")
    ids = _read_json(folder / IDS) if (folder / IDS).is_file() else {}
    try:
        config, size = validated(description["config"]), int(description["embedding_size"])
        run = Run(
            None,
            config,
            vocabulary,
            _class_names(description["classes"]),
            bool(description["multi_label"]),
            TextSettings.from_dict(description["text"]),
            tuple(ids.get("users", ())),
            tuple(ids.get("products", ())),
            size,
        )
        if description.get("lengths") is not None:
            fewest, most = map(int, description["lengths"])
            run.lengths = fewest, most
        facts = facts_of(run, folder)
        row = MODELS[config.model.name]
        if row.read is None or (trainable and row.learns != "fit"):
            run.model = build_model(config.model, facts, _zeros(len(vocabulary), size), vocabulary.words, 0)
    except ExtraError:  # nothing is wrong with the run
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # a ConfigError, too
        raise corrupt(folder / CONFIG, error) from None
    arrays = migrated_tensors(run.config.model.name, arrays, note.get("shares"))
    if run.model is not None:
        load_into(run.model, arrays, folder / WEIGHTS)
        run.model.eval()
    elif row.read is not None and row.shapes is not None:
        check_arrays(folder / WEIGHTS, arrays, row.shapes(config.model, facts, len(vocabulary), size, arrays))
        run.model = row.read(config.model, facts, arrays, vocabulary.words)
    if note.get("run", identity(run)) != identity(run):
        raise CheckpointError(
            f"{folder}: {WEIGHTS} was trained with other words or classes than those in {VOCABULARY} and {CONFIG}; "
            "copy the run again or train again"
        )
    temperature = note.get("temperature", 1.0)  # runs from before there was one
    if not (isinstance(temperature, float) and 0 < temperature < math.inf):
        raise corrupt(folder / WEIGHTS, f"temperature {temperature!r}")
    try:
        run.temperature = temperature
        run.conformal = Conformal.from_dict(note["conformal"]) if "conformal" in note else None
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt(folder / WEIGHTS, error) from None
    return run


def _zeros(*shape: int) -> Any:
    need("torch", "this model")
    import torch

    return torch.zeros(*shape)


def _class_names(names: list[str]) -> tuple[str, ...]:
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError("the class names are missing")
    return tuple(names)
