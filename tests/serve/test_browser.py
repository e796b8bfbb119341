"""The viewer in a real browser: every page and flow, by mouse and by keyboard, on a phone and in the dark."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from emhrnn.serve.app import application
from emhrnn.training.pack import located
from tests.behaviour.commands import BAD, GOOD
from tests.explain.browser import axe_core, chromium
from tests.serve.conftest import HOSTILE, running

LONG = " ".join([GOOD, BAD] * 8)
PAGES = ("/", "/compare", "/corpus", "/feedback", "/runs", "/docs", "/login")


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


def test_a_phrase_shows_what_it_counts(page: Any, pictures: Path) -> None:
    read(page)
    assert page.locator(".said .prediction").inner_text() in ("good", "bad")
    page.locator(".phrase[data-k]").first.click()
    page.wait_for_selector(".box table.words")
    assert page.locator(".box .told").inner_text()
    page.screenshot(path=pictures / "phrase.png")
    page.locator(".phrase[data-k]").first.click()
    assert page.locator(".box").count() == 0


def test_removing_and_restoring_by_mouse(page: Any, pictures: Path) -> None:
    """Each phrase has its own buttons, and before and after stand side by side, in sight."""
    page.set_viewport_size({"width": 1280, "height": 500})
    read(page, LONG)
    for phrase in (page.locator(".phrase[data-k]").last, page.locator(".phrase[data-k]").first):
        phrase.click()
        page.get_by_role("button", name="Remove").click()
        settled(page)
        assert in_sight(page, ".without .prediction")
        assert in_sight(page, ".said .prediction")
    assert page.locator(".phrase.dropped").count() == 2
    assert "without 2 phrases" in page.locator(".live").inner_text().lower()
    page.screenshot(path=pictures / "what-if.png", full_page=True)
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=Without 1 phrase")
    page.locator(".phrase.dropped").click()
    page.get_by_role("button", name="Restore", exact=True).click()
    page.wait_for_selector(".without", state="detached")
    assert page.locator(".phrase.dropped").count() == 0


@pytest.fixture(scope="module")
def demo(browser: Any) -> Iterator[Any]:
    """A page on the model of the package: it is sure of what it says, and fast on long documents."""
    with running(application([located(Path("demo"))])) as base:
        context = browser.new_context(base_url=base, viewport={"width": 1280, "height": 800})
        yield context.new_page()
        context.close()


MIXED = "The staff were kind and the breakfast was wonderful. But the room was dirty and the bed was awful."


def test_the_label_changes_on_request(demo: Any) -> None:
    """The phrases of the sentence in the verdict are left out, and the label is another."""
    read(demo, MIXED)
    told = demo.locator(".because").inner_text()
    assert "it would be" in told
    button = demo.get_by_role("button", name="Change the label for me")
    numbers, before = button.get_attribute("data-turn").split(","), demo.locator(".said .prediction").inner_text()
    for number in numbers:
        assert demo.locator(f".phrase[data-k='{number}']").inner_text() in told
    button.click()
    demo.wait_for_selector(".without .changed")
    assert demo.locator(".without .prediction").inner_text().split()[0] != before
    assert demo.locator(".phrase.dropped").count() == len(numbers)
    demo.get_by_role("button", name="Restore all").click()
    demo.wait_for_selector(".without", state="detached")


def test_editing_a_phrase_in_place(page: Any) -> None:
    """The label moves while one types, Enter keeps the text, Escape does not, and Back undoes."""
    read(page, GOOD)
    for last in ("Escape", "Enter"):
        page.locator(".phrase[data-k]").first.click()
        page.get_by_role("button", name="Edit", exact=True).click()
        with page.expect_response("**/part/read") as asked:
            page.keyboard.type("Terrible \U0001f600 soup")
        assert "text" not in dict(part.split("=") for part in asked.value.request.post_data.split("&"))
        page.wait_for_selector(".without")
        assert "edited" in page.locator(".live").inner_text().lower()
        page.keyboard.press(last)
        page.wait_for_selector(".without", state="detached")
        settled(page)
        assert page.locator("textarea").input_value().startswith("Terrible") == (last == "Enter")
    page.go_back()
    settled(page)
    assert page.locator("textarea").input_value() == GOOD


def test_a_long_document_opens_at_once(demo: Any, pictures: Path) -> None:
    """15,000 words: few nodes, wherever one scrolls to; what is scrolled to is drawn."""
    page, text = demo, " ".join([GOOD, BAD, MIXED] * 330)
    with page.expect_response("**/part/read") as asked:
        page.goto("/")
        page.get_by_label("Your document").fill(text)
        page.get_by_role("button", name="Read it").click()
    assert len(asked.value.body()) < 1_000_000
    settled(page)
    sentences = page.locator("li.sentence").count()
    assert sentences > 1900
    for place in (0, 0.5, 1):
        page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", place)
        page.wait_for_function(
            "() => [...document.querySelectorAll('li.sentence')].every(s => !s.classList.contains('far') || "
            "s.getBoundingClientRect().bottom < 0 || s.getBoundingClientRect().top > innerHeight)"
        )
        assert page.evaluate(NODES) < 15_000
    page.screenshot(path=pictures / "long.png")
    page.locator(".weights a").first.click()
    page.wait_for_function("document.activeElement.matches('.phrase[data-k]')")
    assert in_sight(page, ".phrase[data-k]:focus")


NODES = """() => {
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
  let nodes = 0;
  while (walker.nextNode()) nodes += 1;
  return nodes;
}"""


def settled(page: Any) -> None:
    page.wait_for_selector("#reading[aria-busy=false] .reading")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_what_decided_is_seen_at_once(browser: Any, address: str, pictures: Path, width: int, height: int) -> None:
    """Label, how sure, two phrases and tinted text, without scrolling; and the verdict stays."""
    context = browser.new_context(base_url=address, viewport={"width": width, "height": height})
    page = context.new_page()
    read(page, LONG)
    assert not page.locator("form.write").is_visible()  # it is folded to one line
    for part in (".said .prediction", ".said .sure", ".verdict-card .classes", ".because", ".document .phrase"):
        assert in_sight(page, part), part
    page.screenshot(path=pictures / f"verdict-{width}.png")
    assert page.evaluate("scrollTo(0, 600), scrollY") > 200
    assert in_sight(page, ".said .prediction")
    page.evaluate("scrollTo(0, 0)")
    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("Your document").fill("Another text.")
    assert "stale" in page.locator("#reading").get_attribute("class")
    context.close()


def in_sight(page: Any, selector: str) -> bool:
    box, size = page.locator(selector).first.bounding_box(), page.viewport_size
    return bool(box) and box["y"] >= 0 and box["y"] + box["height"] <= size["height"]


def test_refresh_and_back_keep_the_text(page: Any) -> None:
    read(page, GOOD)
    page.locator(".phrase[data-k]").first.focus()
    page.keyboard.press("d")
    page.wait_for_selector(".without")
    page.reload()
    page.wait_for_selector(".without")
    assert GOOD in page.locator("textarea").input_value()
    page.get_by_text("Edit", exact=True).click()
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
    page.locator(".phrase[data-k]").first.focus()
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


def test_everything_by_keyboard(page: Any) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_label("Your document").focus()
    page.keyboard.insert_text(GOOD)
    page.keyboard.press("Control+Enter")
    settled(page)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.phrase[data-k]')"):
            break
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.k") == "1"
    page.keyboard.press("d")
    page.wait_for_selector(".without")
    assert page.evaluate("document.activeElement.dataset.k") == "1"  # the focus stays where it was
    page.keyboard.press("Control+z")
    page.wait_for_selector(".without", state="detached")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.innerText") == "Remove"
    page.keyboard.press("Enter")
    page.wait_for_selector(".without")
    assert page.evaluate("document.activeElement.dataset.k") == "1"
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert page.locator(".box").count() == 0
    assert page.evaluate("document.activeElement.dataset.k") == "1"


def test_the_slider_moves_the_boundaries(page: Any) -> None:
    read(page)
    slider = page.locator("#threshold")
    counts = []
    for key in ("Home", "End"):
        slider.focus()
        with page.expect_response("**/part/read"):
            page.keyboard.press(key)
        page.wait_for_selector("#reading[aria-busy=false]")
        counts.append(page.locator(".phrase[data-k]").count())
    assert counts[0] > counts[1] >= 2
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
    words = page.locator(".phrase[data-k]").count()
    assert words == page.evaluate("Number(document.querySelector('.slider output .number').innerText)")
    assert page.locator(".phrase[data-k] u ~ u").count() == 0  # every word is a phrase


def test_a_sample_a_shortcut_and_a_dropped_file(page: Any) -> None:
    page.goto("/")
    page.locator(".samples button").first.click()
    page.wait_for_selector(".reading")
    page.get_by_text("Edit", exact=True).click()
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
    """The text comes along from Read."""
    read(page, GOOD)
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector(".pair")
    assert page.locator(".pair section").count() == 2
    assert "They agree" in page.locator(".agreement").inner_text()
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
@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
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
def test_no_accessibility_violation(
    browser: Any, made: Path, data: Path, tmp_path: Path, axe: str, scheme: str
) -> None:
    """Of any weight, in every state of every page."""
    run = copytree(made / "run", tmp_path / "mine")
    (tmp_path / "mine.feedback.jsonl").write_text('{"text": "Good soup.", "label": "good", "spans": [[0, 4]]}\n')
    with running(application([run, made / "run"], data=data)) as base:
        context = browser.new_context(base_url=base, color_scheme=scheme)
        page = context.new_page()

        def check(what: str) -> None:
            page.evaluate(axe)
            found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
            told = [(rule["id"], [node["html"][:200] for node in rule["nodes"]][:3]) for rule in found]
            assert told == [], what

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


def test_correcting_a_label_and_marking_a_phrase(browser: Any, made: Path, tmp_path: Path, pictures: Path) -> None:
    run = copytree(made / "run", tmp_path / "mine")
    with running(application([run])) as base:
        page = browser.new_page(base_url=base)
        read(page, "\U0001f600 " + GOOD)
        page.locator(".phrase[data-k]").nth(1).click()
        page.get_by_role("button", name="Should decide").click()
        page.get_by_label("Right label").select_option("bad")
        page.screenshot(path=pictures / "feedback-read.png")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="All corrections").click()
        page.wait_for_selector("table.rows")
        page.screenshot(path=pictures / "feedback.png")
        (entry,) = map(json.loads, (tmp_path / "mine.feedback.jsonl").read_text(encoding="utf-8").splitlines())
        ((start, end),) = entry["spans"]
        assert entry["label"] == "bad"
        assert entry["text"][start:end] in page.locator("mark").inner_text()  # characters, as Python counts them
        page.close()
