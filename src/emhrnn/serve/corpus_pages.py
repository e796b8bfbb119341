"""The pages that go through a file of documents."""

from collections import Counter
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from markupsafe import Markup

from emhrnn.explain import svg
from emhrnn.serve.files import ending, inside, listed
from emhrnn.serve.jobs import Job, Jobs, Row
from emhrnn.serve.limits import RefusedError
from emhrnn.serve.rendering import form_of, rendered
from emhrnn.serve.state import state_of

pages = APIRouter(include_in_schema=False)
ROWS_SHOWN, FILES_SHOWN = 100, 200
ORDERS = {
    "confidence": "least sure first",
    "sure": "surest first",
    "error": "worst error first",
    "file": "as in the file",
}


def jobs_of(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


@pages.get("/corpus")
async def corpus_page(request: Request) -> Response:
    state = state_of(request)
    names = [] if state.data is None else listed(state.data)
    return rendered(
        request, "corpus.html", names=names[:FILES_SHOWN], more=len(names[FILES_SHOWN:]), data=state.data is not None,
        jobs=jobs_of(request).all(),
    )  # fmt: skip


@pages.post("/corpus")
async def open_file(request: Request) -> Response:
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


def _started(job: Job) -> Response:
    return RedirectResponse(f"/corpus/{job.key}", status_code=303)


@pages.get("/corpus/{key}")
async def job_page(
    request: Request, key: str, order: str = "confidence", label: str = "", predicted: str = "", page: int = 1
) -> Response:
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
    job = jobs_of(request).get(key)
    return JSONResponse({"state": job.state, "doing": job.doing, "share": job.share, "rows": len(job.rows)})


@pages.post("/corpus/{key}/cancel")
async def cancel(request: Request, key: str) -> Response:
    job = jobs_of(request).get(key)
    job.cancel.set()
    return _started(job)


def row_of(job: Job, number: int) -> Row:
    for row in job.rows:
        if row.number == number:
            return row
    raise RefusedError(404, "no such row in this file")


def _filtered(rows: list[Row], label: str, predicted: str) -> list[Row]:
    return [row for row in rows if (not label or row.label == label) and (not predicted or row.predicted == predicted)]


def _ordered(rows: list[Row], order: str) -> list[Row]:
    if order == "error":  # how much the model believed something else than the truth
        return sorted(rows, key=lambda row: 2.0 if row.true_probability is None else row.true_probability)
    if order == "file":
        return rows
    return sorted(rows, key=lambda row: row.confidence, reverse=order == "sure")


def _confusion(job: Job, labelled: list[Row]) -> list[list[int]]:
    if not labelled or job.served.model.run.multi_label:
        return []
    counts = Counter((row.label, row.predicted) for row in labelled)
    classes = job.served.model.classes
    return [[counts[true, predicted] for predicted in classes] for true in classes]


def _lengths(job: Job) -> Markup:
    if not job.lengths:
        return Markup("")
    longest = min(max(job.lengths), 30)
    counts = [job.lengths[length] for length in range(1, longest + 1)]
    return Markup(svg.column_chart(counts, label="Share of phrases by length", x_name="words in the phrase"))
