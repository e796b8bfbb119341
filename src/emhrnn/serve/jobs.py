"""The files that were opened last on the corpus page, and what of them outlives the server: one JSON file for each, in
RUN.jobs beside the run folder.

A file is read and classified in the background, in pieces, so that the reading page stays quick; it can be watched and
cancelled. When all rows are done, the phrases that speak for each class are gathered from some of them
(explain/lexicon.py). Rows are kept in memory, up to a limit; a longer file is for `emhrnn predict`, and the page says
so. A small upload may unpack to any size, and one row may be all of it, so both have a limit.

What outlives the server holds row numbers, labels and predictions, and no document: an upload is gone when the server
stops. A file of the data folder is read again when its page is opened.
"""

import hashlib
import json
import logging
import secrets
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np

from emhrnn.api import labels_of
from emhrnn.corpus import Columns, Corpus, Source
from emhrnn.corpus.batch import fingerprints
from emhrnn.corpus.encode import has_words
from emhrnn.corpus.readers.arrow_formats import unpacked_bytes
from emhrnn.corpus.readers.input import open_bytes
from emhrnn.corpus.readers.source import format_of
from emhrnn.corpus.readers.text_formats import archive_bytes
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError, EmhrnnError
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation, joined
from emhrnn.explain.lexicon import Entry, Gathered, measured
from emhrnn.files import from_json, write_text
from emhrnn.serve.engine import RequestText, ServedRun, columns
from emhrnn.serve.limits import RefusedError, ServerLimits
from emhrnn.shapes import Float32, UInt64
from emhrnn.training.pack import beside
from emhrnn.training.run import Run

PIECE, PIECE_CHARACTERS = 64, 1 << 18  # rows per turn of the model, fewer where they are long: others wait behind it
GATHERED = 500  # rows whose phrases are looked at
TRAINED = 2000  # documents of the training file that are looked at together


@dataclass(frozen=True)
class FileRow:
    """A document of a file, classified."""

    number: int  # in the file, counted from 1
    text: str
    user: str | None
    product: str | None
    label: str | None  # None: not known, or none of the model's classes
    predicted: str
    confidence: float
    true_probability: float | None

    @property
    def correct(self) -> bool | None:
        return None if self.label is None else self.label == self.predicted


