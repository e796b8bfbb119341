"""The pages that go through a file of documents, and the files of the data folder that they may open: those that are
listed, and no others."""

import csv
import io
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from markupsafe import Markup

from emhrnn.corpus import Columns
from emhrnn.corpus.readers.source import COMPRESSION, SUFFIXES
from emhrnn.evaluation.scores import ClassScore
from emhrnn.explain.charts import confusion_table
from emhrnn.serve.engine import state_of
from emhrnn.serve.jobs import FileJob, FileRow, Jobs
from emhrnn.serve.limits import RefusedError
from emhrnn.serve.pages import form_of, rendered

pages = APIRouter(include_in_schema=False)
ROWS_SHOWN, FILES_SHOWN = 25, 200
ENDINGS = (*SUFFIXES, ".txt")
ORDERS = {
    "error": "likely label errors first",
    "confidence": "least sure first",
    "sure": "surest first",
    "file": "as in the file",
}


def jobs_of(request: Request) -> Jobs:
    """The files that are open."""
    jobs: Jobs = request.app.state.jobs
    return jobs


@pages.get("/corpus")
async def corpus_page(request: Request) -> Response:
    """Files to choose from."""
    state = state_of(request)
    names = [] if state.data is None else listed(state.data)
    return rendered(
        request, "corpus.html", names=names[:FILES_SHOWN], more=len(names[FILES_SHOWN:]), data=state.data is not None,
        jobs=jobs_of(request).all(),
    )  # fmt: skip


@pages.post("/corpus")
async def open_file(request: Request) -> Response:
    """Start on a file of the data folder."""
    form = await form_of(request)
    return _started(_open(request, FileSpec(form.get("file", ""), form.get("run", ""))))


class FileSpec(NamedTuple):
    """What a job on a file of the data folder is: its key says so, so that its address works after a restart, too."""

    file: str
    run: str = ""
    text: str = ""  # columns; empty: those of the usual names
    label: str = ""

    @property
    def key(self) -> str:
        return "f" + urlsafe_b64encode("\0".join(self).encode()).decode().rstrip("=")

    @classmethod
    def of(cls, key: str) -> "FileSpec | None":
        """From the key of a job; None for other keys."""
        try:
            parts = urlsafe_b64decode(key[1:] + "=" * (-len(key[1:]) % 4)).decode().split("\0")
        except ValueError:
            return None
        return cls(*parts) if key.startswith("f") and len(parts) == 4 else None


def _open(request: Request, spec: FileSpec) -> FileJob:
    state = state_of(request)
    path, served = inside(state.data, spec.file), state.named(spec.run or None)
    return jobs_of(request).start(served, path, spec.file, key=spec.key, columns=_columns(spec.text, spec.label))


def _columns(text: str, label: str) -> Columns | None:
    return Columns(text=text, label=label or None, labelled=bool(label)) if text else None


def job_of(request: Request, key: str) -> FileJob:
    """The job of this key; one on a file of the data folder is started again where it is no longer there.

    Raises:
        RefusedError: there is none, and it cannot be started.
    """
    spec = FileSpec.of(key)
    try:
        job = jobs_of(request).get(key)
    except RefusedError:
        if spec is None:
            raise
        return _open(request, spec)
    return job if job.documents or spec is None else _open(request, spec)


