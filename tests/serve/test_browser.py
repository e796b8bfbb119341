"""The viewer in a real browser: every page and flow, by mouse and by keyboard, on a phone and in the dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emhrnn.serve.app import application
from tests.behaviour.commands import BAD, GOOD
from tests.explain.browser import axe_core, chromium
from tests.serve.conftest import HOSTILE, running

LONG = " ".join([GOOD, BAD] * 8)
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
    folder = Path(__file__).parents[2] / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def read(page: Any, text: str = GOOD) -> None:
    page.goto("/")
    page.get_by_label("Your document").fill(text)
    page.get_by_role("button", name="Read it").click()
    page.wait_for_selector(".reading")
    page.wait_for_selector("#reading[aria-busy=false]")


def test_reading_and_drilling_down(page: Any, pictures: Path) -> None:
    read(page)
    assert page.locator(".reading .prediction").inner_text() in ("good", "bad")
    page.locator(".row .phrase").first.click()
    assert page.locator(".chosen-phrase table.words").is_visible()
    page.locator(".row .phrase").first.click()
    assert not page.locator(".chosen-phrase").is_visible()
    page.locator(".sentence > .row > .gauge").nth(1).click()
    assert page.locator("ol.phrases").nth(1).is_visible()
    page.get_by_label("numbers").check()
    page.screenshot(path=pictures / "read.png", full_page=True)


def test_dropping_a_phrase_by_mouse(page: Any, pictures: Path) -> None:
    """Each phrase has its own button, in sight of the answer."""
    page.set_viewport_size({"width": 1280, "height": 500})
    read(page, LONG)
    for phrase in (page.locator(".row .phrase").last, page.locator(".row .phrase").first):
        phrase.click()
        page.get_by_role("button", name="Leave it out").click()
        page.wait_for_selector("#reading[aria-busy=false]")
        assert in_sight(page, ".without .prediction")
        assert in_sight(page, ".phrase.chosen.dropped")
    assert page.locator(".row .phrase.dropped").count() == 2
    assert "without 2 phrases" in page.locator(".live").inner_text()
    page.screenshot(path=pictures / "what-if.png", full_page=True)
    page.get_by_role("button", name="Put it back").click()
    page.wait_for_selector("text=without 1 phrase")
    page.locator(".row .phrase.dropped").click()
    page.get_by_role("button", name="Put it back").click()
    page.wait_for_selector(".without", state="detached")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_what_decided_is_seen_at_once(browser: Any, address: str, pictures: Path, width: int, height: int) -> None:
    """Label, how sure, two phrases and tinted text, without scrolling; and the verdict stays."""
    context = browser.new_context(base_url=address, viewport={"width": width, "height": height})
    page = context.new_page()
    read(page, LONG)
    assert not page.locator("form.write").is_visible()  # it is folded to one line
    for part in (".said .prediction", ".said .sure", ".verdict-card .classes", ".because q", ".document .phrase"):
        assert in_sight(page, part), part
    page.screenshot(path=pictures / f"verdict-{width}.png")
    assert page.evaluate("scrollTo(0, 600), scrollY") > 200
    assert in_sight(page, ".said .prediction")
    page.evaluate("scrollTo(0, 0)")
    page.get_by_text("Edit").click()
    page.get_by_label("Your document").fill("Another text.")
    assert "stale" in page.locator("#reading").get_attribute("class")
    context.close()


def in_sight(page: Any, selector: str) -> bool:
    box, size = page.locator(selector).first.bounding_box(), page.viewport_size
    return bool(box) and box["y"] >= 0 and box["y"] + box["height"] <= size["height"]


def test_refresh_and_back_keep_the_text(page: Any) -> None:
    read(page, GOOD)
    page.locator(".row .phrase").first.focus()
    page.keyboard.press("d")
    page.wait_for_selector(".without")
    page.reload()
    page.wait_for_selector(".without")
    assert GOOD in page.locator("textarea").input_value()
    page.get_by_text("Edit").click()
    page.get_by_label("Your document").fill(BAD)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".without", state="detached")
    page.get_by_role("link", name="Corpus").click()
    page.wait_for_selector("text=A whole file")
    page.go_back()
    page.wait_for_selector(".reading")
    assert page.locator("textarea").input_value() == BAD
    page.go_back()
    page.wait_for_selector(".without")
    assert page.locator("textarea").input_value() == GOOD
    page.go_back()
    page.wait_for_selector(".samples")
    assert page.locator(".reading").count() == 0


def test_a_failed_request_keeps_what_is_there(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address)
    page = context.new_page()
    read(page)
    page.route("**/part/read", lambda route: route.abort())
    page.locator(".row .phrase").first.focus()
    page.keyboard.press("d")
    page.wait_for_selector(".trouble")
    assert page.locator(".reading .prediction").is_visible()
    page.unroute("**/part/read")
    page.keyboard.press("d")
    page.wait_for_selector(".trouble", state="detached")
    context.close()


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


def test_dropping_a_phrase_by_keyboard(page: Any) -> None:
    read(page)
    page.locator(".row .phrase").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.phrase") == "1"
    page.keyboard.press("d")
    page.wait_for_selector(".without")
    assert page.evaluate("document.activeElement.dataset.phrase") == "1"  # the focus stays where it was
    page.keyboard.press("Enter")
    assert page.locator(".chosen-phrase table.words").is_visible()


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


def test_the_slider_can_be_dragged(page: Any) -> None:
    """It is not replaced while it is held, and ends where it is let go."""
    read(page, LONG)
    slider = page.locator("#threshold")
    page.evaluate("document.getElementById('threshold').held = true")
    box, most = slider.bounding_box(), int(slider.get_attribute("max"))
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * int(slider.input_value()) / most, middle)
    page.mouse.down()
    seen = set()
    for share in (0.8, 0.6, 0.4, 0.2, 0.0):
        page.mouse.move(box["x"] + 4 + (box["width"] - 8) * share, middle, steps=4)
        page.wait_for_timeout(50)
        seen.add(slider.input_value())
    page.mouse.up()
    page.wait_for_selector("#reading[aria-busy=false]")
    assert len(seen) >= min(4, most)
    assert slider.input_value() == "0"
    assert page.evaluate("document.getElementById('threshold').held")
    words = page.locator("li[id^=phrase-]").count()
    assert words == page.evaluate("Number(document.querySelector('.slider output .number').innerText)")
    assert words == page.locator("ol.sentences table.words tbody tr").count()  # every word is a phrase


def test_a_sample_a_shortcut_and_a_dropped_file(page: Any) -> None:
    page.goto("/")
    page.locator(".samples button").first.click()
    page.wait_for_selector(".reading")
    page.get_by_text("Edit").click()
    page.get_by_label("Your document").fill(BAD)
    with page.expect_response("**/part/read"):
        page.keyboard.press("Control+Enter")
    page.wait_for_selector("#reading[aria-busy=false]")
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
    page.locator(".tools").wait_for(state="hidden")  # what would not work is not shown
    page.locator("summary").first.click()
    context.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_core(tmp_path_factory.mktemp("axe"))


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
