"""`emhrnn export --web`: the page gives the numbers of Python, in a real browser, from files alone."""

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn.api import Model, load, train
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.headline import headline_text
from emhrnn.export.web_folder import MODEL, TYPES, export_web
from emhrnn.training.config import make_config
from tests.behaviour.commands import Cli
from tests.explain.browser import chromium, screenshots, violations

CLOSE = 5e-4  # of probabilities and log-odds: phrases and word vectors are 16-bit floats
TIE = 1e-2  # of the score of a phrase, for the same reason
SHARED = ["training.epochs=3", "data.min_count=1", "model.embedding_size=8", "model.table_documents=2"]
VARIANTS = {
    "whole": [],
    "bare": ["model.encoder_size=0", "model.sentence_weights=0", "model.pauses=false", "model.presence=0"],
    "capped": ["data.max_sentences=3", "data.max_sentence_words=6", "data.lowercase=false", "model.longest=8"],
    "several": ["model.sentence_weights=4"],
}
REVIEW = (
    'We had a table by the window. The pasta was excellent, but the service was dreadful! Dr. Jones said "Never '
    "again.\" and left... I don't know (it's not bad. Really). Visit no. 3 in the U.S. was fine, e.g. the soup."
)
TEXTS = {
    "review": REVIEW,
    "one word": "excellent",
    "repeated": "excellent soup, excellent soup, excellent soup",
    "unknown words": "Qwertz asdfgh zxcvb! Yxcv.",
    "partly unknown": "The qwertz was excellent. Asdf!",
    "marks alone": "?!?! ...",
    "emoji": "Great food 😀👍🏽 and ❤️. Flags 🇮🇳🇸🇬 too!",
    "long": " ".join(review.text for review in generate_reviews(60, 5)),
    "markup": "The soup<br /><br />was good.<br>We liked it \u00a0 a lot.\x00 Yes <b>really</b>",
    "typography": "It’s “not bad” — we’ll don’t care… café cafe\u0301 İstanbul 3.14 1,000 10/10 9:30pm AT&T well-known "
    "http://example.org/a?b=c, me@example.org #tag !!!!! ----- ?!?!",
    "scripts": "寿司はとても الفيلم рад नमस्ते ²½ Ⅷ",
}
HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script> was excellent."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Model, Path]]:
    """A trained model of a variant, and its exported folder."""
    folder, made = tmp_path_factory.mktemp("web"), dict[str, tuple[Model, Path]]()
    reviews = list(generate_reviews(200, 1))

    def of(name: str) -> tuple[Model, Path]:
        if name not in made:
            labels = [
                [one.label, "long"][: 1 + i % 2] if name == "several" else one.label for i, one in enumerate(reviews)
            ]
            rows = [{"text": one.text, "label": label} for one, label in zip(reviews, labels, strict=True)]
            data = folder / f"{name}.jsonl"
            data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
            config = make_config(assignments=["model.name=evidence", *SHARED, *VARIANTS[name]])
            train(data, folder / name, config=config, progress=False)
            model = load(folder / name)
            export_web(model.run, folder / f"{name}-web")
            made[name] = model, folder / f"{name}-web"
        return made[name]

    return of


@pytest.fixture(scope="module")
def browser() -> Any:
    with chromium() as launched:
        yield launched


def opened(browser: Any, folder: Path, **options: Any) -> Any:
    """The page, from the disk. Whatever it asks for or complains about is kept in `page.seen`."""
    page = browser.new_page(**options)
    page.seen = []
    page.on("console", lambda message: page.seen.append(message.text))
    page.on("pageerror", lambda error: page.seen.append(str(error)))
    page.on("dialog", lambda dialog: page.seen.append(dialog.message))
    page.on("request", lambda request: page.seen.append(request.url) if "file:" not in request.url else None)
    page.goto((folder / "index.html").as_uri())
    return page


def typed(page: Any, text: str) -> None:
    page.fill("#text", text)
    page.wait_for_selector("#result:visible")
    page.wait_for_function("text => document.getElementById('prose').textContent === text", arg=text)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_numbers_are_those_of_python(browser: Any, models: Any, variant: str) -> None:
    model, folder = models(variant)
    page = opened(browser, folder)
    for name, text in TEXTS.items():
        given = page.evaluate("text => emhrnn.read(text)", text)
        expected = model.explain([text])[0]
        check_equal(name, given, expected)
        ends = np.cumsum([len(phrase["words"]) for sentence in given["sentences"] for phrase in sentence["phrases"]])
        best, shown = (reading_score(model, text, z) for z in (expected.phrase_offsets[1:], ends))
        assert shown >= best - TIE * len(ends), name
    assert page.seen == []
    page.close()


