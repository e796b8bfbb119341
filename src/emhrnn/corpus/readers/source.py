"""A source: one or several files, or a folder per class, read as one stream of records."""

from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path

from emhrnn.corpus.columns import Columns
from emhrnn.corpus.readers.formats import FOLDERS, READERS, check_format, format_of
from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import Meter
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError
from emhrnn.files import refuse_pipe

Paths = str | Path | Sequence[str | Path]


class Source:
    """Files to read, one after the other, in constant memory.

    With `split`, only rows whose split column has that value are yielded. After (and while) reading, `taken` says
    which columns were used, `splits` how many rows each split has. With `lenient`, a row that cannot be used is a
    record with a fault, not an error.

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
        self.lenient = lenient
        self.taken: dict[str, str] = {}
        self.splits: Counter[str] = Counter()
        self.meter = Meter(sum(_size(path, name) for path, name in zip(self.paths, self.formats, strict=True)))

    def __iter__(self) -> Generator[Record, None, None]:
        self.splits.clear()
        for path, name in zip(self.paths, self.formats, strict=True):
            for record in READERS[name](Reading(path, self.columns, self.meter, self.taken, self.lenient)):
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
        name = check_format(given) if given else format_of(path)
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
