import io
import re
import unicodedata

import pytest
from hypothesis import given, settings
from rich.cells import cell_len
from rich.console import Console

from emhrnn.api import load
from emhrnn.explain.escape import BIDI_CONTROLS
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.page import percent, signed
from emhrnn.explain.terminal import print_explanation

from .documents import HOSTILE, explained, ragged


def printed(
    explanation: Explanation,
    *,
    width: int = 80,
    colour: str | None = None,
    encoding: str = "utf-8",
    attention: bool = False,
) -> str:
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding=encoding, newline="\n")
    kind = {"force_terminal": True, "color_system": colour} if colour else {"color_system": None}
    console = Console(file=stream, width=width, highlight=False, legacy_windows=False, **kind)  # type: ignore[arg-type]
    print_explanation(explanation, console, attention=attention)
    stream.flush()
    return buffer.getvalue().decode(encoding)


def test_punctuation_is_not_marked() -> None:
    text = printed(load("demo").explain("The waiter was rude, but the food was not bad."), width=300)
    assert "*bad*." in text
    assert "*.*" not in text


def test_without_colour_signs_say_what_colour_would() -> None:
    explanation = explained()
    text = " ".join(printed(explanation, width=300).split())
    assert "\x1b" not in text
    best = explanation.top_phrases(1)[0]
    assert f"]{signed(best.effect or 0)}" in text
    assert " // " in text
    assert all(signed(sentence.effect or 0) in text for sentence in explanation.sentences)


def test_attention_is_shown_on_request_and_named() -> None:
    explanation = explained()
    assert "attention" not in printed(explanation).lower()
    text = printed(explanation, width=200, attention=True)
    for sentence in explanation.sentences:
        assert f"attention {percent(sentence.weight)}" in text
    assert "Attention, where the model looked, was highest on" in text


def test_with_colour_the_text_itself_carries_no_signs() -> None:
    text = re.sub(r"\x1b\[[\d;]*m", "", printed(explained(), colour="truecolor"))
    assert "*" not in text
    assert "[" not in text


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(explained(), colour="truecolor")
    assert "38;2" not in text
    assert "]+" in text


@pytest.mark.parametrize("colour", [None, "standard", "256", "truecolor"])
def test_a_document_cannot_command_the_terminal(colour: str | None) -> None:
    text = printed(explained(HOSTILE, label=HOSTILE, classes=("good", HOSTILE)), colour=colour)
    ours = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert "[31m" in ours  # the document's escape sequence, as letters
    assert {c for c in ours if unicodedata.category(c) in ("Cc", "Cs")} <= {"\n"}
    assert not set(BIDI_CONTROLS) & set(ours)


@given(ragged())
@settings(max_examples=25, deadline=None)
def test_lines_keep_to_the_width(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    for width in (30, 80):
        assert all(cell_len(line) <= width for line in printed(explanation, width=width).splitlines())


def test_an_ascii_console_gets_ascii() -> None:
    text = printed(explained("caf\u00e9 \U0001f600 good."), encoding="ascii")
    assert "caf\\xe9" in text
    assert "#" in text


def test_rich_markup_in_a_document_is_text() -> None:
    assert "[bold]x[/bold]" in printed(
        explained("[bold]x[/bold] [link=http://x]y[/link] ."), colour="truecolor", width=200
    )


def test_the_prediction_and_the_truth_are_named() -> None:
    explanation = explained(label="so-so")
    text = printed(explanation)
    assert text.startswith(f"{explanation.predicted}  model: EM-HRNN")
    assert ("correct" if explanation.correct else "wrong") + ": labelled so-so" in text
