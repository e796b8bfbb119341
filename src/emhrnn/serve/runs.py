"""What the runs page shows of a run folder: its history, its card, its settings."""

from dataclasses import dataclass

from markupsafe import Markup

from emhrnn.errors import EmhrnnError
from emhrnn.explain.svg import Line, line_chart
from emhrnn.serve.state import Served
from emhrnn.training import history
from emhrnn.training.reads import read_settings
from emhrnn.training.run import HISTORY

CARD = "card.md"


@dataclass(frozen=True)
class Chart:
    title: str
    caption: str
    drawing: Markup


@dataclass(frozen=True)
class RunPage:
    name: str
    model: str
    settings: dict[str, dict[str, str]]  # by section
    charts: list[Chart]
    card: str  # Markdown; empty where there is none


def run_page(served: Served) -> RunPage:
    config = served.model.run.config
    read = read_settings(config)
    settings = {section: {name: str(value) for name, value in values.items()} for section, values in read.items()}
    card = served.folder / CARD
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    return RunPage(served.name, config.model.name, settings, _charts(served), text)


def _charts(served: Served) -> list[Chart]:
    try:
        epochs = history.read(served.folder / HISTORY)
    except EmhrnnError:  # a run may be copied without its history
        return []
    if not epochs:
        return []
    number = [epoch.epoch + 1 for epoch in epochs]
    charts = [
        Chart(
            "Accuracy",
            "on the validation data, by epoch",
            _lines(
                [Line("accuracy", list(zip(number, (e.valid["accuracy"] for e in epochs), strict=True)))], "accuracy"
            ),
        ),
        Chart(
            "Loss",
            "per document; solid: validation, dashed: training",
            _lines(
                [
                    Line("validation", list(zip(number, (e.valid["loss"] for e in epochs), strict=True))),
                    Line("training", list(zip(number, (e.train_loss for e in epochs), strict=True))),
                ],
                "loss",
                show=lambda value: f"{value:.2f}",
            ),
        ),
    ]
    rates = [(e.epoch + 1, e.boundaries["boundary_rate"]) for e in epochs if "boundary_rate" in e.boundaries]
    if rates:
        drawing = _lines([Line("", rates)], "boundary rate", references=[("none", 0.0)])  # the axis from zero
        charts.append(Chart("Boundaries", "share of free positions that end a phrase", drawing))
    return charts


def _lines(lines: list[Line], label: str, **how: object) -> Markup:
    return Markup(line_chart(lines, label=f"{label} by epoch", x_name="epoch", **how))  # type: ignore[arg-type]
