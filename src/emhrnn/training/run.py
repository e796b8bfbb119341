"""A run folder: a trained model with all that is needed to use it, and how it came to be.

config.json          format version, settings, classes, seed, versions, checksums of the data
model.safetensors    weights of the best epoch; in its header, the temperature of probabilities
vocabulary.txt       one word a line, line number = word id
ids.json             names of users and products, where the model reads them
encoder/             configuration and tokenizer of a pretrained encoder, where the model has one
history.jsonl        one JSON object per epoch
card.md              the model card, for people; written when training is done
metrics.json         scores of the best epoch on the validation data; there when training is done
checkpoint/          to go on from; not needed to use the model
corpus/              the data as word ids, where it was not given so
"""

import hashlib
import json
import math
import os
import platform
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from glob import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import TextEncoder
from emhrnn.corpus.manifest import is_corpus
from emhrnn.errors import CheckpointError, DataError, ExtraError, TrainingError
from emhrnn.evaluation.decision import Conformal
from emhrnn.evaluation.predict import Documents, Predictions, predict
from emhrnn.extras import need
from emhrnn.files import locked, write_json, write_text
from emhrnn.models.predictor import probabilities
from emhrnn.models.row import Facts
from emhrnn.models.table import MODELS, build_model
from emhrnn.text import TextLimits, TextSettings, Vocabulary
from emhrnn.training.compatibility import migrated, migrated_tensors
from emhrnn.training.config import Config, validated
from emhrnn.training.weights import check_arrays, load_arrays, save_arrays
from emhrnn.version import __version__

FORMAT = 1
CONFIG, WEIGHTS, VOCABULARY, IDS, ENCODER, HISTORY, METRICS, CARD = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "ids.json",
    "encoder",
    "history.jsonl",
    "metrics.json",
    "card.md",
)
LOCK = "lock"
SHIPPED = Path(__file__).parents[1] / "demo" / "model"  # trained by tools/demo_model.py
BAD_BATCH = "bad-batch.safetensors"
MARK = "unfinished"  # a place that was killed before it had a description is still known as ours by this file
CORPUS, TENSORBOARD, CHECKPOINTS = "corpus", "tensorboard", "checkpoint"  # folders
NAMES = {
    CONFIG, WEIGHTS, VOCABULARY, IDS, ENCODER, HISTORY, METRICS, CARD, LOCK, BAD_BATCH, MARK, CORPUS, TENSORBOARD,
    CHECKPOINTS,
}  # fmt: skip


MODEL = (CONFIG, WEIGHTS, VOCABULARY, IDS, ENCODER, HISTORY, METRICS, CARD)  # to use it; the rest is to go on training


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
    save_arrays(folder / WEIGHTS, run.model.state_dict(), note)


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
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        version = description["format"]
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}; correct that, and try again") from None
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{path}: corrupt; copy the run again or train anew") from None
    if version != FORMAT:
        raise CheckpointError(f"{path}: format {version}, this emhrnn reads format {FORMAT}; install the matching one")
    return {**description, "config": migrated(description.get("config"))}


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
        raise CheckpointError(f"{folder / CONFIG}: corrupt; copy the run again or train anew") from None


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
    try:
        metrics = dict(json.loads(path.read_text(encoding="utf-8")))
        sound = metrics.pop("checksum", None) in (None, _checksum(metrics))  # version 0.1 wrote none
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}; correct that, and try again") from None
    except (ValueError, TypeError):
        sound = False
    if not sound:
        raise CheckpointError(f"{path}: corrupt; copy the run again or train anew")
    return metrics


def _checksum(metrics: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(metrics, sort_keys=True).encode()).hexdigest()