def reading_score(model: Model, text: str, ends: np.ndarray) -> float:
    """Of the phrases with these ends: what the segmentation that is shown maximises."""
    reader = getattr(model.run.model, "reader", model.run.model)
    batch = model.run.encoder.encode([text])
    chosen, pauses = reader.logits(batch)[0].argmax(), reader._ends(batch)
    of_phrases = reader.potentials(batch)[ends - 1, np.diff(ends, prepend=0) - 1, chosen]
    return float(of_phrases.sum() + (0 if pauses is None else pauses[ends - 1].sum()))


def check_equal(name: str, given: dict[str, Any], expected: Explanation) -> None:
    phrases = [phrase for sentence in given["sentences"] for phrase in sentence["phrases"]]
    words = [word for phrase in phrases for word in phrase["words"]]
    assert [word["text"] for word in words] == [word.text for word in expected.words], name
    assert [word["known"] for word in words] == expected.known.tolist(), name
    assert [one["text"] for one in given["sentences"]] == [one.text for one in expected.sentences], name
    np.testing.assert_allclose(given["probabilities"], expected.probabilities, atol=CLOSE, err_msg=name)
    assert given["labels"] == (
        [expected.predicted] if isinstance(expected.predicted, str) else list(expected.predicted)
    )
    assert expected.effects is not None
    for nodes, effects in ((words, expected.effects.words), (given["sentences"], expected.effects.sentences)):
        np.testing.assert_allclose([node["effect"] for node in nodes], effects, rtol=1e-3, atol=CLOSE, err_msg=name)
    assert given["warnings"] == [told for told in expected.warnings if "another language" not in told], name
    assert given["prior"] == pytest.approx(expected.effects.prior, abs=CLOSE)
    if [phrase["text"] for phrase in phrases] == [phrase.text for phrase in expected.phrases]:  # no tie was turned
        path = expected.decisive_path()
        assert (given["phrase"] or {}).get("text") == (None if path is None else path.phrase.text), name


def test_given_sentences_are_taken_as_they_are(browser: Any, models: Any) -> None:
    model, folder = models("whole")
    sentences = ("we went on. And on", "excellent")
    page = opened(browser, folder)
    given = page.evaluate("sentences => emhrnn.read(sentences)", sentences)
    check_equal("given", given, explain_texts(model.run, [sentences])[0])
    page.close()


def test_the_page_says_what_python_says(browser: Any, models: Any) -> None:
    model, folder = models("whole")
    page = opened(browser, folder)
    for name in ("review", "one word", "unknown words", "partly unknown", "marks alone", "emoji"):
        typed(page, TEXTS[name])
        (expected,) = model.explain([TEXTS[name]])
        assert page.text_content("#label") == expected.predicted
        assert page.text_content("#warnings") == "".join(expected.warnings)
        assert unquoted(page.text_content("#headline")) == unquoted(headline_text(expected)), name
        shown = page.locator("#classes > div").evaluate_all("rows => rows.map(row => Number(row.dataset.probability))")
        np.testing.assert_allclose(shown, expected.probabilities, atol=CLOSE)
    page.fill("#text", " \n ")
    page.wait_for_selector("#result", state="hidden")
    assert page.evaluate("emhrnn.read('')") is None
    assert page.seen == []
    page.close()


