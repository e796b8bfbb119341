"""The server: an ASGI application with pages and API behind the guard, which starts and stops the models; and the
process that listens, and stops well."""

import gc
import ipaddress
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from filelock import FileLock, Timeout
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.routing import Match

from emhrnn.api import load
from emhrnn.cores import set_threads
from emhrnn.drift import Watch
from emhrnn.errors import ConfigError, DataError
from emhrnn.serve import corpus, document, feedback, pages
from emhrnn.serve.api import api, kserve
from emhrnn.serve.connections import bound_connections
from emhrnn.serve.document import Readings
from emhrnn.serve.engine import ServedRun, ServerState, state_of
from emhrnn.serve.guard import FAULT, OPEN, App, Guard, Token, for_people, refusal
from emhrnn.serve.jobs import Jobs
from emhrnn.serve.limits import RefusedError, ServerLimits
from emhrnn.serve.metrics import DriftCollector, Metrics
from emhrnn.training.pack import beside
from emhrnn.training.run import read_description
from emhrnn.version import __version__

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
TOKEN_LETTERS = 8
DRAIN_SECONDS = 30
DESCRIPTORS = 64  # the least: with fewer, asyncio fails somewhere
WINDOW = 1000  # recent documents that drift is measured on: between so many and twice as many
SEND = 'send {"text": "..."} or {"texts": [...]}'
UNREADABLE: dict[type[BaseException], str] = {  # what is wrong with a body that the framework gave up on
    UnicodeDecodeError: f"is not UTF-8; {SEND} in UTF-8",
    RecursionError: f"is nested too deeply; {SEND}",
    ValueError: f"has a number with too many digits; {SEND}",
}