def load_run(folder: Path, *, trainable: bool = False) -> Run:
    """The trained model of a run folder. To be trained on, `trainable`, every model needs torch.

    Raises:
        CheckpointError: the folder is no run, is damaged, or of another version.
        ExtraError: the model needs torch, or another library, which is not installed.
    """
    description = read_description(folder)
    arrays, note = load_arrays(folder / WEIGHTS)
    if not (folder / VOCABULARY).is_file():
        raise CheckpointError(f"{folder}: {VOCABULARY} is missing; copy the run again or train anew")
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    table = next((array for name, array in arrays.items() if name.endswith("embedding.table")), None)
    if table is not None and (table.ndim != 2 or len(table) != len(vocabulary)):
        raise CheckpointError(f"{folder}: {WEIGHTS} and {VOCABULARY} do not belong together; copy the run again")
    try:
        ids = json.loads((folder / IDS).read_text(encoding="utf-8")) if (folder / IDS).is_file() else {}
        config, size = validated(description["config"]), int(description["embedding_size"])
        run = Run(
            None,
            config,
            vocabulary,
            _class_names(description["classes"]),
            bool(description["multi_label"]),
            text_settings_of(description["text"]),
            tuple(ids.get("users", ())),
            tuple(ids.get("products", ())),
            size,
            lengths=_lengths(description.get("lengths")),
        )
        facts = facts_of(run, folder)
        row = MODELS[config.model.name]
        if row.read is None or (trainable and row.learns != "fit"):
            run.model = build_model(config.model, facts, _zeros(len(vocabulary), size), vocabulary.words, 0)
    except ExtraError:  # nothing is wrong with the run
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # a ConfigError, too
        raise CheckpointError(f"{folder / CONFIG}: corrupt ({error}); copy the run again or train anew") from None
    arrays = migrated_tensors(run.config.model.name, arrays, note.get("shares"))
    if run.model is not None:
        from emhrnn.training.checkpoint import load_into  # which takes torch

        load_into(run.model, arrays, folder / WEIGHTS)
        run.model.eval()
    elif row.read is not None and row.shapes is not None:
        check_arrays(folder / WEIGHTS, arrays, row.shapes(config.model, facts, len(vocabulary), size, arrays))
        run.model = row.read(config.model, facts, arrays, vocabulary.words)
    if note.get("run", identity(run)) != identity(run):
        raise CheckpointError(
            f"{folder}: {WEIGHTS} was trained with other words or classes than those in {VOCABULARY} and {CONFIG}; "
            "copy the run again or train anew"
        )
    run.temperature, run.conformal = _temperature(folder, note), _conformal(folder, note)
    return run


def _zeros(*shape: int) -> Any:
    need("torch", "this model")
    import torch

    return torch.zeros(*shape)


def _temperature(folder: Path, note: dict[str, Any]) -> float:
    value = note.get("temperature", 1.0)  # runs from before there was one
    if not isinstance(value, float) or not math.isfinite(value) or value <= 0:
        raise CheckpointError(f"{folder / WEIGHTS}: corrupt (temperature {value!r}); copy the run again or train anew")
    return value


def _conformal(folder: Path, note: dict[str, Any]) -> Conformal | None:
    try:
        return Conformal.from_dict(note["conformal"]) if "conformal" in note else None
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / WEIGHTS}: corrupt ({error}); copy the run again or train anew") from None


def text_settings_of(values: dict[str, Any]) -> TextSettings:
    """How a run reads text, from its description."""
    return TextSettings(**{**values, "limits": TextLimits(**values["limits"])})


def _lengths(value: list[int] | None) -> tuple[int, int] | None:
    if value is None:
        return None
    fewest, most = map(int, value)
    return fewest, most


def _class_names(names: list[str]) -> tuple[str, ...]:
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError("the class names are missing")
    return tuple(names)


