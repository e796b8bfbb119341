"""The file that scoring writes, and how it can stop at any moment and go on.

Rows become bytes, so that parts written by several processes make one file when put together: .jsonl and .csv are their
lines; .parquet is written at the end, from parts that are Arrow streams.

OUT.unfinished/ holds what is done, and the same command continues from there:

OUT.unfinished/settings.json     what is being done; another run, other data or other options cannot resume it
OUT.unfinished/rows              the output so far
OUT.unfinished/errors            the errors file so far; mistakes: the file of wrong labels
OUT.unfinished/journal.jsonl     one line per chunk: how many bytes of each are its own, their checksums and its own

A chunk counts once its line is in the journal. What a kill left after the last whole line is cut off; what the journal
lists is read again and compared, so that a damaged part is scored again instead of being believed.
"""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from emhrnn.errors import DataError
from emhrnn.extras import parquet
from emhrnn.extras import pyarrow as pa
from emhrnn.files import atomic_file, encoded, from_json, locked, sync_name, write_json

Row = dict[str, Any]
SUFFIXES = (".parquet", ".csv", ".jsonl")
MISTAKES = (".csv", ".jsonl")  # suffixes of the file of mistakes
PARTS = ("rows", "errors", "mistakes")  # what a chunk gives, each a file


@dataclass(frozen=True)
class RowCounts:
    """In rows of the data, unless it says otherwise."""

    rows: int = 0
    words: int = 0  # of all rows
    unscored: int = 0
    repaired: int = 0  # that were scored, but whose text was repaired
    abstained: int = 0  # that were scored and have no label, because no class is sure enough
    labels: int = 0  # in all sets of labels
    judged: int = 0  # that have a label of their own and a predicted one
    wrong: int = 0  # of these, where the two differ

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class ScoredPart:
    """What a chunk gives: bytes of each of PARTS, and counts."""

    files: dict[str, bytes]
    counts: RowCounts


def check_suffix(out: Path, suffixes: Sequence[str] = SUFFIXES) -> str:
    """The suffix of the output in lower case; a DataError for one that is not a format."""
    suffix = out.suffix.lower()
    if suffix not in suffixes:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(suffixes)}")
    return suffix


