"""Read and What if in a real browser, by mouse and by keyboard."""

import re
from typing import Any

import pytest

from emhrnn.explain.verdict import OUTSIDE
from tests.behaviour.commands import BAD, GOOD
from tests.explain.browser import screenshots
from tests.serve.conftest import HOSTILE, in_sight, read, settled

LONG = " ".join([GOOD, BAD] * 8)


def test_a_phrase_shows_what_it_counts(page: Any) -> None:
    read(page)
    assert page.locator(".said .prediction").inner_text() in ("good", "bad")
    page.locator(".phrase[data-k]").first.click()
    page.wait_for_selector(".box table.words")
    assert page.locator(".box .told").inner_text()
    page.screenshot(path=screenshots() / "phrase.png")
    page.locator(".phrase[data-k]").first.click()
    assert page.locator(".box").count() == 0


def test_removing_and_restoring_by_mouse(page: Any) -> None:
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
    page.screenshot(path=screenshots() / "what-if.png", full_page=True)
    page.get_by_role("button", name="Undo").click()
    page.wait_for_selector("text=Without 1 phrase")
    page.locator(".phrase.dropped").click()
    page.get_by_role("button", name="Restore", exact=True).click()
    page.wait_for_selector(".without", state="detached")
    assert page.locator(".phrase.dropped").count() == 0


MIXED = "The staff were kind and the breakfast was wonderful. But the room was dirty and the bed was awful."


def test_the_label_changes_on_request(demo: Any) -> None:
    """The phrases of the sentence in the verdict are left out, and the label is another."""
    read(demo, MIXED)
    told = demo.locator(".because").inner_text()
    assert "it would be" in told
    button = demo.get_by_role("button", name="Change the label for me")
    numbers, before = button.get_attribute("data-turn").split(","), demo.locator(".said .prediction").inner_text()
    for number in numbers:
        assert demo.locator(f".phrase[data-k='{number}']").inner_text().strip(OUTSIDE) in told
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


def test_a_long_document_opens_at_once(demo: Any) -> None:
    """15,000 words: few nodes, wherever one scrolls to; what is scrolled to is drawn."""
    page, text = demo, " ".join([GOOD, BAD, MIXED] * 330)
    with page.expect_response("**/part/read") as asked:
        page.goto("/")
        page.get_by_label("Your document").fill(text)
        page.get_by_role("button", name="Read it").click()
    assert len(asked.value.body()) < 1_000_000
    settled(page)
    page.locator(".phrase[data-k]").first.click()  # it answers
    page.wait_for_selector(".box")
    answered = page.evaluate(
        "performance.getEntriesByType('resource').findLast(one => one.name.endsWith('/part/read'))"
    )
    assert page.evaluate("performance.now()") - answered["responseEnd"] < 2000
    page.keyboard.press("Escape")
    sentences = page.locator("li.sentence").count()
    assert sentences > 1900
    for place in (0, 0.5, 1):
        page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", place)
        page.wait_for_function(
            "() => [...document.querySelectorAll('li.sentence')].every(s => !s.classList.contains('far') || "
            "s.getBoundingClientRect().bottom < 0 || s.getBoundingClientRect().top > innerHeight)"
        )
        assert page.evaluate(NODES) < 15_000
    page.screenshot(path=screenshots() / "long.png")
    page.reload()  # the address cannot hold this text; the browser does
    settled(page)
    assert page.locator("li.sentence").count() == sentences
    page.locator(".weights a").first.click()
    page.wait_for_function("() => document.activeElement.matches('.phrase[data-k]')")
    assert in_sight(page, ".phrase[data-k]:focus")


NODES = """() => {
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
  let nodes = 0;
  while (walker.nextNode()) nodes += 1;
  return nodes;
}"""


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_what_decided_is_seen_at_once(browser: Any, address: str, width: int, height: int) -> None:
    """Label, how sure, two phrases and tinted text, without scrolling; and the verdict stays."""
    context = browser.new_context(base_url=address, viewport={"width": width, "height": height})
    page = context.new_page()
    read(page, LONG)
    assert not page.locator("form.write").is_visible()  # it is folded to one line
    for part in (".said .prediction", ".said .sure", ".verdict-card .classes", ".because", ".document .phrase"):
        assert in_sight(page, part), part
    page.screenshot(path=screenshots() / f"verdict-{width}.png")
    assert page.evaluate("scrollTo(0, 600), scrollY") > 200
    assert in_sight(page, ".said .prediction")
    page.evaluate("scrollTo(0, 0)")
    page.get_by_text("Edit", exact=True).click()
    page.get_by_label("Your document").fill("Another text.")
    assert "stale" in page.locator("#reading").get_attribute("class")
    context.close()


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


def test_hostile_text_does_nothing(page: Any) -> None:
    read(page, HOSTILE + " was good.")
    assert page.locator(".reading script, .reading img").count() == 0
    shown = page.locator(".sentences").inner_text().replace(" // ", "")  # wherever its phrases end
    assert "<script>alert(1)</script>" in shown


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


