"""Which format a file is in: by its name and its first bytes, unless the user says."""

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from emhrnn.corpus.columns import USUAL_NAMES
from emhrnn.corpus.readers.class_folders import class_files, read_class_folders
from emhrnn.corpus.readers.datasets import dataset_files, is_dataset, read_dataset
from emhrnn.corpus.readers.delimited import read_csv, read_tsv
from emhrnn.corpus.readers.jsonl import read_jsonl
from emhrnn.corpus.readers.parquet import read_parquet
from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import head
from emhrnn.corpus.readers.tang import SENTENCE_END, read_tang
from emhrnn.corpus.readers.zhang import read_zhang
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError

READERS: dict[str, Callable[[Reading], Iterator[Record]]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "folder": read_class_folders,
    "tang": read_tang,
    "zhang": read_zhang,
    "datasets": read_dataset,
}
FOLDERS = {"folder": class_files, "datasets": dataset_files}  # formats that are folders, and which files are read
COMPRESSION = {".gz", ".xz", ".zst", ".zstd", ".bz2"}
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ss": "tang",
}
_USUAL = {name for names in USUAL_NAMES.values() for name in names}


def check_format(name: str) -> str:
    if name not in READERS:
        raise DataError(f"unknown format {name!r}; give one of {', '.join(READERS)}")
    return name


def format_of(path: Path) -> str:
    """The format's name, a key of READERS.

    Raises:
        DataError: the path is missing, empty, or in no format that is known.
    """
    if path.is_dir():
        return _format_of_folder(path)
    start = head(path)
    if not start.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise DataError(f"{path} is empty; give a file with documents")
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith((b"PK\x03\x04", b"ARROW1", b"\x89HDF")):
        raise DataError(f"{path} is an archive or table of another kind; give {', '.join(READERS)}")
    by_name = SUFFIXES.get(suffix_of(path))
    text = start.decode("utf-8-sig", "replace").lstrip()
    if not text.replace("\0", " ").strip():  # blanks that are more than one byte
        raise DataError(f"{path} is empty; give a file with documents")
    if by_name == "parquet":
        raise DataError(f"{path} is not a parquet file: it does not start with PAR1; copy or download it again")
    if by_name == "jsonl" and text.startswith("["):
        raise DataError(f"{path} is one JSON array; give JSON lines, one object a line")
    if by_name == "csv":
        return "zhang" if _looks_like_zhang(text) else "csv"
    found = by_name or _by_content(text)
    if found is None:
        raise DataError(f"the format of {path} is not clear from name and content; give one of {', '.join(READERS)}")
    return found


def suffix_of(path: Path) -> str:
    """The one that tells the format, in lower case: of a.CSV.gz it is .csv."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSION:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _format_of_folder(path: Path) -> str:
    if (path / "corpus.json").exists():
        raise DataError(f"{path} is a prepared corpus already; open it instead of preparing it again")
    if is_dataset(path):
        return "datasets"
    if any(child.is_dir() and not child.name.startswith(".") for child in path.iterdir()):
        return "folder"
    raise DataError(f"{path} has no folders; give a file, or a folder with one folder of .txt files per class")


def _looks_like_zhang(text: str) -> bool:
    """A class number, then text: no header, because no column has a number for a name and its text is no usual name."""
    first = next(csv.reader(text.splitlines()[:1] or [""]), [])
    if len(first) < 2 or not re.fullmatch(r"-?\d{1,4}", first[0].strip()):
        return False
    others = [field.strip().lower() for field in first[1:]]
    return not any(field in _USUAL for field in others) and any(not field.isdecimal() for field in others)


def _by_content(text: str) -> str | None:
    if text.startswith("{"):
        return "jsonl"
    first = text.splitlines()[0]
    if first.count("\t\t") >= 3 or SENTENCE_END in first:
        return "tang"
    if _looks_like_zhang(text):
        return "zhang"
    for delimiter, name in (("\t", "tsv"), (",", "csv")):
        names = {field.strip(' "').lower() for field in first.split(delimiter)}
        if len(names) > 1 and names & _USUAL:
            return name
    return None
