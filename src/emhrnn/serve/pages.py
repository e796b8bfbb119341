"""The pages. Each is whole without script, but for sending a file; the script only replaces the part that changed.

reading_pages.py    one text: Read, What if, Compare
corpus_pages.py     a file of documents
here                runs, sign-in, and the files that pages ask for
"""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from emhrnn.explain.page import stylesheet
from emhrnn.serve import corpus_pages, reading_pages
from emhrnn.serve.guard import COOKIE, same, session_of
from emhrnn.serve.limits import RefusedError
from emhrnn.serve.rendering import form_of, rendered
from emhrnn.serve.runs import RunPage, run_page
from emhrnn.serve.state import State, state_of

pages = APIRouter(include_in_schema=False)
pages.include_router(reading_pages.pages)
pages.include_router(corpus_pages.pages)


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
    return files("emhrnn.serve").joinpath("static", name).read_text(encoding="utf-8")