@pages.post("/corpus/upload")
async def upload(request: Request, name: str = "file.csv", run: str = "") -> Response:
    """The file is the body; its name tells the format. It is kept until it has been read."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    kind, served = ending(plain), state_of(request).named(run or None)
    if kind is None or plain.startswith("."):
        raise RefusedError(
            422, f"{plain!r} is not a csv, tsv, jsonl, parquet or txt file; its name must end in one of them"
        )
    body = await request.body()
    if not body:
        raise RefusedError(422, "the file is empty; pick one with documents")
    jobs = jobs_of(request)
    jobs.check_room()
    stored = Path(mkdtemp(dir=request.app.state.uploads), f"upload{kind}")
    stored.write_bytes(body)
    job = jobs.start(served, stored, plain, own=True)
    return JSONResponse({"job": f"/corpus/{job.key}"})


@pages.post("/corpus/{key}/columns")
async def choose_columns(request: Request, key: str) -> Response:
    """Read the file again with the columns that a person chose."""
    job, form = jobs_of(request).get(key), await form_of(request)
    text, label = form.get("text", ""), form.get("label", "")
    if text not in job.names or (label and label not in job.names) or text == label:
        raise RefusedError(422, "choose a column for the text, and another one, or none, for the label")
    spec = FileSpec.of(key)
    if spec is not None:
        return _started(_open(request, spec._replace(text=text, label=label)))
    if job.state != "columns":
        raise RefusedError(404, "the file was deleted when it had been read; send it again")
    columns = _columns(text, label)
    return _started(jobs_of(request).start(job.served, job.path, job.name, key=key, own=True, columns=columns))


@pages.post("/corpus/{key}/delete")
async def delete(request: Request, key: str) -> Response:
    """Forget a file and all that is known of it."""
    jobs_of(request).delete(key)
    return RedirectResponse("/corpus", status_code=303)


def _started(job: FileJob) -> Response:
    return RedirectResponse(f"/corpus/{job.key}", status_code=303)


class RowFilter(NamedTuple):
    """Which rows of a file are shown, and in which order; as the address has it."""

    order: str = ""
    label: str = ""
    predicted: str = ""
    q: str = ""

    def of(self, rows: list[FileRow]) -> list[FileRow]:
        """The rows, in order."""
        word = self.q.casefold()
        found = [
            row
            for row in rows
            if (not self.label or row.label == self.label)
            and (not self.predicted or row.predicted == self.predicted)
            and (not word or word in row.text.casefold())
        ]
        if self.order == "error":  # how much the model believed something else than the label
            return sorted(found, key=lambda row: 2.0 if row.true_probability is None else row.true_probability)
        if self.order == "file":
            return found
        return sorted(found, key=lambda row: row.confidence, reverse=self.order == "sure")

    def query(self, **changes: Any) -> str:
        """For an address."""
        return urlencode({name: value for name, value in {**self._asdict(), **changes}.items() if value})


def filter_of(request: Request, job: FileJob) -> RowFilter:
    """From the address; likely label errors first, where there are labels."""
    given = {name: request.query_params.get(name, "")[:200] for name in RowFilter._fields}
    if given["order"] not in ORDERS:
        labelled = any(row.true_probability is not None for row in job.rows)
        given["order"] = "error" if labelled else "confidence"
    return RowFilter(**given)


@pages.get("/corpus/{key}")
async def job_page(request: Request, key: str, page: int = 1) -> Response:
    """What is known of a file so far."""
    job = job_of(request, key).snapshot()
    shown = filter_of(request, job)
    rows = shown.of(job.rows)
    last = (len(rows) + ROWS_SHOWN - 1) // ROWS_SHOWN or 1
    page = max(1, min(page, last))
    labelled = [row for row in job.rows if row.label is not None]

    def link(**changes: Any) -> str:
        return f"/corpus/{key}?{shown.query(**changes)}#documents"

    return rendered(
        request, "job.html", job=job, rows=rows[(page - 1) * ROWS_SHOWN : page * ROWS_SHOWN], found=len(rows),
        orders=ORDERS, shown=shown, page=page, last=last, link=link, labelled=len(labelled),
        right=sum(bool(row.correct) for row in labelled), **_compared(job, labelled, shown, link),
        shares=(predicted := Counter(row.predicted for row in job.rows)).most_common(12),
        predicted_names=set(predicted),
        classes=job.served.model.classes, again=FileSpec.of(key) is not None,
    )  # fmt: skip


@pages.get("/corpus/{key}/rows.csv")
async def rows_csv(request: Request, key: str) -> Response:
    """The rows that are shown, as a file."""
    job = jobs_of(request).get(key).snapshot()
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["row", "label", "predicted", "probability", "text"])
    for row in filter_of(request, job).of(job.rows):
        writer.writerow([row.number, row.label or "", row.predicted, f"{row.confidence:.4f}", row.text])
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(job.name)}.predicted.csv"}
    return Response(table.getvalue().encode("utf-8", "replace"), media_type="text/csv", headers=headers)


@pages.get("/corpus/{key}/state")
async def job_state(request: Request, key: str) -> Response:
    """How far it is, for the script."""
    job = jobs_of(request).get(key)
    return JSONResponse({"state": job.state, "doing": job.doing, "share": job.share, "rows": len(job.rows)})


@pages.post("/corpus/{key}/cancel")
async def cancel(request: Request, key: str) -> Response:
    """Stop reading a file; what was done stays."""
    job = jobs_of(request).get(key)
    job.cancel.set()
    return _started(job)


def row_of(job: FileJob, number: int) -> FileRow:
    """By its number in the file. Raises a RefusedError (404) where there is none."""
    for row in job.rows:
        if row.number == number:
            return row
    raise RefusedError(404, "no such row in this file")


def neighbours(rows: list[FileRow], number: int) -> tuple[int, int]:
    """The numbers of the rows before and after this one; 0 where there is none."""
    numbers = [0, *(row.number for row in rows), 0]
    place = numbers.index(number) if number in numbers[1:-1] else 0
    return (numbers[place - 1], numbers[place + 1]) if place else (0, 0)


def _compared(job: FileJob, labelled: list[FileRow], shown: RowFilter, link: Callable[..., str]) -> dict[str, Any]:
    """True and predicted classes in a table, and scores of each class; empty where documents have several labels."""
    if not labelled or job.served.model.run.multi_label:
        return {"confusion": "", "scores": []}
    counts, names = Counter((row.label, row.predicted) for row in labelled), job.served.model.classes
    confusion = np.array([[counts[true, predicted] for predicted in names] for true in names])
    hits, found, true = confusion.diagonal(), confusion.sum(axis=0), confusion.sum(axis=1)
    columns = (true, hits / np.maximum(found, 1), hits / np.maximum(true, 1), 2 * hits / np.maximum(found + true, 1))
    table = confusion_table(
        confusion.tolist(), names, lambda true, predicted: link(label=true, predicted=predicted),
        (shown.label, shown.predicted),
    )  # fmt: skip
    scores = list(map(ClassScore, names, *(column.tolist() for column in columns)))
    return {"confusion": Markup(table), "scores": scores}


def ending(name: str) -> str | None:
    """What tells the format of a file, and how it is packed, as .csv.gz; None for a file that is no data."""
    path = PurePosixPath(name.lower())
    packed = path.suffix if path.suffix in COMPRESSION else ""
    kind = path.with_suffix("").suffix if packed else path.suffix
    return kind + packed if kind in ENDINGS else None


def listed(folder: Path) -> list[str]:
    """Names of the data files in the folder and below; without links, and without names that no page can hold because
    they are not UTF-8."""
    files = (path for path in folder.rglob("*") if not _linked(path, folder) and path.is_file() and ending(path.name))
    names = (path.relative_to(folder).as_posix() for path in files)
    return sorted(name for name in names if not any("\ud800" <= letter <= "\udfff" for letter in name))


def inside(folder: Path | None, name: str) -> Path:
    """The file called `name` in the folder.

    Raises:
        RefusedError: there is none of this name, as `listed` gives them.
    """
    if folder is None or name not in listed(folder):
        raise RefusedError(404, "no such file in the data folder; pick one of the list")
    return folder / name


def _linked(path: Path, folder: Path) -> bool:
    """Whether a link stands anywhere between the folder and the file."""
    steps = path.relative_to(folder).parts
    return any(folder.joinpath(*steps[: k + 1]).is_symlink() for k in range(len(steps)))
