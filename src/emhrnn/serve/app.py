"""The application: pages and API behind the guard; models start and stop with it."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from emhrnn.serve.api import api
from emhrnn.serve.guard import FAULT, App, Guard
from emhrnn.serve.jobs import Jobs
from emhrnn.serve.limits import RefusedError
from emhrnn.serve.pages import pages
from emhrnn.serve.reference import reference
from emhrnn.serve.rendering import refused
from emhrnn.serve.state import State
from emhrnn.version import __version__

SEND = 'send {"text": "..."} or {"texts": [...]}'


def make_app(state: State, hosts: frozenset[str] | None) -> App:
    app = FastAPI(
        title="emhrnn", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Document classification that shows which sentence, which phrase and which word decided.",
    )  # fmt: skip
    app.state.emhrnn = state
    app.state.jobs = Jobs(state.limits)
    for router in (api, pages, reference):
        app.include_router(router)
    app.add_api_route("/metrics", _metrics, include_in_schema=False)
    app.add_exception_handler(RefusedError, _refused)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _invalid)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _fault)
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    return Guard(app, limits=state.limits, telemetry=state.telemetry, hosts=hosts, token=state.token)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: State = app.state.emhrnn
    with tempfile.TemporaryDirectory(prefix="emhrnn-uploads-") as uploads:
        app.state.uploads = Path(uploads)
        for served in state.served:
            served.engine.start()
        try:
            yield
        finally:
            app.state.jobs.stop()
            for served in state.served:
                served.engine.stop()


async def _metrics(request: Request) -> Response:
    state: State = request.app.state.emhrnn
    engines = [served.engine for served in state.served]
    text = state.telemetry.render(
        waiting=sum(engine.waiting for engine in engines), passes=sum(engine.passes for engine in engines)
    )
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _refused(request: Request, refusal: RefusedError) -> Response:
    if _for_people(request):
        return refused(request, refusal)
    headers = {"retry-after": "1"} if refusal.status == 503 else None
    return JSONResponse({"error": refusal.reason}, status_code=refusal.status, headers=headers)


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return await _refused(request, RefusedError(400, f"the body is not JSON; {SEND}"))
    if first["loc"] == ("body",) and first["type"] != "value_error":
        return await _refused(request, RefusedError(422, _no_object(request, error.body)))
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    told = f"{place}: {first['msg'].removeprefix('Value error, ')}"
    if first["type"] == "extra_forbidden":
        told = f"{place} is no field of this request; /docs lists what it takes"
    return await _refused(request, RefusedError(422, told))


def _no_object(request: Request, body: object) -> str:
    if not isinstance(body, bytes):
        return f"the body is not a JSON object; {SEND}"
    given = request.headers.get("content-type")
    came = f"came as {given}" if given else "came without a content type"
    return f"the body {came}; send it with `Content-Type: application/json`"


async def _http(request: Request, error: HTTPException) -> Response:
    reason = {
        400: _unreadable(error.__cause__),
        404: "there is no such page; / is the first one, /docs lists the API",
        405: "not with this method; see /docs",
    }
    refusal = RefusedError(error.status_code, reason.get(error.status_code, str(error.detail)))
    answer = await _refused(request, refusal)
    if error.status_code == 405:
        answer.headers["allow"] = ", ".join(_allowed(request))
    return answer


def _unreadable(cause: BaseException | None) -> str:
    """What was wrong with a body that the framework gave up on."""
    if isinstance(cause, UnicodeDecodeError):
        return f"the body is not UTF-8; {SEND} in UTF-8"
    if isinstance(cause, RecursionError):
        return f"the body is nested too deeply; {SEND}"
    if isinstance(cause, ValueError):
        return f"the body has a number with too many digits; {SEND}"
    return f"the body cannot be read; {SEND}"


def _allowed(request: Request) -> list[str]:
    """Of all routes with this path; the framework tells those of the first."""

    def takes(method: str) -> bool:
        asked = {"type": "http", "path": request.scope["path"], "method": method, "headers": []}
        return any(route.matches(asked)[0] is Match.FULL for route in request.app.routes)

    return (["GET", "HEAD"] if takes("GET") else []) + (["POST"] if takes("POST") else [])


async def _fault(request: Request, _: Exception) -> Response:
    return await _refused(request, RefusedError(500, FAULT))


def _for_people(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/v1/")
