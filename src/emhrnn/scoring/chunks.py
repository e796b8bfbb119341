"""The rows to score, cut into chunks: what one process scores at a time.

A chunk is JSON in bytes, the same in every process:

    {"first": 2000, "rows": [{"id": "a17", "where": "new.jsonl, row 2001", "text": "..."}, ...]}

A row has `text`, and `sentences` where the source marks their ends; or a `fault`. It has its own `label` and the
columns of the data (`kept`) where they are asked for. Where chunks end depends on the data
alone, so that a chunk gives the same bytes however often it is scored, and by whom.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emhrnn.corpus import Columns, Record, Source
from emhrnn.corpus.readers.source import data_files
from emhrnn.corpus.record import clean_text
from emhrnn.errors import DataError
from emhrnn.files import encoded

ROWS, CHARACTERS = 2000, 1 << 20  # of a chunk, at most: enough to sort by length, little enough to keep in memory


@dataclass(frozen=True, kw_only=True)
class Data:
    """What is to be scored, as the user names it."""

    paths: tuple[Path, ...]
    format: str | None = None
    columns: Columns = field(default_factory=lambda: Columns(labelled=False))
    split: str | None = None
    encoding: str | None = None
    written: tuple[Path, ...] = ()  # files and folders that scoring writes, resolved: they are never read

    def files(self) -> list[Path]:
        found = [file for path in self.paths for file in self._files(path)]
        if not found:
            raise DataError(f"{self} has no files but those that scoring writes; give other data, or another --out")
        return found

    def source(self, split: str | None = None) -> Source:
        """All its rows, or those of one split."""
        return Source(
            self.files(), format=self.format, columns=self.columns, split=split, encoding=self.encoding, lenient=True
        )

    def writes(self, path: Path) -> bool:
        """Whether the path is, or lies in, what scoring writes."""
        place = path.resolve()
        return any(place.is_relative_to(own) for own in self.written)

    def _files(self, path: Path) -> list[Path]:
        found = [file for file in data_files(path) if not self.writes(file)]
        inside = path.iterdir() if path.is_dir() else ()
        of_classes = any(child.is_dir() and not self.writes(child) for child in inside)  # with no data files of its own
        return found or ([path] if of_classes else [])

    def __str__(self) -> str:
        return ", ".join(map(str, self.paths[:3])) + (", ..." if len(self.paths) > 3 else "")


@dataclass(frozen=True)
class RowChunk:
    """Some rows as bytes, and what was read up to their end."""

    payload: bytes
    digest: str  # of this payload and of all before it
    done: int  # bytes of the data read so far


def read_chunks(data: Data, skip: int = 0, digest: str = "") -> Iterator[RowChunk]:
    """All chunks but the first `skip`, which are read, too, and must have the digest that they had.

    Raises:
        DataError: the data cannot be read, has no rows, or has changed since it was scored.
    """
    found, number = "", 0
    for number, (content, done) in enumerate(_contents(data), start=1):
        payload = encoded(json.dumps(content, ensure_ascii=False, default=str))
        found = hashlib.sha256(found.encode() + payload).hexdigest()
        if number > skip:
            yield RowChunk(payload, found, done)
        elif number == skip and found != digest:
            raise DataError(
                f"{data} has changed since its first rows were scored; give --restart to score all rows again"
            )
    if number < skip:
        raise DataError(f"{data} has become shorter since it was scored; give --restart to score all rows again")
    if not number:
        raise DataError(f"{data} has no rows; give a file with documents")


def _contents(data: Data) -> Iterator[tuple[dict[str, Any], int]]:
    source = data.source(split=data.split)
    first, rows, characters = 0, list[dict[str, Any]](), 0
    with closing(iter(source)) as records:
        for number, record in enumerate(records):
            rows.append(_row(record, number))
            characters += len(record.text)
            if len(rows) >= ROWS or characters >= CHARACTERS:
                yield {"first": first, "rows": rows}, source.meter.done
                first, rows, characters = number + 1, [], 0
        if rows:
            yield {"first": first, "rows": rows}, source.meter.done


def _row(record: Record, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": record.id if record.id is not None else str(number), "where": str(record.where)}
    if record.kept is not None:
        row["kept"] = {k: clean_text(v)[0] if isinstance(v, str) else v for k, v in record.kept.items()}
    if record.fault is not None:
        return {**row, "fault": record.fault}
    row["text"] = record.text
    for name in ("sentences", "repairs", "user", "product", "label"):
        value = getattr(record, name)
        if value:
            row[name] = value
    return row
