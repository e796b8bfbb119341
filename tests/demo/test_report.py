"""The page of the demo: complete, safe and readable on a phone."""

import dataclasses
import json
from pathlib import Path

import pytest

from emhrnn.demo import (
    MAJORITY,
    OURS,
    TFIDF,
    DemoReport,
    NextStep,
    ScoreRow,
    duration,
    render_html,
)
from emhrnn.evaluation.scores import BoundaryAgreement, PhraseLengths
from emhrnn.training.progress import Epoch

from ..explain.browser import chromium, screenshots, violations
from ..explain.documents import HOSTILE, explained
from ..explain.parsed import ELEMENTS, Page

CHARTS = "h3 section dl div dt dd small figure figcaption polyline line circle text pre footer br"
REPORT_ELEMENTS = set(CHARTS.split())

REPORT = DemoReport(
    rows=[ScoreRow(MAJORITY, 0.21, 0.07), ScoreRow(TFIDF, 0.62, 0.61, "words and pairs"), ScoreRow(OURS, 0.79, 0.78)],
    classes=["1 star", "2 stars", "3 stars"],
    confusion=[[80, 15, 5], [10, 70, 20], [0, 9, 91]],
    history=[
        Epoch(n, "train", 1.6 / (n + 1), 0.1, {"loss": 1.7 / (n + 1), "accuracy": 1 - 0.8 / (n + 1)}, 1.0, 1.0, 0.0)
        for n in range(10)
    ],
    phrases=PhraseLengths(100, 3.9, 1, 5, [10, 20, 40, 20, 10]),
    true_phrases=PhraseLengths(100, 3.5, 1, 4, [10, 30, 40, 20]),
    boundaries=BoundaryAgreement(100.0, 100, 65.0),
    chance_boundaries=BoundaryAgreement(100.0, 100, 24.0),
    explanations=[explained(seed=seed) for seed in range(3)],
    documents={"train": 8000, "valid": 800, "test": 1000},
    seconds=104.3,
    versions={"emhrnn": "0.1.0"},
    next_steps=[NextStep("Your own words.", "emhrnn explain demo/run 'Not bad at all.' --html why.html")],
)


def test_the_headline_numbers_come_first_in_json() -> None:
    data = json.loads(json.dumps(REPORT.to_dict()))
    headline = {
        name: data[name] for name in ("accuracy", "tfidf_accuracy", "majority_accuracy", "phrase_f1", "seconds")
    }
    assert headline == {
        "accuracy": 0.79,
        "tfidf_accuracy": 0.62,
        "majority_accuracy": 0.21,
        "phrase_f1": 0.65,
        "seconds": 104.3,
    }
    assert len(data["explanations"]) == 3


def test_the_page_shows_all_of_it() -> None:
    html = render_html(REPORT)
    page = Page(html)
    assert page.elements <= ELEMENTS | REPORT_ELEMENTS
    for shown in ("79.0%", "62.0%", "21.0%", "0.65", "1 min 44 s", "emhrnn explain demo/run", "emhrnn 0.1.0", "+17.0"):
        assert shown in page.text
    assert html.count('role="img"') == 3
    assert html.count("<article") == 3


def test_one_epoch_is_a_point() -> None:
    html = render_html(dataclasses.replace(REPORT, history=REPORT.history[:1]))
    assert "79.0%" in Page(html).text
    assert html.count('role="img"') == 3


def test_hostile_names_are_inert() -> None:
    classes = [HOSTILE, "<script>", '" onload="x']
    rows = [dataclasses.replace(row, note=HOSTILE) for row in REPORT.rows]
    html = render_html(dataclasses.replace(REPORT, classes=classes, rows=rows, versions={"<b>": HOSTILE}))
    assert "script" not in Page(html).elements
    html.encode("utf-8")


@pytest.mark.parametrize(("seconds", "shown"), [(4.2, "4 s"), (59.7, "1 min 00 s"), (104.3, "1 min 44 s")])
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_the_report_fits_the_screen_and_everybody_can_read_it(tmp_path: Path, width: int) -> None:
    path = tmp_path / "report.html"
    path.write_text(render_html(REPORT), encoding="utf-8")
    complaints: list[str] = []
    with chromium() as browser:
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            page.on("console", lambda message: complaints.append(message.text))
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert violations(page) == []
            page.screenshot(path=screenshots() / f"report-{scheme}-{width}.png", full_page=True)
    assert complaints == []