def unquoted(text: str) -> str:
    """The page has quotes as elements."""
    return text.replace('"', "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_it_fits_the_screen(browser: Any, models: Any, width: int, scheme: str) -> None:
    page = opened(browser, models("whole")[1], viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert page.locator("#chips button").count() > 4
    typed(page, REVIEW + " " + "x" * 300)
    page.locator("#prose .f5, #prose .a5").first.click()
    assert page.locator("#detail > div").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=screenshots() / f"web-{scheme}-{width}.png", full_page=True)
    assert page.seen == []
    assert violations(page) == []
    page.close()


def test_a_phrase_is_left_out_and_put_back(browser: Any, models: Any) -> None:
    page = opened(browser, models("whole")[1])
    typed(page, REVIEW)
    phrase = page.locator("#prose .f5, #prose .a5").first
    words = phrase.text_content()
    phrase.press("Enter")
    page.get_by_role("button", name="Leave this phrase out").click()
    assert page.input_value("#text").count(words) == REVIEW.count(words) - 1
    page.get_by_role("button", name="Put it back").click()
    assert page.input_value("#text") == REVIEW
    page.close()


def test_markup_is_shown_as_text(browser: Any, models: Any) -> None:
    page = opened(browser, models("whole")[1])
    typed(page, HOSTILE)
    assert page.text_content("#prose") == HOSTILE
    assert page.locator("main img, main script").count() == 0
    assert page.seen == []
    page.close()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda content: content[:-8], "cut short"),
        (lambda content: content + b"12345678", "are expected"),
        (lambda content: content[:4], "empty"),
        (lambda content: struct.pack("<I", 2**31) + content[4:], "header is cut short"),
        (lambda content: content.replace(b'"format": 1', b'"format": 2'), "format 2"),
        (lambda content: content.replace(b'"K": 6', b'"K": 5'), "length_prior"),
    ],
)
def test_a_damaged_model_is_named(browser: Any, models: Any, tmp_path: Path, damage: Any, told: str) -> None:
    folder = models("whole")[1]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = base64.b64encode(damage(unwrapped(folder / MODEL))).decode()
    (tmp_path / MODEL).write_text(f'emhrnn.load("{content}");')
    page = opened(browser, tmp_path)
    assert told in page.text_content("#problem")
    assert page.is_disabled("#text")
    page.close()


def test_a_missing_model_is_named(browser: Any, models: Any, tmp_path: Path) -> None:
    for path in models("whole")[1].iterdir():
        if path.name != MODEL:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    page = opened(browser, tmp_path)
    assert "model.js is missing" in page.text_content("#problem")
    page.close()


# ------------------------------------------------------------------ without a browser


def unwrapped(path: Path) -> bytes:
    return base64.b64decode(
        path.read_text(encoding="utf-8").removeprefix('emhrnn.load("').removesuffix('");\n'), validate=True
    )


@pytest.mark.parametrize("variant", ["whole", "bare"])
def test_the_file_holds_the_arrays_that_its_header_lists(models: Any, variant: str) -> None:
    model, folder = models(variant)
    content = unwrapped(folder / MODEL)
    end = 8 + struct.unpack("<I", content[:4])[0]
    header, arrays = json.loads(content[8:end]), dict[str, np.ndarray]()
    for listed in header["arrays"]:
        begin, count = -(-end // 8) * 8, int(np.prod(listed["shape"], dtype=np.int64))
        arrays[listed["name"]] = np.frombuffer(content, TYPES[listed["type"]], count, begin).reshape(listed["shape"])
        end = begin + arrays[listed["name"]].nbytes
    assert end == len(content)
    reader = model.run.model
    np.testing.assert_array_equal(arrays["keys"], reader.index.keys.astype(np.uint64))
    np.testing.assert_allclose(arrays["table"], reader.phrase_table, rtol=2**-11, atol=1e-7)
    assert arrays["vocabulary"].tobytes().decode().split("\n") == model.run.vocabulary.words
    assert header["classes"] == list(model.classes)
    assert all(word in model.run.vocabulary for words in header["suggestions"].values() for word in words)


def test_the_command(cli: Cli, models: Any, run: Path, tmp_path: Path) -> None:
    trained, out = models("whole")[1].with_name("whole"), tmp_path / "out"
    assert "index.html" in cli.ok("export", trained, "--web", out).out
    assert sorted(path.name for path in out.iterdir()) == [
        "emhrnn.js",
        "index.html",
        "model.js",
        "page.js",
        "style.css",
    ]
    assert "exists and is not empty" in cli.error("export", trained, "--web", out)
    told = cli.ok("export", trained, "--web", out, "--overwrite", "--json").json
    assert told["web"]["bytes"] == len(unwrapped(out / MODEL))
    for wrong, options, has in (
        (trained, [], "--web"),
        (run, ["--web", tmp_path / "other"], "this run is em-hrnn"),
    ):
        assert has in cli.error("export", wrong, *options)
    assert not (tmp_path / "other").exists()


def test_a_fixed_segmentation_is_refused(cli: Cli, models: Any, tmp_path: Path) -> None:
    data = models("whole")[1].with_name("whole.jsonl")
    settings = ["model.name=evidence", *SHARED, "training.epochs=1", "model.segmentation=words"]
    train(data, tmp_path / "run", config=make_config(assignments=settings), progress=False)
    assert "segmentation words" in cli.error("export", tmp_path / "run", "--web", tmp_path / "out")