@dataclass(eq=False)
class FileJob:
    """Written by its thread, read by the pages."""

    key: str
    name: str
    path: Path
    served: ServedRun
    limits: ServerLimits
    own: bool = False  # the file is a copy for this job alone
    columns: Columns | None = None  # that a person chose; None: those of the usual names
    names: list[str] = field(default_factory=list)  # of the columns of the file; empty where it has none
    rows: list[FileRow] = field(default_factory=list)
    skipped: int = 0  # rows without words
    too_long: int = 0  # rows
    known: int = 0  # rows that are in the training file of the run, too
    strange: int = 0  # rows with a label that is none of the model's classes
    lexicon: list[tuple[str, list[Entry]]] = field(default_factory=list)  # by class
    share: float = 0.0  # of what there is to do
    doing: str = "Reading and classifying"
    state: str = "running"  # running, done, cancelled, failed; columns: a person has to choose them
    trouble: str = ""
    cut: bool = False  # the file has more rows than are shown
    documents: bool = True  # False: rows have no text, since it was read by a server that has stopped
    cancel: threading.Event = field(default_factory=threading.Event)

    @property
    def running(self) -> bool:
        return self.state == "running"

    def snapshot(self) -> "FileJob":
        """As it is now: a page is drawn from one moment. The state first: when it says done, all rows are there."""
        state = self.state
        return replace(self, rows=list(self.rows), state=state)

    def run(self) -> None:
        try:
            if self.own:
                _check_unpacked(self.path, self.limits.unpacked_bytes)
            self._choose_columns()
            for piece in [] if self.columns is None else self._pieces(self.columns):
                if self.cancel.is_set():
                    self.state = "cancelled"
                    return
                self._add(piece)
            if self.columns is None:
                self.state = "columns"
                return
            if not self.rows:
                what = "words" if not self.too_long else f"words and at most {self.limits.row_characters:,} characters"
                self.state, self.trouble = "failed", f"the file has no rows with {what}; pick another one"
                return
            self.state = "done" if self._gather() else "cancelled"
        except (EmhrnnError, OSError) as error:
            self.trouble = str(error).replace(str(self.path), self.name)  # where it lies is nobody's business
            self.state = "failed"
        except Exception:
            self.state, self.trouble = "failed", "an error on the server; its log says more"
            raise
        finally:
            if self.state != "columns":
                self.delete_upload()

    def delete_upload(self) -> None:
        """The file, if it is a copy for this job alone."""
        if self.own:
            shutil.rmtree(self.path.parent, ignore_errors=True)

    @cached_property
    def _trained(self) -> UInt64[np.ndarray, " documents"]:
        """Fingerprints of the documents of the run's training file; none where it was copied without them."""
        found = [np.zeros(0, dtype=np.uint64)]
        with suppress(EmhrnnError, OSError, ImportError):
            corpus = Corpus.open(self.served.folder / "corpus" / "train", verify=False)
            if corpus.vocabulary.words == self.served.model.run.vocabulary.words:
                for start in range(0, len(corpus), TRAINED):
                    batch = corpus.batch(np.arange(start, min(start + TRAINED, len(corpus))))
                    found.append(fingerprints(batch.words, batch.document_lengths))
        return np.concatenate(found)

    def _choose_columns(self) -> None:
        """Of the usual names, unless a person chose; none where it is not clear which column has the text."""
        self.names = column_names(self.path)
        if self.columns is not None:
            return
        for labelled in (True, False):
            with suppress(DataError):
                columns = Columns(labelled=labelled)
                if self.names:
                    columns.resolve(self.names, self.name)
                else:
                    with closing(iter(Source(self.path, columns=columns))) as records:
                        next(records, None)
                self.columns = columns
                return
        if not self.names:  # nothing to choose from: the reader says what is wrong
            self.columns = Columns(labelled=False)

    def _gather(self) -> bool:
        """The lexicon; False when cancelled on the way."""
        if not self.served.has_phrases:
            return True
        run, step = self.served.model.run, -(-len(self.rows) // GATHERED)
        some = [RequestText(row.text, row.user, row.product) for row in self.rows[::step]]  # from all over the file
        gathered = Gathered(len(run.classes))
        self.doing, self.share = "Measuring phrases", 0.0
        for start in range(0, len(some), PIECE):
            if self.cancel.is_set():
                return False
            piece = some[start : start + PIECE]
            gathered.add(self.served.wait(lambda piece=piece: _explained(run, piece)))  # type: ignore[misc]
            self.share = (start + len(piece)) / len(some) / 2
        lexicon = []
        for label, name in enumerate(run.classes):
            if self.cancel.is_set():
                return False
            entries = self.served.wait(lambda label=label: measured(run, gathered, label))  # type: ignore[misc]
            lexicon.append((name, entries))
            self.share = 0.5 + (label + 1) / len(run.classes) / 2
        self.lexicon = lexicon
        return True

    def _pieces(self, columns: Columns) -> Iterator[list[Record]]:
        source = Source(self.path, columns=columns)
        with closing(iter(source)) as records:
            while (left := self.limits.rows - len(self.rows)) > 0 and (piece := _piece(records, left)):
                self.share = source.meter.done / source.meter.total if source.meter.total else 1.0
                yield piece
            self.cut = next(records, None) is not None
        self.share = 1.0

    def _add(self, piece: list[Record]) -> None:
        short = [record for record in piece if len(record.text) <= self.limits.row_characters]
        words = [record for record in short if has_words(record.text)]
        self.too_long += len(piece) - len(short)
        self.skipped += len(short) - len(words)
        if not words:
            return
        run = self.served.model.run
        table, prints = self.served.wait(lambda: _classified(run, words))
        self.known += int(np.isin(prints, self._trained).sum())
        for record, label, chances in zip(words, labels_of(run, table), table, strict=True):
            true = _true_label(record, run)
            self.strange += true is None and record.label is not None
            self.rows.append(
                FileRow(
                    number=record.where.row,
                    text=record.text,
                    user=record.user,
                    product=record.product,
                    label=true,
                    predicted=joined(label),
                    confidence=float(np.maximum(chances, 1 - chances).min() if run.multi_label else chances.max()),
                    true_probability=None
                    if true is None or run.multi_label
                    else float(chances[run.classes.index(true)]),
                )
            )


def _check_unpacked(path: Path, most: int) -> None:
    """Before anything of it is kept in memory. Parquet and xlsx files are packed inside, too."""
    inside = {"parquet": unpacked_bytes, "xlsx": archive_bytes}.get(format_of(path))
    if any(size > most for size in _stream_bytes(path)) or (inside and any(size > most for size in inside(path))):
        raise DataError(f"{path} unpacks to more than {most >> 20} MB; score it with emhrnn predict")


def _stream_bytes(path: Path) -> Iterator[int]:
    """So far."""
    with open_bytes(path) as stream:
        yield from accumulate(len(block) for block in iter(lambda: stream.read(1 << 20), b""))


def _piece(records: Iterator[Record], most: int = PIECE) -> list[Record]:
    """The next rows, for one turn of the model."""
    piece, characters = list[Record](), 0
    for record in records:
        piece.append(record)
        characters += len(record.text)
        if len(piece) == min(PIECE, most) or characters >= PIECE_CHARACTERS:
            break
    return piece


def column_names(path: Path) -> list[str]:
    """Of the file; empty for a format without columns, and for a file that cannot be read."""
    source = Source(path, columns=Columns(labelled=False))
    with suppress(EmhrnnError, OSError), closing(iter(source)) as records:
        next(records, None)
    return list(source.present)


def _classified(
    run: Run, records: list[Record]
) -> tuple[Float32[np.ndarray, "records classes"], UInt64[np.ndarray, " records"]]:
    """Probabilities, and fingerprints of the texts."""
    texts = [record.text if record.sentences is None else record.sentences for record in records]
    users, products = [record.user for record in records], [record.product for record in records]
    batch = run.encoder.encode(texts, users=users, products=products)
    return run.predict(batch).probabilities, fingerprints(batch.words, batch.document_lengths)


def _explained(run: Run, documents: list[RequestText]) -> list[Explanation]:
    texts, users, products = columns(documents)
    return explain_texts(run, texts, users=users, products=products)


def _true_label(record: Record, run: Run) -> str | None:
    label, order = record.label, {name: index for index, name in enumerate(run.classes)}
    if isinstance(label, tuple):
        return joined(tuple(sorted(label, key=lambda name: order.get(name, len(order))))) if run.multi_label else None
    return label if label in run.classes else None


FACTS = ("key", "name", "names", "skipped", "too_long", "known", "strange", "state", "trouble", "cut")
STOPPING = 5.0  # seconds for jobs to save what they have
log = logging.getLogger("emhrnn.serve")


class Jobs:
    """The files that were opened last. Those of an earlier server are there at once."""

    def __init__(self, runs: Iterable[ServedRun], limits: ServerLimits) -> None:
        self.limits = limits
        self._jobs = {job.key: job for served in runs for job in _saved(served, limits)}
        self._threads: list[threading.Thread] = []

    def check_room(self) -> None:
        """Raise a RefusedError when no other file can be read now."""
        if sum(job.running for job in self._jobs.values()) >= 2:
            raise RefusedError(503, "two files are being read already; wait for one or cancel it")

    def start(
        self,
        served: ServedRun,
        path: Path,
        name: str,
        *,
        key: str = "",
        own: bool = False,
        columns: Columns | None = None,
    ) -> FileJob:
        """An `own` file, with its folder, goes when it has been read. A job of the same key makes room for it."""
        self.check_room()
        job = FileJob(key or secrets.token_hex(8), name, path, served, self.limits, own, columns)
        self._jobs.pop(job.key, None)
        self._jobs[job.key] = job
        if not own:  # then it can be read again, however far it comes
            _save(job)
        thread = threading.Thread(target=self._run, args=(job,), name=f"emhrnn-file-{job.key[:16]}", daemon=True)
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        thread.start()
        return job

    def _run(self, job: FileJob) -> None:
        """Then forgets the oldest: one that came to nothing never makes another go that did."""
        try:
            job.run()
        finally:
            if job.rows and self._jobs.get(job.key) is job:  # nobody has deleted it meanwhile
                _save(job)
            for useful in (True, False):
                some = [one for one in self.all() if not one.running and bool(one.rows) == useful]
                for old in some[self.limits.jobs :]:
                    self.delete(old.key)

    def delete(self, key: str) -> None:
        """Forget a file: its rows, what was saved of them, and the copy that was sent."""
        job = self.get(key)
        job.cancel.set()
        job.delete_upload()
        self._jobs.pop(key, None)
        with suppress(OSError):
            _file(job.served, key).unlink(missing_ok=True)

    def get(self, key: str) -> FileJob:
        if key not in self._jobs:
            raise RefusedError(404, "this file is no longer open; open it again from the corpus page")
        return self._jobs[key]

    def all(self) -> list[FileJob]:
        return list(self._jobs.values())[::-1]

    def stop(self) -> None:
        """Cancel what is running, and wait until it is saved."""
        for job in self.all():
            job.cancel.set()
        for thread in self._threads:
            thread.join(STOPPING)


def _file(served: ServedRun, key: str) -> Path:
    return beside(served.folder, ".jobs") / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _save(job: FileJob) -> None:
    """Or say in the log why that cannot be done."""
    rows = [[row.number, row.label, row.predicted, row.confidence, row.true_probability] for row in job.rows]
    told = {**{name: getattr(job, name) for name in FACTS}, "rows": rows}
    path = _file(job.served, job.key)
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_text(path, json.dumps(told))
    except OSError as error:
        log.warning("%s will not outlive the server: %s cannot be written (%s)", job.name, path, error.strerror)


def _saved(served: ServedRun, limits: ServerLimits) -> Iterator[FileJob]:
    """Of a run, the oldest first. A file that is damaged is left out."""
    for path in sorted(_file(served, "").parent.glob("*.json"), key=lambda path: path.stat().st_mtime):
        with suppress(OSError, ValueError, TypeError, KeyError):
            told = from_json(path.read_text(encoding="utf-8"))
            facts = {name: told[name] for name in FACTS}
            if facts["state"] == "running":  # when its server ended
                facts["state"] = "cancelled"
            yield FileJob(
                path=Path(),
                served=served,
                limits=limits,
                rows=[FileRow(number, "", None, None, *rest) for number, *rest in told["rows"]],
                documents=False,
                **facts,
            )
