"""The pages. Each is whole without script; the script only replaces the part that changed."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from emhrnn.errors import EmhrnnError
from emhrnn.explain import svg
from emhrnn.explain.inert import escape, without_breaks
from emhrnn.explain.page import percent, stylesheet
from emhrnn.products.serve.files import inside, listed, readable
from emhrnn.products.serve.guard import COOKIE, same, session_of
from emhrnn.products.serve.jobs import Job, Jobs, Row
from emhrnn.products.serve.limits import RefusedError, check_texts
from emhrnn.products.serve.runs import RunPage, run_page
from emhrnn.products.serve.state import Served, State, state_of
from emhrnn.products.serve.whatif import View, view

pages = APIRouter(include_in_schema=False)
ROWS_SHOWN = 100
ORDERS = {
    "confidence": "least sure first",
    "sure": "surest first",
    "error": "worst error first",
    "file": "as in the file",
}
SAMPLES = (
    "The room was not what we had hoped for. It was small, and it looked over the car park. But the staff could not "
    "have been kinder, and breakfast alone was worth the trip.",
    "A slow first hour, a plot that forgets itself twice, and yet I would see it again tomorrow. Wonderful music.",
    "I wanted to like it. The battery lasts a day at most, the screen scratches, and support never wrote back.",
)


@cache
def templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("emhrnn.products.serve"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        shown=lambda text: Markup(escape(without_breaks(str(text)))),
        percent=percent,
        bar=lambda value, kind="weight": Markup(svg.bar(value, kind)),
        level=svg.level,
    )
    environment.globals["chances_order"] = lambda chances: sorted(range(len(chances)), key=lambda k: -chances[k])
    return environment


def rendered(request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    state = state_of(request)
    page = (
        templates()
        .get_template(name)
        .render(served=state.served, path=request.url.path, guarded=state.token is not None, **values)
    )
    return HTMLResponse(page, status_code=status, headers={"cache-control": "no-store"})


def refused(request: Request, refusal: RefusedError) -> HTMLResponse:
    """For people: the sentence on a page."""
    return rendered(request, "refused.html", status=refusal.status, reason=refusal.reason, code=refusal.status)


async def form_of(request: Request) -> dict[str, str]:
    body = (await request.body()).decode("utf-8", errors="replace")
    try:
        return {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True, max_num_fields=50).items()}
    except ValueError:
        raise RefusedError(422, "the form has too many fields") from None


# ------------------------------------------------------------------ read, what if, compare


@pages.get("/")
async def read_page(request: Request, job: str = "", row: int = 0) -> Response:
    text, label = "", None
    if job:
        found = _row(jobs_of(request).get(job), row)
        text, label = found.text, found.label
    return await _reading(request, "read.html", {"text": text}, label=label)


@pages.post("/")
async def read_text(request: Request) -> Response:
    return await _reading(request, "read.html", await form_of(request))


@pages.post("/part/read")
async def read_part(request: Request) -> Response:
    return await _reading(request, "reading.html", await form_of(request))


@pages.get("/compare")
async def compare_page(request: Request) -> Response:
    return await _reading(request, "compare.html", {}, both=True)


@pages.post("/compare")
async def compare_texts(request: Request) -> Response:
    return await _reading(request, "compare.html", await form_of(request), both=True)


async def _reading(
    request: Request, name: str, form: dict[str, str], *, both: bool = False, label: str | None = None
) -> Response:
    """The page with the text read, or without one, or with what is wrong with it."""
    state = state_of(request)
    text, trouble, views = form.get("text", ""), "", []
    threshold, dropped = _number(form.get("threshold", "")), _numbers(form.get("dropped", ""))
    status = 200
    if text or request.method == "POST":
        try:
            check_texts([text], state.limits)
            models = state.served if both else state.served[:1]
            views = [await _view(served, text, None if both else threshold, dropped) for served in models]
        except RefusedError as refusal:
            trouble, status = refusal.reason, refusal.status
    return rendered(
        request, name, status=status, text=text, trouble=trouble, views=views, samples=SAMPLES, label=label,
        differing=_differing(views),
    )  # fmt: skip


async def _view(served: Served, text: str, threshold: float | None, dropped: frozenset[int]) -> View:
    if not served.explains:
        raise RefusedError(422, f"{served.name} is a {served.model.run.config.model.name} and has no phrases to show")
    run = served.model.run
    try:
        return await served.engine.run(lambda: view(run, text, threshold, dropped))
    except EmhrnnError as error:
        raise RefusedError(422, str(error)) from None


def _differing(views: Sequence[View]) -> list[set[int]]:
    """For each view the places (characters) where it alone ends a phrase."""
    ends = [{phrase.end for phrase in view.explanation.phrases} for view in views]
    return [own - set().union(*(other for other in ends if other is not own)) for own in ends]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part.isascii() and part.isdigit() and len(part) < 9)


# ------------------------------------------------------------------ corpus


def jobs_of(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


@pages.get("/corpus")
async def corpus_page(request: Request) -> Response:
    state = state_of(request)
    names = [] if state.data is None else listed(state.data)
    return rendered(request, "corpus.html", names=names, data=state.data is not None, jobs=jobs_of(request).all())


@pages.post("/corpus")
async def open_file(request: Request) -> Response:
    state, form = state_of(request), await form_of(request)
    name = form.get("file", "")
    return _started(jobs_of(request).start(state.first, inside(state.data, name), name))


@pages.post("/corpus/upload")
async def upload(request: Request, name: str = "file.csv") -> Response:
    """The file is the body; its name tells the format. It is kept until the server stops."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    if not readable(plain) or plain.startswith("."):
        raise RefusedError(
            422, f"{plain!r} is no csv, tsv, jsonl, parquet or txt file; its name must end in one of them"
        )
    body = await request.body()
    if not body:
        raise RefusedError(422, "the file is empty; pick one with documents")
    jobs = jobs_of(request)
    folder = request.app.state.uploads
    place = folder / f"{len(list(folder.iterdir()))}"
    place.mkdir()
    stored = place / f"upload.{plain.partition('.')[2]}"
    stored.write_bytes(body)
    job = jobs.start(state_of(request).first, stored, plain)
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


def _row(job: Job, number: int) -> Row:
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


# ------------------------------------------------------------------ runs, sign-in, files of the page


@pages.get("/runs")
async def runs(request: Request) -> Response:
    shown: list[RunPage] = [run_page(served) for served in state_of(request).served]
    return rendered(request, "runs.html", runs=shown)


@pages.get("/login")
async def login_page(request: Request) -> Response:
    return rendered(request, "login.html", trouble="")


@pages.post("/login")
async def login(request: Request) -> Response:
    state: State = state_of(request)
    given = (await form_of(request)).get("token", "")
    if state.token is None or not same(given, state.token):
        return rendered(
            request, "login.html", status=401, trouble="That is not the token that the server was started with."
        )
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(COOKIE, session_of(state.token), httponly=True, samesite="strict")
    return response


STATIC = {"viewer.js": "text/javascript", "viewer.css": "text/css", "page.css": "text/css", "icon.svg": "image/svg+xml"}


@pages.get("/static/{name}")
async def static(name: str) -> Response:
    if name not in STATIC:
        raise RefusedError(404, "no such file")
    return Response(_static(name), media_type=STATIC[name], headers={"cache-control": "no-cache"})


@cache
def _static(name: str) -> str:
    if name == "page.css":  # that of the explanations, so that both look alike
        return stylesheet()
    return files("emhrnn.products.serve").joinpath("static", name).read_text(encoding="utf-8")
