"""The smallest set of phrases that changes a prediction, against trying all sets."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

from emhrnn.errors import DataError
from emhrnn.explain.counterfactual import Counterfactual, counterfactual
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import html_page
from emhrnn.explain.removal import logits_of, without
from emhrnn.training.run import Run, load_run
from tests.behaviour.commands import TINY, write_reviews

TEXT = "The soup was good, the room was bad. We hated it, and liked the waiter; the rest was cheap."


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    from emhrnn.api import train
    from emhrnn.training.config import make_config

    folder = tmp_path_factory.mktemp("counterfactual")
    config = make_config(assignments=[assignment for assignment in TINY if assignment != "--set"])
    train(write_reviews(folder / "reviews.csv", 24), folder / "run", config=config, progress=False)
    return load_run(folder / "run")


def shaken(run: Run, seed: int) -> Run:
    """Large random weights: every phrase matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.copy_(1.5 * torch.randn(parameter.shape, generator=generator))
    return run


def label_without(run: Run, explanation: Explanation, phrases: tuple[int, ...]) -> int:
    """Slowly: one set, one pass."""
    number = np.repeat(np.arange(len(explanation.phrases)), np.diff(explanation.phrase_offsets))
    z = np.zeros(len(number), dtype=bool)
    z[explanation.phrase_offsets[1:] - 1] = True
    smaller, left = without(run.encoder.encode([TEXT]), z, ~np.isin(number, phrases))
    return int(logits_of(run, smaller, left).argmax())


def smallest_by_trying(run: Run, explanation: Explanation, limit: int) -> int | None:
    before, phrases = int(explanation.probabilities.argmax()), range(len(explanation.phrases))
    for size in range(1, min(limit, len(phrases) - 1) + 1):
        if any(label_without(run, explanation, some) != before for some in combinations(phrases, size)):
            return size
    return None


@pytest.mark.parametrize("seed", range(4))
def test_what_is_found_changes_the_prediction_and_is_the_smallest(run: Run, seed: int) -> None:
    run = shaken(run, seed)
    found = counterfactual(run, TEXT, limit=2)
    explanation = found.explanation
    expected = smallest_by_trying(run, explanation, 2)
    assert found.found == (expected is not None)
    if found.found:
        assert found.predicted[0] != found.predicted[1]
        assert run.classes[label_without(run, explanation, found.phrases)] == found.predicted[1]
        assert found.smallest
        assert len(found.phrases) == expected


def test_no_phrase_of_a_larger_set_can_be_put_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pairs left out of the search, the greedy set is pruned."""
    monkeypatch.setattr("emhrnn.explain.counterfactual.WIDTH", 1)
    for seed in range(4):
        run = shaken(run, seed)
        found = counterfactual(run, TEXT)
        explanation = found.explanation
        for phrase in found.phrases if len(found.phrases) > 1 else ():
            fewer = tuple(k for k in found.phrases if k != phrase)
            assert run.classes[label_without(run, explanation, fewer)] == found.predicted[0]


def test_one_phrase_alone_cannot_be_left_out(run: Run) -> None:
    found = counterfactual(run, "Good")
    assert not found.found
    assert "stays" in found.told([], str)


def test_several_labels_have_no_counterfactual(run: Run) -> None:
    run.multi_label = True
    try:
        with pytest.raises(DataError, match="several labels"):
            counterfactual(run, TEXT)
    finally:
        run.multi_label = False


def test_the_page_tells_it_and_markup_is_inert(run: Run, tmp_path: Path) -> None:
    explanation = explain_texts(run, [TEXT])[0]
    flipped = explanation.probabilities[::-1].copy()
    told = Counterfactual(
        (0,), ("<script>x</script>",), run.classes, explanation.probabilities, flipped, True, 3, 5, explanation
    )
    page = html_page(explanation, counterfactual=told)
    assert "<script" not in page
    assert "No smaller set does that" in page
    assert told.to_dict()["after"] == dict(zip(run.classes, flipped.tolist(), strict=True))


def test_the_text_is_read_once_for_explanation_and_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []
    locate = type(run.encoder).locate
    monkeypatch.setattr(
        type(run.encoder), "locate", lambda self, texts, **names: reads.append(1) or locate(self, texts, **names)
    )
    found = counterfactual(run, TEXT)
    assert reads == [1]
    assert found.explanation.to_dict() == explain_texts(run, [TEXT], exact=True)[0].to_dict()
