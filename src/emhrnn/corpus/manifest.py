"""The folder of a prepared corpus: what lies in it, and whether it is whole.

corpus.json      version, classes, report, source, how the text was read, size and checksum of the other files
data.arrow       the documents: words list<list<int32>>, label, row, id, user, product, weight
vocabulary.txt   one word a line, in the order of the ids
users.json, products.json   the names behind the ids, where the source has any
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emhrnn.corpus.building import Contents
from emhrnn.corpus.report import Report
from emhrnn.errors import CheckpointError
from emhrnn.files import sha256, write_json
from emhrnn.text import TextLimits, TextSettings, Vocabulary

FORMAT = "emhrnn corpus"
VERSION = 1
MANIFEST, DATA, VOCABULARY = "corpus.json", "data.arrow", "vocabulary.txt"
NAME_FILES = {"users": "users.json", "products": "products.json"}


def is_corpus(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def write_manifest(folder: Path, contents: Contents, source: dict[str, Any]) -> None:
    """Everything beside the data, which must be there already."""
    contents.vocabulary.save(folder / VOCABULARY)
    for kind, name in NAME_FILES.items():
        if names := getattr(contents, kind):
            write_json(folder / name, list(names))
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())}
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            "version": VERSION,
            "classes": list(contents.classes),
            "text": asdict(contents.text),
            "source": source,
            "report": contents.report.to_dict(),
            "files": files,
        },
    )


def read_manifest(folder: Path, *, verify: bool) -> Contents:
    """The contents of a prepared corpus; sizes are always checked, checksums with `verify`.

    Raises:
        CheckpointError: the folder is no corpus, is of another version, or a file is missing or was changed.
    """
    values = _load(folder)
    try:
        _check_files(folder, values["files"], verify)
        text = dict(values["text"])
        return Contents(
            vocabulary=Vocabulary.load(folder / VOCABULARY),
            classes=tuple(values["classes"]),
            users=_names(folder, values, "users"),
            products=_names(folder, values, "products"),
            text=TextSettings(**{**text, "limits": TextLimits(**text["limits"])}),
            report=Report.from_dict(values["report"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(folder / MANIFEST, f"{type(error).__name__}: {error}") from None


def _load(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{folder} is not a prepared corpus: it has no {MANIFEST}; prepare it first") from None
    except (ValueError, OSError) as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise CheckpointError(f"{path} does not describe a prepared corpus; prepare it again")
    if values.get("version") != VERSION:
        raise CheckpointError(
            f"{folder} has version {values.get('version')} of the corpus format, this program reads version {VERSION}; "
            "prepare it again"
        )
    if not isinstance(values.get("files"), dict) or DATA not in values["files"]:
        raise _damaged(path, "the list of files is missing")
    return values


def _check_files(folder: Path, files: dict[str, Any], verify: bool) -> None:
    for name, expected in files.items():
        path = folder / Path(name).name
        if not path.is_file():
            raise CheckpointError(f"{path} is missing; prepare the corpus again")
        if path.stat().st_size != expected["bytes"]:
            raise _damaged(path, f"{path.stat().st_size} bytes instead of {expected['bytes']}")
        if verify and sha256(path) != expected["sha256"]:
            raise _damaged(path, "its checksum differs")


def _names(folder: Path, values: dict[str, Any], kind: str) -> tuple[str, ...]:
    if NAME_FILES[kind] not in values["files"]:
        return ()
    return tuple(json.loads((folder / NAME_FILES[kind]).read_text(encoding="utf-8")))


def _damaged(path: Path, why: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged ({' '.join(why.split())}); prepare the corpus again")
