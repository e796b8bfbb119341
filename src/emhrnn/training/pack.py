"""A run as one file to move, send or keep: a zip of JSON, text and safetensors, without training data and checkpoints.

    manifest.json        "emhrnn.pack/1", the version that wrote it, size and SHA-256 of every other file
    config.json          as in the run folder (run.py), without paths, command and job; of the data, name and checksum
    model.safetensors, vocabulary.txt, ids.json, encoder/, history.jsonl, metrics.json, card.md

Nothing in it is executed: no pickle, no code. When it is read, it is unpacked into a temporary folder that is removed
when the process ends; names that a run does not have, sizes and checksums are checked before anything is loaded.
The same run gives the same bytes.
"""

import atexit
import hashlib
import json
import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from emhrnn.errors import CheckpointError, DataError
from emhrnn.files import atomic_file, write_json, write_text
from emhrnn.training.run import (
    CARD,
    CONFIG,
    IDS,
    MODEL,
    SHIPPED,
    VOCABULARY,
    WEIGHTS,
    copy_model,
    is_run,
    read_description,
    read_metrics,
)
from emhrnn.version import __version__

FORMAT, SUFFIX, MANIFEST = "emhrnn.pack/1", ".emhrnn", "manifest.json"
KEPT = (
    "format", "config", "classes", "multi_label", "text", "embedding_size", "lengths", "parameters", "versions",
    "vectors_sha256",
)  # fmt: skip # of config.json
NAME = re.compile("|".join([*map(re.escape, MODEL), r"encoder/[\w.-]+"]))
RATIO, PIECE = 200, 1 << 20  # most that anything in it may unpack to, over its size; bytes that are read at once
DATE = (1980, 1, 1, 0, 0, 0)  # of every file in the zip

_unpacked: dict[tuple[Path, int, int], Path] = {}


@dataclass(frozen=True)
class PackResult:
    """What was written, and what the file reveals about the training data."""

    path: Path
    bytes: int
    left_out: tuple[str, ...]  # of the run folder
    holds: tuple[str, ...]  # what can be learned about the training data

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "path": str(self.path)}


def pack(folder: Path, out: Path | None = None) -> PackResult:
    """Write a run as one file, RUN.emhrnn by default; a file that is there is replaced.

    Raises:
        CheckpointError: the folder is no run, or has no weights.
        DataError: `out` is a folder, or lies in the run.
    """
    from emhrnn.training.card import card_of, markdown  # not at the top: `located` is a part of every command

    description = read_description(folder)
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no weights yet; finish training it first: --resume")
    out = folder.resolve().with_name(folder.resolve().name + SUFFIX) if out is None else out
    if out.is_dir() or out.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{out} is a folder, or lies in the run; give the name of a file elsewhere")
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        copy = Path(scratch) / out.name.removesuffix(SUFFIX)
        copy.mkdir()
        copy_model(folder, copy)
        write_json(copy / CONFIG, _without_paths(description))
        if (metrics := read_metrics(folder)) is not None:
            write_text(copy / CARD, markdown(card_of(copy, metrics)))
        files = sorted(path for path in copy.rglob("*") if path.is_file())
        names = {path.relative_to(copy).as_posix(): path for path in files}
        sizes = {name: {"bytes": path.stat().st_size, "sha256": _sha256(path)} for name, path in names.items()}
        manifest = {"format": FORMAT, "emhrnn": __version__, "files": sizes}
        with atomic_file(out) as file, zipfile.ZipFile(file, "w") as archive:
            archive.writestr(_entry(MANIFEST), json.dumps(manifest, indent=2) + "\n")
            for name, path in names.items():
                with path.open("rb") as source, archive.open(_entry(name), "w", force_zip64=True) as target:
                    shutil.copyfileobj(source, target, PIECE)
    left_out = tuple(sorted(path.name for path in folder.iterdir() if path.name not in MODEL))
    return PackResult(out, out.stat().st_size, left_out, tuple(_told(description, folder)))


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _without_paths(description: dict[str, Any]) -> dict[str, Any]:
    """The description of a run without the command and places on the machine that trained it."""
    kept = {name: description[name] for name in KEPT if name in description}
    parts = ("sha256", "read_as", "documents", "words", "classes")
    data = {
        name: {"source": Path(part.get("source", "")).name, "corpus": None, **{k: part[k] for k in parts if k in part}}
        for name, part in description.get("data", {}).items()
    }
    return {**kept, "data": data, "packed": __version__}


