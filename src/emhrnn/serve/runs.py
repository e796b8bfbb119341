"""The page of the runs that are served: scores, history in shared charts, model cards and settings."""

import re
from collections.abc import Iterator
from itertools import groupby

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from emhrnn.errors import EmhrnnError
from emhrnn.explain.curves import history_charts
from emhrnn.explain.escape import escape
from emhrnn.explain.page import percent
from emhrnn.serve.engine import ServedRun, state_of
from emhrnn.serve.pages import rendered
from emhrnn.training.progress import Epoch, read_history
from emhrnn.training.run import CARD, HISTORY, read_metrics

pages = APIRouter(include_in_schema=False)


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
            "card": _card(run),
        }
        for run in served
    ]
    histories = {run.name: epochs for run in served if (epochs := _history(run))}
    return rendered(request, "runs.html", runs=shown, charts=Markup(history_charts(histories)) if histories else "")


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


def _card(run: ServedRun) -> Markup:
    card = run.folder / CARD
    return markdown(card.read_text(encoding="utf-8", errors="replace")) if card.is_file() else Markup("")


def _history(run: ServedRun) -> list[Epoch]:
    try:
        return read_history(run.folder / HISTORY)
    except EmhrnnError:  # a run may be copied without its history
        return []


# ---------------------------------------------------------------------- the card


def markdown(text: str) -> Markup:
    """What model cards are written in: headings, paragraphs, lists, tables and code. All else is shown as it is."""
    return Markup("\n".join(_blocks(text)))


def _blocks(text: str) -> Iterator[str]:
    for number, part in enumerate(text.split("```")):
        if number % 2:  # between fences
            yield f'<pre tabindex="0">{escape(part.strip())}</pre>'
            continue
        for kind, some in groupby(part.splitlines(), key=_kind):
            lines = list(some)
            if kind == "#":
                yield from (f"<h3>{_inline(line.lstrip('# '))}</h3>" for line in lines)
            elif kind == "-":
                yield "<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>"
            elif kind == "|":
                yield _table(lines)
            elif kind:
                yield f"<p>{_inline(' '.join(lines))}</p>"


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    return line[0] if line.startswith(("#", "- ", "|")) else "p"


def _table(lines: list[str]) -> str:
    head, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    rows = [row for row in rows if not all(re.fullmatch(r":?-+:?", cell) for cell in row)]
    body = "".join(
        "<tr>"
        + f'<th scope="row">{_inline(row[0])}</th>'
        + "".join(f"<td>{_inline(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    names = "".join(f'<th scope="col">{_inline(cell)}</th>' for cell in head)
    table = f'<table class="scores"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