def serve(
    runs: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    data: Path | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Until Ctrl-C or SIGTERM; requests that have arrived are answered first."""
    set_threads(1)  # one document at a time is too small for more
    limits = ServerLimits()
    app = application(runs, host=host, token=token, data=data, limits=limits)
    gc.freeze()  # what is loaded by now stays: looking through it for garbage would stop everything for half a second
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", access_log=False, server_header=False, ws="none",
        timeout_keep_alive=15, timeout_graceful_shutdown=DRAIN_SECONDS,
    )  # fmt: skip
    with _listening(host, port) as listener:
        address = f"[{host}]" if ":" in host else host
        say(f"http://{address}:{listener.getsockname()[1]}  (Ctrl-C stops it)")
        server = uvicorn.Server(bound_connections(config, limits))
        with suppress(KeyboardInterrupt, SystemExit):  # uvicorn passes the signal on when it has drained
            server.run(sockets=[listener])
        if not server.started:
            raise ConfigError("the server did not start; its log says why")


def _listening(host: str, port: int) -> socket.socket:
    """Bind before anything is printed, so that the error of a port in use is one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise ConfigError(f"cannot listen at {host}:{port} ({error.strerror}); give another --port or --host") from None


def application(
    runs: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    data: Path | None = None,
    limits: ServerLimits | None = None,
) -> App:
    """The ASGI application, for a server of your own.

    Raises:
        EmhrnnError: a run cannot be loaded, or the host would be open to everybody.
    """
    check(runs, host, token, data)
    limits, metrics, served = limits or ServerLimits(), Metrics(), list[ServedRun]()
    for name, folder in zip(_names(runs), runs, strict=True):
        model = load(folder)
        watch = Watch(model.run, read_description(folder), window=WINDOW)
        served.append(ServedRun(name, folder, model, limits, metrics, watch))
    metrics.registry.register(DriftCollector({run.name: run.watch for run in reversed(served) if run.watch}))
    metrics.waiting.set_function(lambda: sum(run.waiting for run in served))
    secret = None if token is None else Token(token, limits.wrong_tokens)
    app = _routes(ServerState(tuple(served), limits, data, secret, metrics))
    hosts = LOOPBACK | {host} if is_loopback(host) else None
    return Guard(app, limits=limits, metrics=metrics, hosts=hosts, token=secret)


def check(runs: Sequence[Path], host: str, token: str | None, data: Path | None) -> None:
    """Raise for what cannot be served, before a model is loaded."""
    if not 1 <= len(runs) <= 2:
        raise ConfigError(f"{len(runs)} runs were given; give one, or two to compare")
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines; give --token T (or EMHRNN_TOKEN), or stay with 127.0.0.1"
        )
    if token is not None and len(token) < TOKEN_LETTERS:
        raise ConfigError(f"a token of {len(token)} letters is soon guessed; give at least {TOKEN_LETTERS}")
    if data is not None and not data.is_dir():
        raise DataError(f"{data} is not a folder; give the folder whose files the corpus page may open")
    if os.name != "nt":
        import resource

        if (files := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < DESCRIPTORS:
            raise ConfigError(f"only {files} files and connections may be open; raise the limit: ulimit -n 1024")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _names(runs: Sequence[Path]) -> list[str]:
    """Of the folders, with as many of those above them as tell them apart."""
    parts = [beside(folder, "").parts for folder in runs]
    depth = 1
    while len({part[-depth:] for part in parts}) < len(set(parts)):
        depth += 1
    return [str(Path(*part[-depth:])) for part in parts]


def _routes(state: ServerState) -> FastAPI:
    app = FastAPI(
        title="emhrnn", version=__version__, docs_url=None, redoc_url=None, lifespan=_lifespan,
        description="Document classification that shows which sentence, which phrase and which word decided.",
    )  # fmt: skip
    app.state.emhrnn = state
    app.state.jobs = Jobs(state.runs, state.limits)
    app.state.readings = Readings()
    for router in (api, kserve, document.pages, corpus.pages, feedback.pages, pages.pages):
        app.include_router(router)
    app.openapi = partial(_openapi, app)  # type: ignore[method-assign]
    app.add_api_route("/metrics", _metrics, include_in_schema=False)
    app.add_exception_handler(RefusedError, _refused)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _invalid)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _fault)
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The description, with how to send the token; that is not asked for where there is none."""
    if not app.openapi_schema:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        if app.state.emhrnn.token is not None:
            schema["security"] = [{"token": []}]
            for path in OPEN:
                for operation in schema["paths"].get(path, {}).values():
                    operation["security"] = []
        app.openapi_schema = schema
    return app.openapi_schema


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: ServerState = app.state.emhrnn
    with _uploads() as app.state.uploads:
        for run in state.runs:
            run.start()
        try:
            yield
        finally:
            app.state.jobs.stop()
            for run in state.runs:
                run.stop()


@contextmanager
def _uploads() -> Iterator[Path]:
    """A folder for uploaded files, gone at the end. What servers left that were killed goes now: their lock is free."""
    root = Path(tempfile.gettempdir())
    for path in root.glob("emhrnn-uploads-*.lock"):
        with suppress(OSError, Timeout):  # of somebody else, or in use
            if not hasattr(os, "getuid") or path.lstat().st_uid == os.getuid():
                with FileLock(path, timeout=0):
                    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                    path.unlink()
    lock = FileLock(root / f"emhrnn-uploads-{secrets.token_hex(8)}.lock")
    folder = Path(lock.lock_file).with_suffix("")
    with lock:
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            Path(lock.lock_file).unlink(missing_ok=True)


async def _metrics(request: Request) -> Response:
    return Response(generate_latest(state_of(request).metrics.registry), media_type=CONTENT_TYPE_LATEST)


# ---------------------------------------------------------------------- errors, as a page or as JSON


async def _refused(request: Request, refused: RefusedError) -> Response:
    if for_people(request.url.path, request.headers.get("accept", "")):
        return pages.rendered(
            request, "refused.html", status=refused.status, code=refused.status, reason=refused.reason
        )
    return refusal(refused, request.scope["request_id"])


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return await _refused(request, RefusedError(400, f"the body is not JSON; {SEND}"))
    if first["loc"] == ("body",) and first["type"] != "value_error":
        return await _refused(request, RefusedError(422, _no_object(request, error.body)))
    place = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    told = f"{place}: {first['msg'].removeprefix('Value error, ')}"
    if first["type"] == "extra_forbidden":
        told = f"{place} is not a field of this request; /docs lists what it takes"
    return await _refused(request, RefusedError(422, told))


def _no_object(request: Request, body: object) -> str:
    if not isinstance(body, bytes):
        return f"the body is not a JSON object; {SEND}"
    given = request.headers.get("content-type")
    came = f"came as {given}" if given else "came without a content type"
    return f"the body {came}; send it with `Content-Type: application/json`"


async def _http(request: Request, error: HTTPException) -> Response:
    kinds = (told for kind, told in UNREADABLE.items() if isinstance(error.__cause__, kind))
    reason = {
        400: f"the body {next(kinds, f'cannot be read; {SEND}')}",
        404: "there is no such page; / is the first one, /docs lists the API",
        405: "not with this method; see /docs",
    }
    answer = await _refused(request, RefusedError(error.status_code, reason.get(error.status_code, str(error.detail))))
    if error.status_code == 405:
        answer.headers["allow"] = ", ".join(_allowed(request))
    return answer


def _allowed(request: Request) -> list[str]:
    """Of all routes with this path; the framework tells those of the first."""

    def takes(method: str) -> bool:
        asked = {"type": "http", "path": request.scope["path"], "method": method, "headers": []}
        return any(route.matches(asked)[0] is Match.FULL for route in request.app.routes)

    return (["GET", "HEAD"] if takes("GET") else []) + (["POST"] if takes("POST") else [])


async def _fault(request: Request, _: Exception) -> Response:
    return await _refused(request, RefusedError(500, FAULT))
