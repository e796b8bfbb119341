"""The files that were opened last on the corpus page, and what of them outlives the server: one JSON file for each, in
RUN.jobs beside the run folder.

It holds row numbers, labels and predictions, and no document: an upload is gone when the server stops. A file of the
data folder is read again when its page is opened.
"""

import hashlib
import json
import logging
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from emhrnn.corpus import Columns
from emhrnn.files import write_text
from emhrnn.serve.engine import ServedRun
from emhrnn.serve.file_job import FileJob, FileRow
from emhrnn.serve.limits import RefusedError, ServerLimits
from emhrnn.training.pack import beside

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
            told = json.loads(path.read_text(encoding="utf-8"))
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
