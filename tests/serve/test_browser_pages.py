"""The other pages in a real browser: Compare, Corpus, Feedback, Runs and API, at every width and in the dark."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from emhrnn.api import train
from emhrnn.serve.app import application
from emhrnn.training.pack import located
from tests.behaviour.commands import GOOD, write_rows
from tests.explain.browser import screenshots, violations
from tests.serve.conftest import in_sight, read, running

PAGES = ("/", "/compare", "/corpus", "/feedback", "/runs", "/docs", "/login")


def test_people_without_a_session_sign_in(browser: Any, made: Path) -> None:
    with running(application([made / "run"], token="correct horse battery")) as base:
        page = browser.new_page(base_url=base)
        page.goto("/corpus")
        assert page.url == f"{base}/login?next=/corpus"
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open the viewer").click()
        assert page.get_by_role("alert").is_visible()
        page.get_by_label("Token").fill("correct horse battery")
        page.get_by_role("button", name="Open the viewer").click()
        assert page.url == f"{base}/corpus"
        page.get_by_role("button", name="Sign out").click()
        page.goto("/runs")
        assert page.url == f"{base}/login?next=/runs"
        page.close()


def test_comparing(page: Any) -> None:
    """The text comes along from Read."""
    read(page, GOOD)
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector(".pair")
    assert page.locator(".pair section").count() == 2
    assert "They agree" in page.locator(".agreement").inner_text()
    page.screenshot(path=screenshots() / "compare.png", full_page=True)


def test_a_file_from_upload_to_one_document(page: Any, data: Path) -> None:
    page.goto("/corpus")
    page.get_by_label("File").first.set_input_files(data / "below" / "more.jsonl")
    page.get_by_role("button", name="Classify it").first.click()
    page.wait_for_selector("table.rows")
    page.wait_for_selector("[data-watch]", state="detached")
    page.screenshot(path=screenshots() / "corpus.png", full_page=True)
    page.locator(".confusion a").first.click()
    page.wait_for_selector("text=Show all")
    page.locator("table.rows a").first.click()
    page.wait_for_selector(".reading")
    assert "labelled" in page.locator(".reading .prediction").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_every_page_fits_the_screen(browser: Any, address: str, width: int, scheme: str) -> None:
    context = browser.new_context(base_url=address, viewport={"width": width, "height": 850}, color_scheme=scheme)
    page = context.new_page()
    for path in PAGES:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.screenshot(path=screenshots() / f"{path.strip('/') or 'first'}-{scheme}-{width}.png", full_page=True)
    read(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=screenshots() / f"read-{scheme}-{width}.png", full_page=True)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_violation(browser: Any, made: Path, data: Path, tmp_path: Path, scheme: str) -> None:
    """Of any weight, in every state of every page."""
    run = copytree(made / "run", tmp_path / "mine")
    (tmp_path / "mine.feedback.jsonl").write_text('{"text": "Good soup.", "label": "good", "spans": [[0, 4]]}\n')
    with running(application([run, made / "run"], data=data)) as base:
        context = browser.new_context(base_url=base, color_scheme=scheme)
        page = context.new_page()

        def check(what: str) -> None:
            assert violations(page) == [], what

        for path in PAGES:
            page.goto(path)
            page.evaluate("for (const details of document.querySelectorAll('main details')) details.open = true")
            check(path)
        read(page)
        check("reading")
        page.locator(".phrase[data-k]").first.click()
        page.wait_for_selector(".box table.words")
        check("a phrase")
        page.get_by_role("button", name="Remove").click()
        page.wait_for_selector(".without")
        check("before and after")
        page.get_by_text("Edit", exact=True).click()
        page.get_by_label("Your document").fill("Another text.")
        check("out of date")
        page.get_by_role("link", name="Compare").click()
        page.wait_for_selector(".pair")
        check("comparison")
        page.goto("/corpus")
        page.locator("#name").select_option("reviews.csv")
        page.get_by_role("button", name="Classify it").last.click()
        page.wait_for_selector("table.rows")
        page.wait_for_selector("[data-watch]", state="detached")
        check("a file")
        page.locator("table.rows a").first.click()
        page.wait_for_selector(".verdict-card")
        check("a row of a file")
        page.goto("/nowhere")
        check("a refusal")
        context.close()


def test_correcting_a_label_and_marking_a_phrase(browser: Any, made: Path, tmp_path: Path) -> None:
    run = copytree(made / "run", tmp_path / "mine")
    with running(application([run])) as base:
        page = browser.new_page(base_url=base)
        read(page, "\U0001f600 " + GOOD)
        page.locator(".phrase[data-k]").nth(1).click()
        page.get_by_role("button", name="Should decide").click()
        page.get_by_label("Right label").select_option("bad")
        page.screenshot(path=screenshots() / "feedback-read.png")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="All corrections").click()
        page.wait_for_selector("table.rows")
        page.screenshot(path=screenshots() / "feedback.png")
        (entry,) = map(json.loads, (tmp_path / "mine.feedback.jsonl").read_text(encoding="utf-8").splitlines())
        ((start, end),) = entry["spans"]
        assert entry["label"] == "bad"
        assert entry["text"][start:end] in page.locator("mark").inner_text()  # characters, as Python counts them
        page.close()


@pytest.fixture(scope="module")
def pair(browser: Any, made: Path) -> Iterator[Any]:
    """A page on two runs of other classes: the model of the package, and one that has learned almost nothing."""
    with running(application([located(Path("demo")), made / "run"])) as base:
        context = browser.new_context(base_url=base, viewport={"width": 1280, "height": 800})
        yield context.new_page()
        context.close()


def test_disagreement_comes_first_and_both_have_one_scale(pair: Any) -> None:
    pair.goto("/")
    pair.get_by_label("Your document").fill(f"{GOOD} The staff were kind and the breakfast was wonderful.")
    pair.get_by_role("button", name="Read it").click()
    pair.wait_for_selector("#reading[aria-busy=false] .reading")
    pair.get_by_role("link", name="Compare").click()
    pair.wait_for_selector(".pair")
    labels = pair.locator(".pair .said .prediction").all_inner_texts()
    assert f"They disagree: {labels[0]} against {labels[1]}." == pair.locator(".agreement").inner_text()
    assert in_sight(pair, ".agreement")
    tints = [
        {int(step) for kinds in side.locator(".phrase[data-k]").evaluate_all(CLASSES) for step in TINT.findall(kinds)}
        for side in pair.locator(".pair section").all()
    ]
    assert max(tints[0]) == 5  # of the run that is sure
    assert max(tints[1], default=0) < 3
    assert pair.locator(".sentences .only").count() > 0  # phrases that one of them has
    pair.screenshot(path=screenshots() / "disagree.png", full_page=True)


CLASSES = "some => some.map(one => one.className)"
TINT = re.compile(r"\b[fa](\d)\b")


def test_histories_of_two_runs_in_one_chart_with_clean_axes(pair: Any) -> None:
    pair.goto("/runs")
    charts = pair.locator("figure svg")
    assert [chart.locator("polyline").count() for chart in charts.all()][:2] == [2, 2]
    for chart in charts.all():
        boxes = chart.evaluate(
            "one => [...one.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect().toJSON()])"
        )
        for (name, one), (other, two) in combinations(boxes, 2):
            apart = one["right"] <= two["left"] or two["right"] <= one["left"]
            assert apart or one["bottom"] <= two["top"] + 3 or two["bottom"] <= one["top"] + 3, (name, other)
    pair.get_by_text("Model card").first.click()
    assert pair.locator(".model-card h3").first.is_visible()


def test_the_reference_can_be_tried_and_its_scripts_run(demo: Any) -> None:
    demo.goto("/docs")
    demo.get_by_label("Try it").fill("Cold soup.")
    demo.keyboard.press("Enter")
    demo.wait_for_selector("pre[role=status]:has-text('probabilities')")
    assert demo.locator("pre[role=status]").inner_text().startswith("200\n")
    printed: list[Any] = []
    samples = [text for text in demo.locator("details pre").all_text_contents() if "await fetch" in text]
    (run,) = demo.evaluate("async () => (await fetch('/v1/model')).json()")
    for sample in samples:
        with demo.expect_console_message() as told:
            demo.evaluate(f"(async () => {{ {sample.replace('{name}', run['name'])} }})()")
        printed.append(told.value.args[0].json_value())
    assert len(printed) == len(samples) == 9
    assert not [answer for answer in printed if "error" in answer]


NAMES = ("Credit reporting or other personal consumer reports", "Debt collection", "Mortgage", "Student loan",
         "Checking or savings account", "Money transfer, virtual currency, or money service", "Vehicle loan or lease",
         "Payday loan, title loan, personal loan, or advance loan")  # fmt: skip


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with complaints.csv and a run of as many classes, with long names."""
    folder = tmp_path_factory.mktemp("complaints")
    words = ("report", "collector", "house", "college", "bank", "coin", "car", "payday")
    rows = [(f"They lost my {words[n % 8]} {n}.", NAMES[0 if n % 7 == 3 else n % 8]) for n in range(48)]
    write_rows(folder / "complaints.csv", rows)
    train(folder / "complaints.csv", folder / "run", settings={"model.name": "tfidf-lr"}, progress=False)
    return folder