@contextmanager
def run_folder(out: Path, *, overwrite: bool = False) -> Iterator[None]:
    """`out` as an empty folder to write a run to.

    When the block fails before there are weights or a checkpoint, `out` is put back as it was before, so that the same
    command can be given again; a run that is being replaced goes only when the new one has them. What remains of a run
    that was killed before is no run, and does not block the place.

    Raises:
        DataError: `out` is taken, or cannot be written.
    """
    if (out / LOCK).exists():
        with locked_run(out):  # not while another process trains there
            pass
    _restore_replaced(out)
    there = out.is_dir() and any(out.iterdir())
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file, the run is to be a folder; give another name")
    if there and not _is_remnant(out):
        if not overwrite and is_run(out) and not (out / METRICS).exists():
            raise DataError(
                f"{out} holds an unfinished run; resume it with --resume, or replace it with --overwrite (in Python: "
                "resume=True or overwrite=True)"
            )
        if not overwrite:
            raise DataError(
                f"{out} exists and is not empty; give another folder, or replace the run with --overwrite (in Python: "
                "overwrite=True)"
            )
        if not is_run(out):
            raise DataError(f"{out} is not a run folder, so it is not overwritten; give another folder")
    empty = out.is_dir() and not there
    old = out.with_name(f".{out.name}.{secrets.token_hex(4)}.old") if there else None
    try:
        if old is not None:
            out.rename(old)
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / MARK, "emhrnn train is at work here, or was stopped.\n")
    except OSError as error:
        if not empty and (old is None or old.exists()):
            with suppress(OSError):
                _put_back(out, old, empty=False)
        raise DataError(f"cannot write to {out}: {error.strerror}; give another folder") from None
    try:
        with locked_run(out):
            yield
        finish(out)
    except BaseException as error:
        if not is_begun(out) and not (isinstance(error, TrainingError) and (out / BAD_BATCH).exists()):
            _put_back(out, old, empty=empty)
            old = None
        raise
    finally:
        if old is not None:
            shutil.rmtree(old)


def begun_by_this_job(out: Path) -> bool:
    """True when torchrun has started its processes again, and they had begun the run at `out` before."""
    return restarted() and is_run(out) and read_description(out).get("job") == name_of_job()


def launched() -> bool:
    """True in a process that torchrun started."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def name_of_job() -> str:
    """What tells the jobs of torchrun apart, and stays the same when it restarts its processes; empty where there is
    none. By default the run id is "none": then it is the process that started this one."""
    if not launched():
        return ""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return name if name != "none" else f"{os.uname().nodename}-{os.getppid()}"


def restarted() -> bool:
    """True in a process that torchrun started again after a failure."""
    return launched() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


def checkpoint_files(out: Path) -> list[Path]:
    """The checkpoints of a run, newest first."""
    return sorted((out / CHECKPOINTS).glob("step-*.safetensors"), reverse=True)


def is_begun(out: Path) -> bool:
    """True when there is something to use or to go on from."""
    return (out / WEIGHTS).exists() or bool(checkpoint_files(out))


@contextmanager
def locked_run(folder: Path) -> Iterator[None]:
    """One process trains into a run folder, or calibrates it, at a time.

    Raises:
        DataError: another process has it, or the folder cannot be written to.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(
                locked(folder / LOCK, f"{{holder}} is training into {folder}; wait for it, or give another folder")
            )
        except OSError as error:
            raise DataError(
                f"cannot write to {folder}: {error.strerror}; put that right, or give another folder"
            ) from None
        yield


def finish(out: Path) -> None:
    """Training is done: the folder is no longer marked as unfinished."""
    (out / MARK).unlink(missing_ok=True)


def remove_partial(out: Path) -> None:
    """What a kill left of files that were being written."""
    for folder in (out, out / CHECKPOINTS):
        for path in folder.glob(".*.partial"):
            path.unlink()


def _is_remnant(out: Path) -> bool:
    """Begun by us, and killed before it had anything of use."""
    names = {path.name for path in out.iterdir() if not path.name.endswith(".partial")}
    return (is_run(out) or MARK in names) and names <= NAMES and not is_begun(out)


def _restore_replaced(out: Path) -> None:
    """After a kill: the run that was being replaced takes its place again, unless the new one has begun."""
    with suppress(OSError):
        for old in sorted(out.parent.glob(f".{escape(out.name)}.????????.old")):
            if out.is_dir() and _is_remnant(out):
                shutil.rmtree(out)
            if out.exists():
                shutil.rmtree(old)
            else:
                old.rename(out)


def _put_back(out: Path, old: Path | None, *, empty: bool) -> None:
    shutil.rmtree(out)
    if old is not None:
        old.rename(out)
    elif empty:
        out.mkdir()
