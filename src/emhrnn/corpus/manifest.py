"""The folder of a prepared corpus: what lies in it, and whether it is whole.

corpus.json      version, classes, report, source, how the text was read, size and checksum of the other files
data.arrow       the documents: words list<list<int32>>, label, row, fingerprint of the text, id, user, product, weight
vocabulary.txt   one word a line, in the order of the ids
users.json, products.json   the names behind the ids, where the source has any
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emhrnn.errors import CheckpointError
from emhrnn.files import sha256, write_json
from emhrnn.text import TextLimits, TextSettings, Vocabulary


@dataclass(frozen=True, kw_only=True)
class Report:
    """Counts of a prepared corpus.

    `skipped` counts rows by reason, `skipped_first` shows the first place of each; `repaired` counts documents whose
    text was repaired; `capped` counts documents that a limit shortened; `columns` says which column served as what;
    `encodings` are those of the text files.
    """

    documents: int
    sentences: int
    words: int
    longest_document: int
    longest_sentence: int
    vocabulary: int
    unknown_words: int
    classes: dict[str, int]
    multi_label: bool = False
    users: int = 0
    products: int = 0
    capped: int = 0
    limits: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_first: dict[str, str] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    encodings: list[str] = field(default_factory=list)

    @property
    def unknown_rate(self) -> float:
        """Share of the words that the vocabulary does not hold."""
        return self.unknown_words / self.words if self.words else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "unknown_rate": self.unknown_rate}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Report":
        return cls(**{name: value for name, value in values.items() if name != "unknown_rate"})

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for the terminal."""
        lines = [
            ("documents", f"{self.documents:,}"),
            ("sentences", f"{self.sentences:,} ({self.sentences / max(1, self.documents):.1f} per document)"),
            ("words", f"{self.words:,} ({self.words / max(1, self.documents):.1f} per document)"),
            ("longest", f"{self.longest_document:,} words; longest sentence {self.longest_sentence:,}"),
            ("vocabulary", f"{self.vocabulary:,} words; {self.unknown_rate:.2%} of the text is unknown"),
        ]
        if self.classes:
            kind = "classes, several per document" if self.multi_label else "classes"
            lines.append((kind, ", ".join(f"{name} ({count:,})" for name, count in self.classes.items())))
        if self.users or self.products:
            lines.append(("given by", f"{self.users:,} users on {self.products:,} products"))
        if self.columns:
            lines.append(("columns", ", ".join(f"{role} = {name}" for role, name in self.columns.items())))
        if self.encodings:
            lines.append(("encoding", ", ".join(self.encodings)))
        if self.limits:
            limits = ", ".join(f"{name} {value:,}" for name, value in self.limits.items())
            lines.append(("shortened", f"{self.capped:,} documents by the limits: {limits}"))
        lines += [
            ("skipped", f"{count:,} rows: {reason} (first: {self.skipped_first.get(reason, 'unknown')})")
            for reason, count in self.skipped.items()
        ]
        return lines + [("repaired", f"{count:,} documents: {what} replaced") for what, count in self.repaired.items()]

    def __str__(self) -> str:
        return in_columns(self.lines())


def in_columns(lines: Sequence[tuple[str, str]]) -> str:
    """Names and values, a pair a line, aligned."""
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


FORMAT = "emhrnn corpus"
VERSION = 1
MANIFEST, DATA, VOCABULARY = "corpus.json", "data.arrow", "vocabulary.txt"
NAME_FILES = {"users": "users.json", "products": "products.json"}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a corpus knows besides its documents."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    users: tuple[str, ...]
    products: tuple[str, ...]
    text: TextSettings
    report: Report


def is_corpus(path: Path) -> bool:
    """Whether the path is a folder that `prepare` wrote."""
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
        CheckpointError: the folder is not a corpus, is of another version, or a file is missing or was changed.
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
        if len(name.encode()) > 255 or not path.is_file():  # longer than a name can be: the system would refuse it
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
