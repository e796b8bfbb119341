"""The page of the runs that are served: scores, history in shared charts, model cards and settings."""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markdown_it import MarkdownIt
from markupsafe import Markup

from emhrnn.errors import EmhrnnError
from emhrnn.explain.curves import history_charts
from emhrnn.explain.escape import visible
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
