"""The viewer in a real browser: every page and flow, by mouse and by keyboard, on a phone and in the dark."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.commands import BAD, GOOD
from tests.explain.browser import chromium
from tests.serve.conftest import HOSTILE

PAGES = ("/", "/compare", "/corpus", "/runs", "/docs", "/login")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A page that must not complain and must ask our server only."""
    context = browser.new_context(base_url=address, viewport={"width": 1100, "height": 850})
    opened = context.new_page()
    trouble: list[str] = []
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    opened.on("dialog", lambda dialog: trouble.append(dialog.message))
    opened.on("request", lambda asked: trouble.append(asked.url) if not asked.url.startswith(address) else None)
    yield opened
    context.close()
    assert [told for told in trouble if "422" not in told] == []  # a refusal is no fault, but the browser tells it


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Screenshots: in build/screenshots, where CI keeps them."""
    folder = Path(__file__).parents[3] / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def read(page: Any, text: str = GOOD) -> None:
    page.goto("/")
    page.get_by_label("Your document").fill(text)
    page.get_by_role("button", name="Read it").click()
    page.wait_for_selector(".reading")


def test_reading_and_drilling_down(page: Any, pictures: Path) -> None:
    read(page)
    assert page.locator(".reading .prediction").inner_text() in ("good", "bad")
    page.locator(".row .phrase").first.click()
    assert page.locator("table.words").first.is_visible()
    page.locator(".row .phrase").first.click()
    assert not page.locator("table.words").first.is_visible()
    page.locator(".sentence > .row > .gauge").nth(1).click()
    assert page.locator("ol.phrases").nth(1).is_visible()
    page.get_by_label("numbers").check()
    page.screenshot(path=pictures / "read.png", full_page=True)


def test_dropping_a_phrase_by_mouse(page: Any, pictures: Path) -> None:
    read(page)
    page.get_by_label("drops it").check()
    page.locator(".row .phrase").first.click()
    page.wait_for_selector(".without")
    assert page.locator(".row .phrase.dropped").count() == 1
    assert page.get_by_label("drops it").is_checked()
    page.screenshot(path=pictures / "what-if.png", full_page=True)
    page.locator(".row .phrase.dropped").click()
    page.wait_for_selector(".without", state="detached")


def test_dropping_a_phrase_by_keyboard(page: Any) -> None:
    read(page)
    page.locator(".row .phrase").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.phrase") == "1"
    page.keyboard.press("d")
    page.wait_for_selector(".without")
    assert page.evaluate("document.activeElement.dataset.phrase") == "1"  # the focus stays where it was
    page.keyboard.press("Enter")
    assert page.locator("#phrase-1 table.words").is_visible()


def test_the_slider_moves_the_boundaries(page: Any) -> None:
    read(page)
    slider = page.locator("#threshold")
    counts = []
    for key in ("Home", "End"):
        slider.focus()
        with page.expect_response("**/part/read"):
            page.keyboard.press(key)
        page.wait_for_selector("#reading[aria-busy=false]")
        counts.append(page.locator("li[id^=phrase-]").count())
    assert counts[0] > counts[1] == 2
    with page.expect_response("**/part/read"):
        page.get_by_role("button", name="as learned").click()


def test_a_sample_a_shortcut_and_a_dropped_file(page: Any) -> None:
    page.goto("/")
    page.locator(".samples button").first.click()
    page.wait_for_selector(".reading")
    page.get_by_label("Your document").fill(BAD)
    with page.expect_response("**/part/read"):
        page.keyboard.press("Control+Enter")
    transfer = page.evaluate_handle(
        "() => { const t = new DataTransfer(); t.items.add(new File(['A dropped soup.'], 'a.txt')); return t; }"
    )
    with page.expect_response("**/part/read"):
        page.dispatch_event("form.write", "drop", {"dataTransfer": transfer})
    page.wait_for_selector("#reading[aria-busy=false]")
    assert "dropped soup" in page.locator(".sentences").inner_text()


def test_an_empty_text_is_told(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Your document").fill("   ")
    page.evaluate("document.querySelector('textarea').required = false")
    with page.expect_response("**/part/read"):
        page.get_by_role("button", name="Read it").click()
    page.wait_for_selector(".trouble")
    assert "no words" in page.locator(".trouble").inner_text()


def test_comparing(page: Any, pictures: Path) -> None:
    page.goto("/compare")
    page.get_by_label("Your document").fill(GOOD)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector(".pair")
    assert page.locator(".pair section").count() == 2
    page.screenshot(path=pictures / "compare.png", full_page=True)


def test_a_file_from_upload_to_one_document(page: Any, pictures: Path, data: Path) -> None:
    page.goto("/corpus")
    page.get_by_label("File").first.set_input_files(data / "below" / "more.jsonl")
    page.get_by_role("button", name="Classify it").first.click()
    page.wait_for_selector("table.rows")
    page.wait_for_selector("[data-watch]", state="detached")
    page.screenshot(path=pictures / "corpus.png", full_page=True)
    page.locator(".confusion a").first.click()
    page.wait_for_selector("text=Show all")
    page.locator("table.rows a").first.click()
    page.wait_for_selector(".reading")
    assert "labelled" in page.locator(".reading .prediction").inner_text()


def test_hostile_text_does_nothing(page: Any) -> None:
    read(page, HOSTILE + " was good.")
    assert page.locator(".reading script, .reading img").count() == 0
    shown = page.locator(".sentences").inner_text().replace(" // ", "")  # wherever its phrases end
    assert "<script>alert(1)</script>" in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_every_page_fits_the_screen(browser: Any, address: str, pictures: Path, width: int, scheme: str) -> None:
    context = browser.new_context(base_url=address, viewport={"width": width, "height": 850}, color_scheme=scheme)
    page = context.new_page()
    for path in PAGES:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.screenshot(path=pictures / f"{path.strip('/') or 'first'}-{scheme}-{width}.png", full_page=True)
    read(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=pictures / f"read-{scheme}-{width}.png", full_page=True)
    context.close()


def test_without_script(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    page.locator("textarea").fill(GOOD)
    page.get_by_role("button", name="Read it").click()
    assert page.locator(".reading").is_visible()
    assert not page.locator(".tools").is_visible()  # what would not work is not shown
    page.locator("summary").first.click()
    context.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core from npm; never part of this repository."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm on the machine, for example: apt-get install npm")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip(f"axe-core could not be installed from npm: {done.stderr[-200:]}")
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_violation(browser: Any, address: str, axe: str, scheme: str) -> None:
    context = browser.new_context(base_url=address, color_scheme=scheme)
    page = context.new_page()

    def check(what: str) -> None:
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        serious = [
            (rule["id"], [node["html"][:200] for node in rule["nodes"]][:3])
            for rule in found
            if rule["impact"] in ("serious", "critical")
        ]
        assert serious == [], what

    for path in PAGES:
        page.goto(path)
        check(path)
    read(page)
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
    check("reading")
    page.goto("/corpus")
    page.locator("select").select_option("reviews.csv")
    page.get_by_role("button", name="Classify it").last.click()
    page.wait_for_selector("table.rows")
    page.wait_for_selector("[data-watch]", state="detached")
    check("a file")
    context.close()
