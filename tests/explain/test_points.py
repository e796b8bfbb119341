"""Points of probability against the probabilities themselves."""

import numpy as np
import pytest

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


@pytest.mark.parametrize(("value", "shown"), [(0.061, "+6"), (-0.25, "\u221225"), (0.004, ""), (0.0, "")])
def test_points_are_written_for_people(value: float, shown: str) -> None:
    assert in_points(value) == shown
