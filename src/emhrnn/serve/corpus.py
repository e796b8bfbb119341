"""The pages that go through a file of documents, and the files of the data folder that they may open: whatever a name
looks like, the file that it leads to lies inside."""

from collections import Counter
from pathlib import Path, PurePosixPath
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from markupsafe import Markup

from emhrnn.corpus.readers.source import COMPRESSION, SUFFIXES
from emhrnn.explain import svg
from emhrnn.serve.engine import state_of
from emhrnn.serve.jobs import FileJob, FileRow, Jobs
from emhrnn.serve.limits import RefusedError
from emhrnn.serve.pages import form_of, rendered

pages = APIRouter(include_in_schema=False)
ROWS_SHOWN, FILES_SHOWN = 100, 200
ENDINGS = (*SUFFIXES, ".txt")
ORDERS = {
    "confidence": "least sure first",
    "sure": "surest first",
    "error": "worst error first",
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
    state, form = state_of(request), await form_of(request)
    name = form.get("file", "")
    return _started(jobs_of(request).start(state.first, inside(state.data, name), name))


@pages.post("/corpus/upload")
async def upload(request: Request, name: str = "file.csv") -> Response:
    """The file is the body; its name tells the format. It is kept until it has been read."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    kind = ending(plain)
    if kind is None or plain.startswith("."):
        raise RefusedError(
            422, f"{plain!r} is no csv, tsv, jsonl, parquet or txt file; its name must end in one of them"
        )
    body = await request.body()
    if not body:
        raise RefusedError(422, "the file is empty; pick one with documents")
    jobs = jobs_of(request)
    jobs.check_room()
    stored = Path(mkdtemp(dir=request.app.state.uploads), f"upload{kind}")
    stored.write_bytes(body)
    job = jobs.start(state_of(request).first, stored, plain, own=True)
    return JSONResponse({"job": f"/corpus/{job.key}"})


def _started(job: FileJob) -> Response:
    return RedirectResponse(f"/corpus/{job.key}", status_code=303)


@pages.get("/corpus/{key}")
async def job_page(
    request: Request, key: str, order: str = "confidence", label: str = "", predicted: str = "", page: int = 1
) -> Response:
    """What is known of a file so far."""
    job = jobs_of(request).get(key).snapshot()
    order = order if order in ORDERS else "confidence"
    rows = _ordered(_filtered(job.rows, label, predicted), order)
    page = max(1, min(page, (len(rows) + ROWS_SHOWN - 1) // ROWS_SHOWN or 1))
    labelled = [row for row in job.rows if row.label is not None]

    def link(**changes: Any) -> str:
        query = {"order": order, "label": label, "predicted": predicted, "page": 1, **changes}
        return f"/corpus/{key}?" + urlencode({name: value for name, value in query.items() if value})

    return rendered(
        request, "job.html", job=job, rows=rows[(page - 1) * ROWS_SHOWN : page * ROWS_SHOWN], found=len(rows),
        order=order, orders=ORDERS, label=label, predicted=predicted, page=page,
        last=(len(rows) + ROWS_SHOWN - 1) // ROWS_SHOWN, link=link, labelled=len(labelled),
        right=sum(bool(row.correct) for row in labelled), confusion=_confusion(job, labelled),
        shares=Counter(row.predicted for row in job.rows).most_common(12), lengths=_lengths(job),
        classes=job.served.model.classes,
    )  # fmt: skip


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


def _filtered(rows: list[FileRow], label: str, predicted: str) -> list[FileRow]:
    return [row for row in rows if (not label or row.label == label) and (not predicted or row.predicted == predicted)]


def _ordered(rows: list[FileRow], order: str) -> list[FileRow]:
    if order == "error":  # how much the model believed something else than the truth
        return sorted(rows, key=lambda row: 2.0 if row.true_probability is None else row.true_probability)
    if order == "file":
        return rows
    return sorted(rows, key=lambda row: row.confidence, reverse=order == "sure")


def _confusion(job: FileJob, labelled: list[FileRow]) -> list[list[int]]:
    if not labelled or job.served.model.run.multi_label:
        return []
    counts = Counter((row.label, row.predicted) for row in labelled)
    classes = job.served.model.classes
    return [[counts[true, predicted] for predicted in classes] for true in classes]


def _lengths(job: FileJob) -> Markup:
    if not job.lengths:
        return Markup("")
    longest = min(max(job.lengths), 30)
    counts = [job.lengths[length] for length in range(1, longest + 1)]
    return Markup(svg.column_chart(counts, label="Share of phrases by length", x_name="words in the phrase"))


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
        RefusedError: there is none, or the name leads out of the folder. Both have the same message.
    """
    refusal = RefusedError(404, "no such file in the data folder; pick one of the list")
    if folder is None or not name or "\0" in name:
        raise refusal
    root = folder.resolve()
    try:
        path = (root / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise refusal from None
    if not path.is_relative_to(root) or _linked(root / name, root) or not path.is_file() or ending(path.name) is None:
        raise refusal
    return path


def _linked(path: Path, folder: Path) -> bool:
    """Whether a link stands anywhere between the folder and the file."""
    try:
        steps = path.relative_to(folder).parts
    except ValueError:
        return True
    return any(folder.joinpath(*steps[: k + 1]).is_symlink() for k in range(len(steps)))