def test_phrases_and_words_show_when_one_points_at_them(demo: Any) -> None:
    """By mouse and by focus; before, the text is text."""
    read(demo, MIXED)
    phrase = demo.locator(".phrase[data-k]:has(u)").first
    word = "one => getComputedStyle(one.querySelector('u')).textDecorationColor"
    border = "one => getComputedStyle(one).outlineStyle"
    demo.mouse.move(0, 0)
    assert (phrase.evaluate(border), phrase.evaluate(word)) == ("none", "rgba(0, 0, 0, 0)")
    phrase.hover()
    assert (phrase.evaluate(border), phrase.evaluate(word)) == ("solid", "rgb(31, 35, 40)")
    assert "dotted" in phrase.locator("..").locator(".phrase").evaluate_all(f"some => some.map({border})")
    demo.mouse.move(0, 0)
    demo.locator(".phrase[tabindex='0']").focus()
    demo.keyboard.press("ArrowRight")
    focused = demo.locator(".phrase:focus")
    assert focused.evaluate(border) == "solid"


def test_two_hues_by_sign_and_depth_by_size_in_points(demo: Any) -> None:
    read(demo, MIXED)
    most = demo.locator(".weights a").first.get_attribute("data-k")
    assert "f5" in demo.locator(f".phrase[data-k='{most}']").get_attribute("class").split()
    for kind, blue in (("f", True), ("a", False)):
        shown = demo.locator(f".phrase[data-k]:is(.{kind}1, .{kind}2, .{kind}3, .{kind}4, .{kind}5)").first
        red, _, other = re.findall(r"\d+", shown.evaluate("one => getComputedStyle(one).backgroundColor"))[:3]
        assert (int(other) > int(red)) == blue
    assert all(re.fullmatch("[+\u2212]\\d+", told) for told in demo.locator(".weights .number").all_inner_texts())
    assert "log-odds" not in demo.locator("main").inner_text()


def test_attention_is_behind_a_switch(page: Any) -> None:
    read(page)
    assert not page.locator(".sentence .attention").first.is_visible()
    page.get_by_label("attention").check()
    assert "attention" in page.locator(".sentence .attention").first.inner_text()


def test_a_first_read_shows_that_it_works(page: Any) -> None:
    held: list[Any] = []
    page.route("**/part/read", lambda route: held.append(route))
    page.goto("/")
    page.get_by_label("Your document").fill(GOOD)
    page.get_by_role("button", name="Read it").click()
    page.wait_for_selector("#reading[aria-busy=true]", state="attached")
    assert "Reading" in page.evaluate("getComputedStyle(document.getElementById('reading'), '::before').content")
    held[0].continue_()
    settled(page)


def test_one_question_at_a_time_while_one_types(page: Any) -> None:
    """Typing is waited for, and what is typed while an answer is on its way is asked once, as it is then."""
    read(page)
    page.locator(".phrase[data-k]").first.click()
    page.get_by_role("button", name="Edit", exact=True).click()
    held: list[Any] = []
    page.route("**/part/read", lambda route: held.append(route))
    page.keyboard.type("Terrible", delay=30)
    page.wait_for_timeout(500)
    assert len(held) == 1
    for word in (" cold", " stale"):
        page.keyboard.type(word, delay=30)
        page.wait_for_timeout(400)
    assert len(held) == 1  # it has no answer yet
    held[0].continue_()
    page.wait_for_selector(".without")
    page.wait_for_timeout(200)
    assert len(held) == 2
    assert "Terrible+cold+stale" in held[1].request.post_data
    held[1].continue_()
    page.wait_for_selector("#reading[aria-busy=false]")


LIVE = """() => {
  const live = "[role=status], [role=alert], [aria-live], output";
  const heard = (one) => one.matches?.(live) && one.getAttribute("aria-live") !== "off" && one.textContent.trim();
  window.said = [];
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      const around = (target.nodeType === 1 ? target : target.parentElement)?.closest(live);
      const added = [...addedNodes].filter((one) => one.nodeType === 1);
      const inside = added.flatMap((one) => [one, ...one.querySelectorAll(live)]);
      for (const region of [around, ...inside])
        if (region && heard(region)) said.push([region.className, region.textContent]);
    }
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def test_the_live_region_announces_the_verdict_alone(page: Any) -> None:
    page.goto("/")
    page.evaluate(LIVE)
    page.get_by_label("Your document").fill(GOOD)
    page.keyboard.press("Control+Enter")
    settled(page)
    page.locator(".phrase[data-k]").first.focus()
    page.keyboard.press("d")
    page.wait_for_selector(".without")
    page.locator("#threshold").focus()
    with page.expect_response("**/part/read"):
        page.keyboard.press("Home")
    page.wait_for_selector(".without", state="detached")
    settled(page)
    said = page.evaluate("said")
    assert {kind for kind, _ in said} == {"live"}
    first, last = said[0][1], said[-1][1]
    assert re.fullmatch(r"Predicted (good|bad) \d+% (un|fairly )?sure", first)
    assert re.fullmatch(r"Predicted (good|bad) \d+% (un|fairly )?sure", last)
    assert any("Without 1 phrase" in text for _, text in said)


def test_the_text_box_can_be_dragged_larger(page: Any) -> None:
    page.goto("/")
    before = page.locator("textarea").bounding_box()
    corner = before["x"] + before["width"] - 6, before["y"] + before["height"] - 6
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0], corner[1] + 150, steps=5)
    page.mouse.up()
    assert page.locator("textarea").bounding_box()["height"] > before["height"] + 100
