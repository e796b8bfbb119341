"""A text unlike those of training carries a warning, the same at every door."""

import json
from io import StringIO

import pytest
from rich.console import Console

from emhrnn.corpus import TextSettings
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import html_page
from emhrnn.explain.terminal import print_explanation

from .evidence import REVIEW, make_run

RUN = make_run()


def explained(text: str, lengths: tuple[int, int] | None = None) -> Explanation:
    RUN.lengths = lengths
    (explanation,) = explain_texts(RUN, [text])
    return explanation


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Good soup, good soup.", ()),
        ("Good soup, asdfg.", ()),  # one of three
        ("Good, asdfg.", ("50% of the words are unknown",)),
        ("Good soup asdfg qwertz yxcvb bnmkl poiuz lkjhg.", ("75% of the words are unknown",)),
        ("Qwertz asdfg.", ("100% of the words are unknown",)),
        ("... !!!", ()),  # punctuation is not a word to know
    ],
)
def test_unknown_words_are_warned_of_from_one_half(text: str, told: tuple[str, ...]) -> None:
    warnings = explained(text).warnings
    assert len(warnings) == len(told)
    assert all(warning.startswith(start) for warning, start in zip(warnings, told, strict=True))


@pytest.mark.parametrize(
    ("words", "lengths", "told"),
    [
        (4, (12, 50), ""),
        (4, (13, 50), "4 words, the shortest training document 13"),
        (30, (1, 10), ""),
        (31, (1, 10), "31 words, the longest training document 10"),
        (31, None, ""),
    ],
)
def test_lengths_far_from_those_of_training_are_warned_of(
    words: int, lengths: tuple[int, int] | None, told: str
) -> None:
    warnings = explained(" ".join(["good"] * words), lengths).warnings
    assert bool(warnings) == bool(told)
    assert all(told in warning for warning in warnings)


@pytest.mark.parametrize(("language", "told"), [("en", "another language (de)"), ("de", "")])
def test_another_language_is_warned_of(language: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if half of the words are known: word vectors have those of many languages."""
    monkeypatch.setattr(RUN, "text", TextSettings(language=language))
    warnings = explained("Good, good soup, good soup, good soup: die Suppe war leider nicht gut.").warnings
    assert len(warnings) == bool(told)
    assert all(told in warning for warning in warnings)


def test_each_text_of_a_batch_has_its_own() -> None:
    RUN.lengths = (1, 5)
    plain, strange, long = explain_texts(RUN, ["Good soup.", "Asdfg.", REVIEW])
    assert plain.warnings == ()
    assert "unknown" in strange.warnings[0]
    assert "longest" in long.warnings[0]


def test_every_door_shows_them() -> None:
    explanation = explained("Qwertz asdfg.", (30, 40))
    assert len(explanation.warnings) == 2
    terminal = StringIO()
    print_explanation(explanation, Console(file=terminal, width=200))
    data = json.loads(json.dumps(explanation.to_dict()))
    for warning in explanation.warnings:
        assert warning in terminal.getvalue()
        assert warning in html_page(explanation)
        assert warning in data["warnings"]