def _told(description: dict[str, Any], folder: Path) -> list[str]:
    """What a reader of the file can learn about the training data."""
    settings = description["config"]
    words = (folder / VOCABULARY).read_bytes().count(b"\n")
    told = [
        f"its vocabulary: {words:,} words, those that occur at least {settings['data']['min_count']} times or have a "
        "pretrained vector",
        "names and counts of the classes; name, size and checksum of the data files",
    ]
    if settings["model"]["name"] == "evidence":
        told.append("hashes of frequent phrases with counts by class: who guesses a phrase can see whether it is there")
    if (folder / IDS).is_file():
        told.append("names of users and products, which this model reads")
    return told


def located(name: str | Path) -> Path:
    """The folder of a run, which may be given as a file that `pack` wrote; "demo" is the model that the package ships,
    unless a run of that name is here; "hf://user/name" is a run on the Hugging Face Hub.

    Raises:
        CheckpointError: a file that is no packed run, is damaged, or of a newer format.
    """
    path = Path(name)
    if str(name).startswith("hf:/"):
        from emhrnn.training.hub import downloaded

        path = downloaded(str(name))
    if is_packed(path):
        return unpacked(path)
    return SHIPPED if str(name) == "demo" and not is_run(path) else path


def is_packed(path: Path) -> bool:
    """True for a file that `pack` wrote, going by its name or its content."""
    if not path.is_file():
        return False
    if path.suffix == SUFFIX:
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def is_unpacked(folder: Path) -> bool:
    """Whether the folder is temporary: what is written there is lost."""
    return folder in _unpacked.values()


def unpacked(file: Path) -> Path:
    """The packed run as a folder, until this process ends.

    Raises:
        CheckpointError: it is no packed run, is damaged, or of a newer format.
    """
    state = file.stat()
    key = (file.resolve(), state.st_mtime_ns, state.st_size)
    if key not in _unpacked:
        scratch = Path(tempfile.mkdtemp(prefix="emhrnn-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        folder = scratch / file.name.removesuffix(SUFFIX)
        folder.mkdir()
        try:
            _unpack(file, folder)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, ValueError, KeyError, TypeError, EOFError,
                NotImplementedError, RuntimeError, AttributeError) as error:  # fmt: skip
            raise CheckpointError(f"{file}: not a packed run, or damaged ({error}); copy or pack it again") from None
        _unpacked[key] = folder
    return _unpacked[key]


def _unpack(file: Path, folder: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if MANIFEST not in entries or entries[MANIFEST].file_size > PIECE:
            raise CheckpointError(f"{file} has no {MANIFEST}, so it is no packed run; give what `emhrnn pack` wrote")
        manifest = json.loads(archive.read(MANIFEST))
        if manifest["format"] != FORMAT:
            raise CheckpointError(
                f"{file}: format {manifest['format']!r}, written by emhrnn {manifest.get('emhrnn')}; this version "
                f"reads {FORMAT!r}: install that version or a newer one"
            )
        for name, expected in manifest["files"].items():
            entry = entries[name]
            if not NAME.fullmatch(name) or entry.file_size != expected["bytes"]:
                raise ValueError(f"{name} is not what the manifest says")
            if entry.file_size > RATIO * max(entry.compress_size, PIECE):
                raise ValueError(f"{name} unpacks to {entry.file_size:,} bytes")
            (folder / name).parent.mkdir(exist_ok=True)
            with archive.open(entry) as source, (folder / name).open("wb") as target:
                shutil.copyfileobj(source, target, PIECE)
            if _sha256(folder / name) != expected["sha256"]:
                raise ValueError(f"the checksum of {name} differs")


def _sha256(path: Path) -> str:
    source: IO[bytes]
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
