"""A run as one file to move, send or keep: a zip of JSON, text and safetensors, without training data and checkpoints.

    manifest.json        "emhrnn.pack/1", the version that wrote it, size and SHA-256 of every other file
    config.json          as in the run folder (run.py), without paths, command and job; of the data, name and checksum
    model.safetensors, vocabulary.txt, ids.json, encoder/, history.jsonl, metrics.json, card.md

Nothing in it is executed: no pickle, no code. When it is read, it is unpacked into a temporary folder that is removed
when the process ends; names that a run does not have, sizes and checksums are checked before anything is loaded.
The same run gives the same bytes.

`hf://user/name` names a repository of the Hugging Face Hub with such a file wherever a run is given; `hf://user/name@v1`
one of its versions.
"""

import atexit
import json
import re
import shutil
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emhrnn.errors import CheckpointError, DataError
from emhrnn.extras import need
from emhrnn.files import atomic_file, from_json, named, sha256, write_json, write_text
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
FILE = "model.emhrnn"  # in a repository of the Hugging Face Hub; its README.md is the model card
REPOSITORY = re.compile(r"hf:/+([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")  # a Path has one slash of the two
HEADER = """---
library_name: emhrnn
pipeline_tag: text-classification
tags: [emhrnn, text-classification, explainability]
---

To use it: `pip install 'emhrnn[hub]'`, then `emhrnn.load("hf://{name}")` in Python, or in a terminal
`emhrnn explain hf://{name} 'text'`.

"""

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
        CheckpointError: the folder is not a run, or has no weights.
        DataError: `out` is a folder, or lies in the run.
    """
    from emhrnn.training.card import card_of, markdown  # not at the top: `located` is a part of every command

    description = read_description(folder)
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no weights yet; finish training it first: --resume")
    out = beside(folder, SUFFIX) if out is None else out
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
        sizes = {name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for name, path in names.items()}
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
    with named(folder / VOCABULARY):
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
        CheckpointError: a file that is not a packed run, is damaged, or of a newer format.
    """
    path = Path(name)
    if str(name).startswith("hf:/"):
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
        CheckpointError: it is not a packed run, is damaged, or of a newer format.
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
                NotImplementedError, RuntimeError, AttributeError, zlib.error) as error:  # fmt: skip
            raise CheckpointError(f"{file}: not a packed run, or damaged ({error}); copy or pack it again") from None
        _unpacked[key] = folder
    return _unpacked[key]


def beside(folder: Path, ending: str) -> Path:
    """RUN + `ending`, for what people add to a run. Of a packed run it is beside the file, and of the model in the
    package in the current folder: what is written to a temporary folder or to the package would be lost."""
    folder = folder.resolve()
    if folder == SHIPPED.resolve():
        return Path.cwd() / f"demo{ending}"
    for (file, *_), place in _unpacked.items():
        if place.resolve() == folder:
            return file.with_name(file.name.removesuffix(SUFFIX) + ending)
    return folder.with_name(folder.name + ending)


def _unpack(file: Path, folder: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if MANIFEST not in entries or entries[MANIFEST].file_size > PIECE:
            raise CheckpointError(f"{file} has no {MANIFEST}, so it is not a packed run; give what `emhrnn pack` wrote")
        manifest = from_json(archive.read(MANIFEST))
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
            if sha256(folder / name) != expected["sha256"]:
                raise ValueError(f"the checksum of {name} differs")


def pushed(folder: Path, name: str, *, private: bool, token: str | None) -> str:
    """Upload a run to the repository `user/name`, which is made if it is not there. The address of what was uploaded.

    Raises:
        DataError: the name is none, or the Hub refused the upload.
        CheckpointError: the folder is not a finished run.
    """
    api = _api(token)
    if not REPOSITORY.fullmatch(f"hf://{name}") or "@" in name:
        raise DataError(f"{name!r} is not a name of a repository; give user/name, as in push_to_hub('ada/reviews')")
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        upload = Path(scratch)
        pack(folder, upload / FILE)
        card = folder / CARD
        text = card.read_text(encoding="utf-8") if card.is_file() else f"# {name}\n"
        (upload / "README.md").write_text(HEADER.format(name=name) + text, encoding="utf-8")
        try:
            api.create_repo(name, private=private, exist_ok=True)
            done = api.upload_folder(repo_id=name, folder_path=upload, commit_message="Upload a run of emhrnn")
        except Exception as error:  # the library has many, of several libraries below it
            raise DataError(f"the Hub refused {name}: {_said(error)}; is the token right, and may it write?") from error
    return str(done.commit_url)


def downloaded(name: str) -> Path:
    """The file of a run on the Hub, from the cache of the library if it is there.

    Raises:
        CheckpointError: there is no such repository, it has no run, or the Hub cannot be reached.
    """
    match = REPOSITORY.fullmatch(name)
    if match is None:
        raise CheckpointError(
            f"{name}: not the name of a run on the Hub; give hf://user/name or hf://user/name@version"
        )
    repository, version = match.groups()
    api = _api(None)
    try:
        return Path(api.hf_hub_download(repository, FILE, revision=version))
    except Exception as error:
        raise CheckpointError(
            f"hf://{repository}: cannot get {FILE} from the Hub: {_said(error)}; is the name right, and was it "
            "uploaded by push_to_hub? Private ones need HF_TOKEN"
        ) from error


def _api(token: str | None) -> Any:
    need("huggingface_hub", "the Hugging Face Hub", "hub")
    from huggingface_hub import HfApi

    return HfApi(token=token)


def _said(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