@pytest.mark.parametrize("width", [390, 1280])
def test_a_confusion_matrix_of_long_names_leads_to_its_rows(browser: Any, complaints: Path, width: int) -> None:
    with running(application([complaints / "run"], data=complaints)) as base:
        context = browser.new_context(base_url=base, viewport={"width": width, "height": 844})
        page = context.new_page()
        page.goto("/corpus")
        page.locator("#name").select_option("complaints.csv")
        page.get_by_role("button", name="Classify it").last.click()
        page.wait_for_selector("table.rows")
        page.wait_for_selector("[data-watch]", state="detached")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "Classified by run" in page.locator("main").inner_text()
        for name in page.locator(".confusion thead span").all():  # upright, and told in full
            assert name.bounding_box()["height"] > 2 * name.bounding_box()["width"]
        assert set(page.locator(".confusion thead span").evaluate_all("some => some.map(s => s.title)")) == set(NAMES)
        page.screenshot(path=screenshots() / f"confusion-{width}.png")
        wrong = page.locator("tr.missed")
        assert wrong.first.evaluate("one => getComputedStyle(one).boxShadow") != "none"
        assert "\u2717" in wrong.first.inner_text()
        count = page.locator(".confusion td:not(.c5) a").first
        many = int(count.inner_text())
        count.click()
        page.wait_for_selector("text=Show all")
        assert page.locator("table.rows tbody tr").count() == many
        assert in_sight(page, "table.rows tbody tr")
        page.get_by_label("Order").select_option("file")
        page.get_by_label("Search").fill("LOST MY")
        page.keyboard.press("Enter")
        page.wait_for_selector("p q:text('LOST MY')")
        page.get_by_text("Show all").click()
        page.locator("table.rows a").nth(1).click()
        for told in ("Next", "Previous", "Previous"):
            before = page.url
            page.get_by_role("link", name=told).click()
            assert page.url != before
        assert page.get_by_role("link", name="Previous").count() == 0  # it is the first row
        context.close()


def tab_to(page: Any, selector: str) -> None:
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the Tab key does not reach {selector}")


def test_a_file_by_keyboard(page: Any) -> None:
    """From choosing it to one of its documents, to the label and back to the API."""
    page.goto("/corpus")
    tab_to(page, "#name")
    page.keyboard.type("reviews")
    page.keyboard.press("Tab")
    tab_to(page, "button.main")
    page.keyboard.press("Enter")
    page.wait_for_selector("table.rows")
    page.wait_for_selector("[data-watch]", state="detached")
    assert "reviews.csv" in page.locator("h1").inner_text()
    tab_to(page, ".confusion a")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Show all")
    tab_to(page, "table.rows a")
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict-card")
    for place in (".phrase[data-k]", "#right", ".correct button"):
        page.evaluate("document.activeElement.blur()")
        tab_to(page, place)
    page.goto("/docs")
    tab_to(page, "#try")
    page.keyboard.press("Enter")
    page.wait_for_selector("pre[role=status]:has-text('200')")
