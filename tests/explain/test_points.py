"""Points of probability against the probabilities themselves."""

import numpy as np
import pytest

from emhrnn.explain.counterfactual import Changes, with_change
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.points import in_points, points
from emhrnn.training.pack import located
from emhrnn.training.run import load_run

TEXT = "The staff were kind and the breakfast was wonderful. But the room was dirty."


def test_points_are_what_the_probability_falls_by() -> None:
    (explanation,) = explain_texts(load_run(located("demo")), [TEXT])
    assert explanation.evidence is not None
    chosen = int(explanation.probabilities.argmax())
    for level, parts in (
        ("phrases", explanation.evidence.phrases),
        ("sentences", explanation.evidence.sentences()),
    ):
        left = np.exp(explanation.evidence.logits() - parts)
        expected = explanation.probabilities[chosen] - left[:, chosen] / left.sum(axis=1)
        np.testing.assert_allclose(points(explanation, level), expected, atol=1e-6)
    words = points(explanation, "words")
    assert (np.sign(words) == np.sign(explanation.effects.words)).all()  # type: ignore[union-attr]


def test_points_of_a_phrase_are_what_removing_it_changes() -> None:
    """On pages; and no phrase has more than the one that the sentence names first."""
    run = load_run(located("demo"))
    (explanation,) = explain_texts(run, [TEXT], exact=True)
    batch = run.encoder.encode([TEXT])
    shown = with_change(run, batch, explanation)
    chosen, changes = int(shown.probabilities.argmax()), Changes(run, batch, shown)
    for k, value in enumerate(points(shown, "phrases").tolist()):
        change = changes.without([k])
        assert change is not None
        assert value == pytest.approx(shown.probabilities[chosen] - change.probabilities[chosen], abs=1e-6)
    lone = [k for k, sentence in enumerate(shown.sentences) if len(sentence.phrases) == 1]
    for k in lone:
        first = shown.sentence_offsets[k]
        assert points(shown, "sentences")[k] == points(shown, "phrases")[first]
    path = shown.decisive_path()
    assert path is not None
    assert path.phrase == shown.phrases[int(points(shown, "phrases").argmax())]


@pytest.mark.parametrize(("value", "shown"), [(0.061, "+6"), (-0.25, "\u221225"), (0.004, ""), (0.0, "")])
def test_points_are_written_for_people(value: float, shown: str) -> None:
    assert in_points(value) == shown
