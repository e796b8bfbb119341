"""The verdict that every page shows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import emhrnn
from emhrnn.explain.counterfactual import with_change
from emhrnn.explain.explanation import Change
from emhrnn.explain.html import html_page
from emhrnn.explain.verdict import because, certainty, class_tables, verdict
from emhrnn.training.pack import located
from tests.behaviour.commands import GOOD, Cli

from .documents import HOSTILE, explained
from .parsed import ELEMENTS, Page

MIXED = "The staff were kind and the breakfast was wonderful. But the room was dirty and the bed was awful."


def test_many_classes_fold_away() -> None:
    names, chances = [f"class {k}" for k in range(9)], np.arange(9) / 36
    drawn = class_tables(names, chances, ("class 0", "class 8"), chances + 0.001)
    assert "6 more classes" in drawn
    assert [name for name in names if f">{name}<" in drawn] == names
    assert drawn.index(">class 8<") < drawn.index("<details>") < drawn.index(">class 5<")
    assert drawn.count('class="chosen"') == 2
    assert ">0<" in drawn  # a thousandth less, and no minus before nothing


@pytest.mark.parametrize(
    ("chances", "predicted", "told"),
    [
        ([0.45, 0.55], "b", "unsure"),
        ([0.3, 0.7], "b", "fairly sure"),
        ([0.1, 0.9], "b", "sure"),
        ([1.0], "a", "sure"),
        ([0.45, 0.99], ("b",), "unsure"),
        ([0.01, 0.99], ("b",), "sure"),
    ],
)
def test_how_sure_a_label_is(chances: list[float], predicted: str | tuple[str, ...], told: str) -> None:
    assert certainty(np.array(chances), predicted) == told


def test_before_and_after_stand_side_by_side() -> None:
    explanation = explained()
    flipped = explanation.probabilities[::-1].copy()
    drawn = verdict(explanation, "Predicted", Change((0, 2), ("a", "b"), flipped, explanation.classes[0]))
    assert "Without 2 phrases" in drawn
    assert drawn.count('class="prediction"') == 2


def test_one_sentence_says_what_decided() -> None:
    explanation = explained()
    low, name = explanation.probabilities / 2, str(explanation.predicted)
    assert "Decided most by" in because(explanation)
    stays = because(replace(explanation, change=Change((0,), (HOSTILE,), low, name)))
    assert f"supports {name} most. Even without it, it would be <b>{name}</b>" in stays
    assert "<script" not in stays
    turned = because(replace(explanation, change=Change((0, 1, 2, 3), tuple("abcd"), low, "bad")))
    assert "1 more phrase it would be <b>bad</b>" in turned


def test_pages_say_what_the_viewer_says(cli: Cli, tmp_path: Path) -> None:
    """The sentence is that of `Changes.deciding`, whichever page shows it; and the model was run to see."""
    run = emhrnn.load(located(Path("demo"))).run
    page = tmp_path / "why.html"
    cli("explain", located(Path("demo")), MIXED, "--html", page)
    told = Page(page.read_text(encoding="utf-8"))
    explanation = with_change(run, run.encoder.encode([MIXED]), emhrnn.load(located(Path("demo"))).explain(MIXED))
    change = explanation.change
    assert change is not None
    assert change.predicted != explanation.predicted
    assert f"it would be {change.predicted}." in told.text
    assert f"Predicted by {explanation.model}" in told.text
    assert told.elements <= ELEMENTS
    left = "".join(phrase.text + " " for k, phrase in enumerate(explanation.phrases) if k not in change.phrases)
    assert emhrnn.load(located(Path("demo"))).predict([left]) == [change.predicted]


def test_a_notebook_without_a_model_says_what_decided() -> None:
    assert "Decided most by" in Page(html_page(explained(GOOD))).text
