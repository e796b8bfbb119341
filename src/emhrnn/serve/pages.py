"""What all pages share, and the small ones: sign-in, the runs, the reference of the API, and files that pages ask for.
Each page is whole without script, but for sending a file; the script only replaces the part that changed."""

import json
import shlex
import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from emhrnn.errors import EmhrnnError
from emhrnn.explain import charts, verdict
from emhrnn.explain.escape import escape, visible, without_breaks
from emhrnn.explain.explanation import joined
from emhrnn.explain.page import percent, stylesheet
from emhrnn.serve.engine import ServedRun, state_of
from emhrnn.serve.guard import COOKIE, SESSION_SECONDS, cookies
from emhrnn.serve.limits import RefusedError
from emhrnn.training.progress import Epoch, read_history
from emhrnn.training.run import CARD, HISTORY, read_metrics

pages = APIRouter(include_in_schema=False)


@cache
def templates() -> Environment:
    """With escaping, and the filters that draw parts of explanations."""
    environment = Environment(
        loader=PackageLoader("emhrnn.serve"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        shown=lambda text: Markup(escape(without_breaks(str(text)))),
        percent=percent,
        labels=lambda labels: Markup(escape(joined(labels))),
        bar=lambda value, kind="weight": Markup(charts.bar(value, kind)),
    )
    parts = (verdict.verdict, verdict.said, verdict.because, verdict.weights, verdict.warnings)
    environment.globals.update({part.__name__: _markup(part) for part in parts}, classes=_markup(verdict.class_tables))
    return environment


def _markup(part: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *values: Markup(part(*values))


def rendered(request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The template of this name as a page."""
    state = state_of(request)
    signed = state.token is None or "who" in request.scope  # names of runs are for those who signed in
    page = (
        templates()
        .get_template(name)
        .render(served=state.runs, path=request.url.path, guarded=state.token is not None, signed=signed, **values)
    )
    return HTMLResponse(page, status_code=status, headers={"cache-control": "no-store"})


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form that was sent. Raises a RefusedError (422) for too many of them."""
    body = (await request.body()).decode("utf-8", errors="replace")
    try:
        return {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True, max_num_fields=50).items()}
    except ValueError:
        raise RefusedError(422, "the form has too many fields") from None


# ---------------------------------------------------------------------- sign-in


@pages.get("/login")
async def login_page(request: Request) -> Response:
    """Asks for the token."""
    return _login(request)


@pages.post("/login")
async def login(request: Request, next: str = "/") -> Response:
    """Keeps a session in a cookie, then goes to where the person wanted to go."""
    token = state_of(request).token
    form = await form_of(request)
    try:
        if token is None:
            raise RefusedError(401, "the server was started without a token; there is nothing to sign in to")
        token.check(request.scope, form.get("token", ""))
    except RefusedError as refusal:
        return _login(request, refusal)
    local = next.startswith("/") and not next.startswith(("//", "/\\"))
    response = RedirectResponse(next if local else "/", status_code=303)
    session = token.session(int(time.time()) + SESSION_SECONDS, form.get("who", "").strip())
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, session, max_age=SESSION_SECONDS, httponly=True, samesite="strict", secure=secure)
    return response


def _login(request: Request, refusal: RefusedError | None = None) -> Response:
    address = f"{request.url.path}?{request.url.query}".rstrip("?")
    trouble, status = ("", 200) if refusal is None else (refusal.reason, refusal.status)
    return rendered(request, "login.html", status=status, trouble=trouble, address=address)


@pages.post("/logout")
async def logout(request: Request) -> Response:
    """Ends the session, in the browser and here."""
    token = state_of(request).token
    for cookie in cookies(dict(request.headers)):
        if token is not None:
            token.end(cookie)
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


# ---------------------------------------------------------------------- reference of the API


@pages.get("/docs")
async def docs(request: Request) -> Response:
    """What OpenAPI says, laid out here, since its usual pages load scripts."""
    schema, base = request.app.openapi(), str(request.base_url).rstrip("/")
    guarded = state_of(request).token is not None
    operations = [
        {
            "method": method.upper(),
            "path": path,
            "tries": path == "/v1/predict",
            "summary": told.get("summary", ""),
            "takes": _schema_name(_json_schema(told.get("requestBody", {}))),
            "gives": _schema_name(_json_schema(told["responses"]["200"])),
            "answers": {code: answer["description"] for code, answer in told["responses"].items()},
            "calls": _calls(method, base + path, _example(schema, _json_schema(told.get("requestBody", {}))), guarded),
        }
        for path, methods in schema["paths"].items()
        for method, told in methods.items()
    ]
    return rendered(request, "docs.html", operations=operations, schemas=schema["components"]["schemas"])


def _json_schema(body: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = body.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _schema_name(schema: dict[str, Any]) -> str:
    if "items" in schema:
        return f"list of {_schema_name(schema['items'])}"
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _example(schema: dict[str, Any], body: dict[str, Any]) -> Any:
    if not body:
        return None
    return schema["components"]["schemas"][_schema_name(body)].get("examples", [{"text": "Not bad at all."}])[0]


def _calls(method: str, address: str, body: Any, guarded: bool) -> dict[str, str]:
    """The call in a shell, in Python and in JavaScript."""
    headers = {"authorization": "Bearer TOKEN"} if guarded else {}
    headers |= {"content-type": "application/json"} if body else {}
    sent = json.dumps(body)
    curl = ["curl", *(["-X POST"] if body else []), shlex.quote(address)]
    curl += [f"-H '{name}: {value}'" for name, value in headers.items()]
    curl += [f"\\\n  -d {shlex.quote(sent)}"] if body else []
    data = f"json.dumps({body!r}).encode()" if body else None
    options = {"method": method.upper(), "headers": headers} | ({"body": sent} if body else {})
    return {
        "shell": " ".join(curl),
        "Python": f"import json, urllib.request\n\nrequest = urllib.request.Request({address!r}, {data}, {headers!r})\n"
        "print(json.load(urllib.request.urlopen(request)))",
        "JavaScript": f"const answer = await fetch({json.dumps(address)}, {json.dumps(options)});\n"
        "console.log(await answer.json());",
    }


# ---------------------------------------------------------------------- files

STATIC = {"viewer.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}


@pages.get("/static/{name}")
async def static(name: str) -> Response:
    """Script and styles."""
    if name not in STATIC:
        raise RefusedError(404, "no such file")
    return Response(_static(name), media_type=STATIC[name], headers={"cache-control": "no-cache"})


@cache
def _static(name: str) -> str:
    if name == "page.css":  # that of every page we write
        return stylesheet()
    return files("emhrnn.serve").joinpath("static", name).read_text(encoding="utf-8")


# ---------------------------------------------------------------------- the runs that are served


@pages.get("/runs")
async def runs(request: Request) -> Response:
    """Scores, history, model card and settings."""
    served = state_of(request).runs
    shown = [
        {
            "name": run.name,
            "model": run.model.run.config.model.name,
            "settings": run.model.run.config.read_settings(),
            "scores": _scores(run),
            "card": markdown(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else "",
        }
        for run, card in ((run, run.folder / CARD) for run in served)
    ]
    histories = {run.name: epochs for run in served if (epochs := _history(run))}
    return rendered(
        request, "runs.html", runs=shown, charts=Markup(charts.history_charts(histories)) if histories else ""
    )


def _scores(run: ServedRun) -> dict[str, str]:
    """On the validation data; empty where the run folder was copied without them."""
    try:
        valid = (read_metrics(run.folder) or {})["valid"]
        return {
            "accuracy": percent(valid["accuracy"]),
            "macro-F1": percent(valid["macro_f1"]),
            "calibration error": percent(valid["ece"]),
        }
    except (EmhrnnError, KeyError, TypeError):
        return {}


def _history(run: ServedRun) -> list[Epoch]:
    try:
        return read_history(run.folder / HISTORY)
    except EmhrnnError:  # a run may be copied without its history
        return []


def markdown(text: str) -> Markup:
    """A model card as HTML, its headings below those of the page. HTML in it is text, links and images are not made."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink"])
    tokens = reader.parse("\n".join(map(visible, text.splitlines())))
    for token in tokens:
        if token.type.startswith("heading"):
            token.tag = "h3"
        elif token.type == "table_open":
            token.attrSet("class", "scores")
        elif token.type == "th_open":
            token.attrSet("scope", "col")
    drawn = reader.renderer.render(tokens, reader.options, {})
    for kind in ("table", "pre"):  # that may be wider than the page
        drawn = drawn.replace(f"<{kind}", f'<div class="scroll" tabindex="0"><{kind}').replace(
            f"</{kind}>", f"</{kind}></div>"
        )
    return Markup(drawn)
