"""The pages of an analysis in a real browser: they fit, ask for nothing, and votes by keyboard are kept and saved."""

import json
from pathlib import Path
from typing import Any

import pytest

from emhrnn.paper.analysis.judge import count_votes
from emhrnn.paper.analysis.report import write_analysis
from tests.explain.browser import chromium, screenshots
from tests.paper.analysis.made_up import made_up_analysis


@pytest.fixture(scope="module")
def browser() -> Any:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("analysis")
    write_analysis(made_up_analysis(), out)
    return out


@pytest.mark.parametrize("name", ["report.html", "judge.html"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_fits_and_asks_for_nothing(browser: Any, folder: Path, name: str, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    trouble: list[str] = []
    for event in ("console", "pageerror", "dialog"):
        page.on(event, lambda told: trouble.append(str(told)))
    page.on("request", lambda request: trouble.append(request.url))
    address = (folder / name).as_uri()
    page.goto(address)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert trouble == [address]
    assert page.locator("img, iframe, main script, main style").count() == 0
    page.screenshot(path=screenshots() / f"{name.partition('.')[0]}-{scheme}-{width}.png", full_page=True)
    page.close()


def test_readable_without_script(browser: Any, folder: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "judge.html").as_uri())
    cases = page.locator(".case")
    assert cases.count() > 3
    assert all(case.is_visible() for case in cases.all())
    assert page.get_by_text("On paper").is_visible()
    page.goto((folder / "report.html").as_uri())
    page.get_by_text("All numbers").click()
    assert page.get_by_text("\u00d72.00").first.is_visible()
    context.close()


def test_votes_by_keyboard_are_kept_and_saved(browser: Any, folder: Path, tmp_path: Path) -> None:
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.goto((folder / "judge.html").as_uri())
    key = json.loads((folder / "judge-key.json").read_text())
    total = len(key["cases"])
    assert page.locator(".case:visible").count() == 1
    for pressed in ("ArrowLeft", "ArrowRight", "ArrowDown"):
        page.keyboard.press(pressed)
    page.reload()
    assert page.locator("#progress").inner_text() == f"3 of {total} judged"
    assert page.locator(".case:visible legend").inner_text().startswith("Document 4 ")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")  # thought better of the third
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the votes").click()
    saved = tmp_path / "votes.json"
    download.value.save_as(saved)
    assert json.loads(saved.read_text())["votes"] == {"0": "left", "1": "right", "2": "left"}
    verdict = count_votes(saved, folder)
    lefts = [case["left"] for case in key["cases"]]
    wins = [lefts[0], 1 - lefts[1], lefts[2]]  # the model that each vote is for
    assert verdict.wins == (wins.count(0), wins.count(1))
    assert (verdict.undecided, verdict.open) == (0, total - 3)
    context.close()
