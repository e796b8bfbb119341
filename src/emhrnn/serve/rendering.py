"""A page from its template, and a form from its request."""

from functools import cache
from typing import Any
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from emhrnn.explain import svg
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.headline import balance
from emhrnn.explain.html import decisive_path, paragraph, speaking, tint
from emhrnn.explain.page import percent, signed
from emhrnn.serve.limits import RefusedError
from emhrnn.serve.state import state_of


@cache
def templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("emhrnn.serve"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        shown=lambda text: Markup(escape(without_breaks(str(text)))),
        percent=percent,
        signed=signed,
        drawn=svg.drawn,
        decisive_path=lambda explanation: Markup(decisive_path(explanation)),
        speaking=lambda explanation: Markup(speaking(explanation)),
        balance=lambda explanation: Markup(paragraph(balance(explanation))),
        markup=Markup,
        tint=tint,
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