def to_bytes(suffix: str, columns: Mapping[str, bool], rows: Iterable[Row], *, first: bool) -> bytes:
    """Part of a file; the `first` part of a csv has the header. `columns` says which columns are numbers."""
    if suffix == ".jsonl":
        return encoded("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    flat = ({name: _flat(row[name]) for name in columns} for row in rows)
    if suffix == ".csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        if first:
            writer.writerow(columns)
        writer.writerows(row.values() for row in flat)
        return encoded(text.getvalue())
    sink = pa.BufferOutputStream()
    schema = pa.schema([(name, pa.float32() if number else pa.string()) for name, number in columns.items()])
    texts = [name for name, number in columns.items() if not number]  # what is kept may be of any type
    rows = [row | {name: None if row[name] is None else str(row[name]) for name in texts} for row in flat]
    table = pa.Table.from_pylist(rows, schema)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def write_parquet(out: BinaryIO, parts: Iterable[bytes]) -> None:
    """The parts that `to_bytes` made for .parquet, each a row group."""
    writer = None
    for part in parts:
        table = pa.ipc.open_stream(part).read_all()
        writer = writer or parquet.ParquetWriter(out, table.schema, write_page_checksum=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _flat(value: Any) -> Any:
    """A cell of a table: lists and objects are JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


@dataclass
class Unfinished:
    """An output in the making: what is done of it, `digest` being that of its chunks."""

    out: Path
    mistakes: Path | None = None  # where the rows with another label of their own go
    digest: str = ""
    totals: RowCounts = field(default_factory=RowCounts)
    sizes: list[int] = field(default_factory=list)  # bytes of each chunk in the output

    @property
    def folder(self) -> Path:
        return self.out.with_name(self.out.name + ".unfinished")

    @property
    def errors(self) -> Path:
        """The errors file that there will be, if any row cannot be scored."""
        return self.out.with_name(self.out.name + ".errors.jsonl")

    @contextmanager
    def opened(self, settings: dict[str, Any], *, restart: bool) -> Iterator["Unfinished"]:
        """Ready to `add` the chunks that are not yet done.

        Raises:
            DataError: other settings were at work here, another process is, or the place cannot be written to.
        """
        ours = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(
                self.folder / "lock", f"another process is writing {self.out}; wait for it, or give another --out"
            ):
                self._recover(settings, restart=restart)
                ours = True
                with ExitStack() as stack:
                    names = (*PARTS, "journal.jsonl")
                    self._files = {name: stack.enter_context((self.folder / name).open("ab")) for name in names}
                    yield self
            if os.name == "nt":
                with suppress(OSError):  # what is not finished stays
                    self.folder.rmdir()
        except BaseException as error:
            if ours and not self.sizes:  # nothing is done yet, so nothing stays
                shutil.rmtree(self.folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise DataError(f"cannot write {self.out}: {error.strerror or error}; give another file") from error

    def add(self, digest: str, part: ScoredPart) -> None:
        """The next chunk: its bytes first, then the line that makes them count."""
        line: dict[str, Any] = {"digest": digest, "counts": asdict(part.counts)}
        for name, content in part.files.items():
            self._files[name].write(content)
            self._files[name].flush()
            line[name] = [len(content), hashlib.sha256(content).hexdigest()]
        self._files["journal.jsonl"].write(json.dumps({**line, "checksum": _checksum(line)}).encode() + b"\n")
        self._files["journal.jsonl"].flush()
        self._count(line)

    def finish(self) -> None:
        """Give the files their names. The output comes last: where it is, all is done."""
        for file in self._files.values():
            os.fsync(file.fileno())
            file.close()  # Windows renames closed files only
        if self.mistakes is not None:
            with atomic_file(self.mistakes) as copy, (self.folder / "mistakes").open("rb") as mistakes:
                shutil.copyfileobj(mistakes, copy)
        if (self.folder / "errors").stat().st_size:
            (self.folder / "errors").replace(self.errors)
        else:
            self.errors.unlink(missing_ok=True)  # of another time
        if self.out.suffix.lower() == ".parquet":
            with atomic_file(self.out) as table, (self.folder / "rows").open("rb") as rows:
                write_parquet(table, (rows.read(size) for size in self.sizes))
        else:
            (self.folder / "rows").replace(self.out)
        sync_name(self.out)
        shutil.rmtree(self.folder, ignore_errors=os.name == "nt")  # there, the lock stays until it is released

    def _count(self, line: dict[str, Any]) -> None:
        self.digest = line["digest"]
        self.sizes.append(line["rows"][0])
        self.totals += RowCounts(**line["counts"])

    def _recover(self, settings: dict[str, Any], *, restart: bool) -> None:
        file = self.folder / "settings.json"
        if restart or not file.exists():
            for name in (*PARTS, "journal.jsonl"):
                (self.folder / name).unlink(missing_ok=True)
            write_json(file, settings)
            return
        try:
            before = dict(from_json(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise DataError(f"{file} is damaged; give --restart to score all rows again, or another --out") from None
        for what, value in settings.items():
            if before.get(what) != value:
                raise DataError(
                    f"{self.folder} holds the first rows of another scoring: {what} was {_told(before.get(what))} and "
                    f"is {_told(value)}; give --restart to score all rows again, or another --out"
                )
        self._verify()

    def _verify(self) -> None:
        journal = self.folder / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        kept = dict.fromkeys((*PARTS, "journal.jsonl"), 0)
        with ExitStack() as stack:
            places = {name: path if (path := self.folder / name).exists() else Path(os.devnull) for name in PARTS}
            files = {name: stack.enter_context(path.open("rb")) for name, path in places.items()}
            for raw in lines:
                line = _line(raw)
                if line is None or not all(_same(file, line[name]) for name, file in files.items()):
                    break
                kept = {name: file.tell() for name, file in files.items()} | {
                    "journal.jsonl": kept["journal.jsonl"] + len(raw)
                }
                self._count(line)
        for name, size in kept.items():
            with (self.folder / name).open("ab") as file:
                file.truncate(size)


def _same(file: IO[bytes], expected: list[Any]) -> bool:
    size, digest = expected
    return hashlib.sha256(file.read(size)).hexdigest() == str(digest)


def _line(raw: bytes) -> dict[str, Any] | None:
    """None for a line that is damaged, or was being written when the process was killed."""
    try:
        line = dict(from_json(raw)) if raw.endswith(b"\n") else {}
    except (ValueError, TypeError):
        return None
    sound = line.pop("checksum", None) == _checksum(line) and line.keys() >= {"counts", *PARTS}
    return line if sound else None


def _checksum(line: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()


def _told(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "...")
