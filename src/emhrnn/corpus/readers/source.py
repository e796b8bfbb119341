"""A source: the files that a name stands for, the format of each, and all of them as one stream of records.

The format is recognised by the name and the first bytes, unless the user gives it.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path

from emhrnn.corpus.readers.arrow_formats import dataset_files, is_dataset, read_dataset, read_parquet
from emhrnn.corpus.readers.input import ByteMeter, InputFile, check_encoding, decode, head
from emhrnn.corpus.readers.text_formats import (
    SENTENCE_END,
    class_files,
    read_class_folders,
    read_csv,
    read_jsonl,
    read_tang,
    read_tsv,
    read_xlsx,
    read_zhang,
)
from emhrnn.corpus.record import KNOWN_NAMES, Columns, Record
from emhrnn.errors import DataError
from emhrnn.files import refuse_pipe

READERS: dict[str, Callable[[InputFile], Iterator[Record]]] = {
    "csv": read_csv,
    "tsv": read_tsv,
    "jsonl": read_jsonl,
    "xlsx": read_xlsx,
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
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ss": "tang",
}


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
    if start.startswith(b"PK\x03\x04") and suffix_of(path) in (".xlsx", ".xlsm"):
        return "xlsx"
    if start.startswith((b"PK\x03\x04", b"ARROW1", b"\x89HDF")):
        raise DataError(f"{path} is an archive or table of another kind; give {', '.join(READERS)}")
    by_name = SUFFIXES.get(suffix_of(path))
    text = decode(start).lstrip()
    if not text.replace("\0", " ").strip():  # blanks that are more than one byte
        raise DataError(f"{path} is empty; give a file with documents")
    if by_name in ("parquet", "xlsx"):
        raise DataError(f"{path} is not a {by_name} file: its first bytes are others; copy or download it again")
    if by_name == "csv":
        return "zhang" if _looks_like_zhang(text) else "csv"
    found = by_name or _by_content(text)
    if found is None:
        raise DataError(f"the format of {path} is not clear from name and content; give --format: {', '.join(READERS)}")
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
    """A class number, then text: no header, because a column is not named by a number, nor is its text a usual name."""
    first = next(csv.reader(text.splitlines()[:1] or [""]), [])
    if len(first) < 2 or not re.fullmatch(r"-?\d{1,4}", first[0].strip()):
        return False
    others = [field.strip().lower() for field in first[1:]]
    return not any(field in KNOWN_NAMES for field in others) and any(not field.isdecimal() for field in others)


def _by_content(text: str) -> str | None:
    if text.startswith(("{", "[")):
        return "jsonl"
    first = text.splitlines()[0]
    if first.count("\t\t") >= 3 or SENTENCE_END in first:
        return "tang"
    if _looks_like_zhang(text):
        return "zhang"
    for delimiter, name in (("\t", "tsv"), (",", "csv")):
        names = {field.strip(' "').lower() for field in first.split(delimiter)}
        if len(names) > 1 and names & KNOWN_NAMES:
            return name
    return None


def data_files(name: Path) -> list[Path]:
    """The files in the order of their names. A pattern finds what it would in a shell: no name that begins with a dot,
    unless it says so; `**` is any folders. A folder per class, or a saved data set, stays one path, as `Source` reads
    it.

    Raises:
        DataError: nothing is there.
    """
    if name.is_dir() and not is_dataset(name):  # at any depth; names with a dot or an underscore are others' notes
        inside = (path for path in name.rglob("*") if not any(p[0] in "._" for p in path.relative_to(name).parts))
        return sorted(path for path in inside if path.is_file() and suffix_of(path) in SUFFIXES) or [name]
    if name.exists():
        return [name]
    if str(name) == "-":
        raise DataError("the standard input can be read only once, and data is read more often; give a file")
    if not any(letter in str(name) for letter in "*?["):
        raise DataError(f"{name} does not exist; check the name")
    found = sorted(path for path in map(Path, glob(str(name), recursive=True)) if path.is_file())
    if not found:
        raise DataError(f"no file matches {name}; check the pattern")
    return found


Paths = str | Path | Sequence[str | Path]


class Source:
    """Files to read, one after the other, in constant memory.

    With `split`, only rows whose split column has that value are yielded. After (and while) reading, `taken` says
    which columns were used, `present` which there were, `encodings` in which encodings text was, `splits` how many rows
    each split has. Without `encoding`, that of each text file is detected. With `lenient`, a row that cannot be used is
    a record with a fault, not an error.

    Raises:
        DataError: a file is missing, empty, or of no known format (here); or has no usable columns (when read).
    """

    def __init__(
        self,
        paths: Paths,
        *,
        format: str | None = None,
        columns: Columns | None = None,
        split: str | None = None,
        encoding: str | None = None,
        lenient: bool = False,
    ) -> None:
        self.paths = [Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)]
        if not self.paths:
            raise DataError("no files given; give at least one")
        for path in self.paths:
            check_readable(path)
        self.columns = columns or Columns()
        self.formats = [self._format_of(path, format) for path in self.paths]
        self.split = split
        self.splits: Counter[str] = Counter()
        self.meter = ByteMeter(sum(_size(path, name) for path, name in zip(self.paths, self.formats, strict=True)))
        # What all files share, and fill in while they are read: each file is this with its own path.
        shared = InputFile(Path(), self.columns, self.meter, lenient=lenient, encoding=check_encoding(encoding))
        self.taken, self.encodings, self.present = shared.taken, shared.encodings, shared.present
        self._shared = shared

    def __iter__(self) -> Generator[Record, None, None]:
        self.splits.clear()
        for path, name in zip(self.paths, self.formats, strict=True):
            file = replace(self._shared, path=path)
            for record in READERS[name](file):
                if self.split is not None and "split" not in self.taken:
                    raise DataError(
                        f"the split {self.split!r} is asked for and {path} has no split column; name one "
                        "'split' or 'fold', or leave --split out"
                    )
                if self.columns.weight is not None and record.weight is None:
                    raise DataError(
                        f"{path} is read as {name}, which has no weight column {self.columns.weight!r}; "
                        "give csv, tsv, jsonl or parquet, or leave the weights out"
                    )
                if record.split is not None:
                    self.splits[record.split] += 1
                if self.split is None or record.split == self.split:
                    yield record
        if self.split is not None and self.split not in self.splits:
            seen = ", ".join(map(repr, sorted(self.splits))) or "no splits"
            raise DataError(f"no rows of the split {self.split!r} in {self}; it has {seen}")

    def _format_of(self, path: Path, given: str | None) -> str:
        if given and given not in READERS:
            raise DataError(f"unknown format {given!r}; give one of {', '.join(READERS)}")
        name = given or format_of(path)
        if (name in FOLDERS) != path.is_dir():
            raise DataError(f"{path} cannot be read as {name}; give a file, or a folder with one folder per class")
        if name == "zhang" and not given and (self.columns.text or self.columns.label or self.columns.weight):
            return "csv"  # who names columns has a header
        return name

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths))


def check_readable(path: Path) -> None:
    """Raise a DataError for data that is not there, or is a pipe."""
    if not path.exists():
        raise DataError(f"{path} does not exist; check the name")
    refuse_pipe(path)


def _size(path: Path, format_name: str) -> int:
    if format_name in FOLDERS:
        return sum(file.stat().st_size for file in FOLDERS[format_name](path) if file.is_file())
    return path.stat().st_size
