"""The pages that read one text: Read, What if and Compare."""

import asyncio
from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from emhrnn.errors import EmhrnnError
from emhrnn.models.table import EXPLAINING
from emhrnn.serve.corpus_pages import jobs_of, row_of
from emhrnn.serve.limits import RefusedError, check_aside, check_texts
from emhrnn.serve.rendering import form_of, rendered
from emhrnn.serve.state import Served, state_of
from emhrnn.serve.verdict import Verdict, verdict
from emhrnn.serve.whatif import View, view
from emhrnn.serve.written import Written

pages = APIRouter(include_in_schema=False)
SAMPLES = (
    "The room was not what we had hoped for. It was small, and it looked over the car park. But the staff could not "
    "have been kinder, and breakfast alone was worth the trip.",
    "A slow first hour, a plot that forgets itself twice, and yet I would see it again tomorrow. Wonderful music.",
    "I wanted to like it. The battery lasts a day at most, the screen scratches, and support never wrote back.",
)


@pages.get("/")
async def read_page(request: Request, job: str = "", row: int = 0) -> Response:
    if not job:
        return await _reading(request, "read.html", {})
    found = row_of(jobs_of(request).get(job), row)
    form = {"text": found.text, "user": found.user or "", "product": found.product or ""}
    return await _reading(request, "read.html", form, label=found.label)


@pages.post("/")
async def read_text(request: Request) -> Response:
    return await _reading(request, "read.html", await form_of(request))


@pages.post("/part/read")
async def read_part(request: Request) -> Response:
    form = await form_of(request)
    return await _reading(request, "reading.html", form, label=form.get("label") or None)


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
    user, product = (form.get(name, "").strip() or None for name in ("user", "product"))
    written = Written(form.get("text", ""), user, product)
    trouble, views = "", list[View | Verdict]()
    threshold, dropped = _number(form.get("threshold", "")), _numbers(form.get("dropped", ""))
    status = 200
    models = state.served if both else state.served[:1]
    if written.text or request.method == "POST":
        try:
            await check_aside(check_texts, [written.text], state.limits)
            views = [await _view(served, written, None if both else threshold, dropped) for served in models]
        except RefusedError as refusal:
            trouble, status = refusal.reason, refusal.status
    return await asyncio.to_thread(  # seconds for the longest text, in which nobody else would be answered
        rendered, request, name, status=status, written=written, trouble=trouble, views=views, samples=SAMPLES,
        label=label, differing=_differing(models, views), ids=any(served.reads_ids for served in models),
        explaining=EXPLAINING,
    )  # fmt: skip


async def _view(served: Served, written: Written, threshold: float | None, dropped: frozenset[int]) -> View | Verdict:
    if not served.explains:
        return await verdict(served, written)
    run = served.model.run
    try:
        return await served.engine.run(lambda: view(run, written, threshold, dropped))
    except EmhrnnError as error:
        raise RefusedError(422, str(error)) from None


def _differing(models: Sequence[Served], views: Sequence[View | Verdict]) -> list[set[int] | None]:
    """For each view the places (characters) where it alone ends a phrase; None where a model has no phrases."""
    if not all(served.has_phrases for served in models):
        return [None for _ in views]
    ends = [{phrase.end for phrase in view.explanation.phrases} for view in views if isinstance(view, View)]
    return [own - set().union(*(other for other in ends if other is not own)) for own in ends]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part.isascii() and part.isdigit() and len(part) < 9)
