"""The file that scoring writes, and how it can stop at any moment and go on.

Rows become bytes, so that parts written by several processes make one file when put together: .jsonl and .csv are their
lines; .parquet is written at the end, from parts that are Arrow streams.

OUT.unfinished/ holds what is done, and the same command goes on from there:

OUT.unfinished/settings.json     what is being done; another run, other data or other options cannot resume it
OUT.unfinished/rows              the output so far
OUT.unfinished/errors            the errors file so far
OUT.unfinished/journal.jsonl     one line per chunk: how many bytes of both are its own, and their checksums

A chunk counts once its line is in the journal. What a kill left after the last whole line is cut off; what the journal
lists is read again and compared, so that a damaged part is scored anew instead of being believed.
"""

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from emhrnn.errors import DataError
from emhrnn.extras import parquet
from emhrnn.extras import pyarrow as pa
from emhrnn.files import atomic_file, locked, write_json
from emhrnn.scoring.chunks import ResumePoint

Row = dict[str, Any]
SUFFIXES = (".parquet", ".csv", ".jsonl")
_TEXT = {"id", "label", "sentence", "phrase", "word"}
COUNTS = ("documents", "words", "unscored", "repaired")  # of a part


@dataclass(frozen=True, kw_only=True)
class ScoredPart:
    """What a chunk gives: bytes of the output, lines of the errors file, and counts."""

    rows: bytes
    errors: bytes
    documents: int
    words: int
    unscored: int
    repaired: int  # of those that were scored


def check_suffix(out: Path) -> str:
    """The suffix of the output in lower case; a DataError for one that is no format."""
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(SUFFIXES)}")
    return suffix


def to_bytes(suffix: str, columns: list[str], rows: list[Row], *, first: bool) -> bytes:
    """ScoredPart of a file; the `first` part of a csv has the header."""
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8")
    if suffix == ".csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        if first:
            writer.writerow(columns)
        writer.writerows([row[name] for name in columns] for row in rows)
        return text.getvalue().encode("utf-8")
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows, _schema(columns))
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def write_parquet(out: BinaryIO, parts: Iterable[bytes]) -> None:
    """The parts that `to_bytes` made for .parquet, each a row group."""
    writer = None
    for part in parts:
        table = pa.ipc.open_stream(part).read_all()
        writer = writer or parquet.ParquetWriter(out, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _schema(columns: list[str]) -> Any:
    return pa.schema([(name, pa.string() if name in _TEXT else pa.float32()) for name in columns])


@dataclass
class Totals:
    """Of the rows in the output so far."""

    documents: int = 0
    words: int = 0
    unscored: int = 0
    repaired: int = 0

    def add(self, counts: Any) -> None:
        self.documents += counts["documents"]
        self.words += counts["words"]
        self.unscored += counts["unscored"]
        self.repaired += counts.get("repaired", 0)  # not in journals of before


@dataclass
class Unfinished:
    """An output in the making."""

    out: Path
    place: ResumePoint = field(default_factory=ResumePoint)
    totals: Totals = field(default_factory=Totals)
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
        """Ready to `add` what comes after `place`.

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
                with (
                    (self.folder / "rows").open("ab") as self._rows,
                    (self.folder / "errors").open("ab") as self._errors,
                    (self.folder / "journal.jsonl").open("ab") as self._journal,
                ):
                    yield self
        except BaseException as error:
            if ours and not self.place.chunks:  # nothing is done yet, so nothing stays
                shutil.rmtree(self.folder, ignore_errors=True)
            if not isinstance(error, OSError):
                raise
            raise DataError(f"cannot write {self.out}: {error.strerror or error}; give another file") from error

    def add(self, digest: str, part: ScoredPart) -> None:
        """The next chunk: its bytes first, then the line that makes them count."""
        line: dict[str, Any] = {"digest": digest, **{name: getattr(part, name) for name in COUNTS}}
        for name, file, content in (("rows", self._rows, part.rows), ("errors", self._errors, part.errors)):
            file.write(content)
            file.flush()
            line[name] = [len(content), hashlib.sha256(content).hexdigest()]
        self._journal.write(json.dumps(line).encode() + b"\n")
        self._journal.flush()
        self._count(line)

    def finish(self) -> None:
        """Give the files their names. The output comes last: where it is, all is done."""
        for file in (self._rows, self._errors):
            os.fsync(file.fileno())
        if self._errors.tell():
            (self.folder / "errors").replace(self.errors)
        else:
            self.errors.unlink(missing_ok=True)  # of another time
        if self.out.suffix.lower() == ".parquet":
            with atomic_file(self.out) as table, (self.folder / "rows").open("rb") as rows:
                write_parquet(table, (rows.read(size) for size in self.sizes))
        else:
            (self.folder / "rows").replace(self.out)
        shutil.rmtree(self.folder)

    def _count(self, line: dict[str, Any]) -> None:
        self.place = ResumePoint(self.place.chunks + 1, line["digest"])
        self.sizes.append(line["rows"][0])
        self.totals.add(line)

    def _recover(self, settings: dict[str, Any], *, restart: bool) -> None:
        file = self.folder / "settings.json"
        if restart or not file.exists():
            for name in ("rows", "errors", "journal.jsonl"):
                (self.folder / name).unlink(missing_ok=True)
            write_json(file, settings)
            return
        before = json.loads(file.read_text(encoding="utf-8"))
        for what, value in settings.items():
            if before.get(what) != value:
                raise DataError(
                    f"{self.folder} holds the first rows of another scoring: {what} was {_told(before.get(what))} and "
                    f"is {_told(value)}; give --restart to score all anew, or another --out"
                )
        self._verify()

    def _verify(self) -> None:
        journal = self.folder / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        kept = {"rows": 0, "errors": 0, "journal.jsonl": 0}
        with _open_or_empty(self.folder / "rows") as rows, _open_or_empty(self.folder / "errors") as errors:
            for raw in lines:
                line = _line(raw)
                if line is None or not all(_same(f, line[n]) for n, f in (("rows", rows), ("errors", errors))):
                    break
                kept = {"rows": rows.tell(), "errors": errors.tell(), "journal.jsonl": kept["journal.jsonl"] + len(raw)}
                self._count(line)
        for name, size in kept.items():
            with (self.folder / name).open("ab") as file:
                file.truncate(size)


def _open_or_empty(path: Path) -> IO[bytes]:
    return path.open("rb") if path.exists() else Path(os.devnull).open("rb")


def _same(file: IO[bytes], expected: list[Any]) -> bool:
    size, digest = expected
    return hashlib.sha256(file.read(size)).hexdigest() == str(digest)


def _line(raw: bytes) -> dict[str, Any] | None:
    """None for a line that was being written when the process was killed."""
    try:
        return dict(json.loads(raw)) if raw.endswith(b"\n") else None
    except ValueError:
        return None


def _told(value: Any) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "...")
