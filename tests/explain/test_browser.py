"""The page in a real browser: it fits a phone, both colour schemes show, it opens and asks for nothing."""

from typing import Any

import pytest

from emhrnn.explain.html import html_page

from .browser import chromium, screenshots, violations
from .documents import HOSTILE, REVIEW, explained


@pytest.fixture(scope="module")
def browser() -> Any:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    long_word = "x" * 300 + " " + "https://example.org/" + "y" * 200 + "."
    texts = (REVIEW, HOSTILE, long_word, "\u0627\u0644\u0641\u064a\u0644\u0645 \u0631\u0627\u0626\u0639.")
    path = tmp_path_factory.mktemp("page") / "explanation.html"
    path.write_text(html_page([explained(text, seed) for seed, text in enumerate(texts)]), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_fits_the_screen_with_everything_open(browser: Any, address: str, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.locator("table.words:visible").count() > 5
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert (complaints, requests) == ([], [address])
    picture = screenshots() / f"explanation-{scheme}-{width}.png"
    page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 10_000
    page.close()


def test_the_schemes_differ_and_follow_the_reader(browser: Any, address: str) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(address)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert grounds == ["rgb(248, 247, 244)", "rgb(19, 21, 25)"]


def test_numbers_and_no_colour_on_demand_without_script(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    after = "getComputedStyle(document.querySelector('.f5'), '::after').content"
    ground = "getComputedStyle(document.querySelector('.f5')).backgroundColor"
    assert page.evaluate(after) == "none"
    page.get_by_label("show numbers").check()
    assert "+" in page.evaluate(after)
    page.get_by_label("without colour").check()
    assert page.evaluate(ground) == "rgba(0, 0, 0, 0)"
    page.close()


def test_hostile_text_does_nothing(browser: Any, address: str) -> None:
    page = browser.new_page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.goto(address)
    assert page.locator("script, img, a, iframe, article style").count() == 0
    assert "<script>alert(1)</script>" in page.locator("article").nth(1).inner_text()
    assert dialogs == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_accessibility_violation(browser: Any, address: str, scheme: str) -> None:
    """Of any weight, closed and with everything open."""
    page = browser.new_page(color_scheme=scheme)
    page.goto(address)
    for opened in (False, True):
        page.evaluate("open => document.querySelectorAll('details').forEach(one => one.open = open)", opened)
        assert violations(page) == []
    page.close()
