"""Why not another label: exact for evidence, by removal for other models, and for every one of several labels."""

from pathlib import Path

import numpy as np
import pytest

import emhrnn
from emhrnn.errors import ConfigError
from tests.behaviour.commands import BAD, GOOD, Cli, rows, write_rows

SEVERAL = "The plot was thin. The actors were superb."


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of evidence: one of three classes, and one of several labels per document."""
    folder = tmp_path_factory.mktemp("contrast")
    three = [*rows(40), *((f"The soup was fair, visit {i}.", "fair") for i in range(20))]
    emhrnn.train(write_rows(folder / "a.csv", three), folder / "run", progress=False)
    some = [
        (f"{'The plot was thin.' if i % 2 else ''} {'The actors were superb.' if i % 3 else ''} Film {i}.",
         "|".join(["plot"] * (i % 2) + ["cast"] * (i % 3 > 0)))
        for i in range(60)
    ]  # fmt: skip
    labelled = [row for row in some if row[1]]
    emhrnn.train(write_rows(folder / "b.csv", labelled), folder / "several", progress=False)
    return folder


def test_phrases_add_up_to_the_log_odds_of_two_labels(trained: Path) -> None:
    model = emhrnn.load(trained / "run")
    for text in (GOOD, BAD):
        chances = dict(zip(model.classes, model.predict_proba([text])[0].tolist(), strict=True))
        (mine,) = model.predict([text])
        for other in set(model.classes) - {mine}:
            told = model.why_not(text, other)
            assert told.prior is not None
            total = told.prior + told.effects.sum()
            assert total == pytest.approx(np.log(chances[mine] / chances[other]), abs=1e-4)
            assert "".join(part.text for part in told.parts) == "".join(
                phrase.text for phrase in told.explanation.phrases
            )
            best = told.parts[int(told.effects.argmax())]
            assert told.strongest(1)[0][0].text == best.text


def test_effects_on_another_label(trained: Path) -> None:
    model = emhrnn.load(trained / "run")
    for label in model.classes:
        told = model.explain(GOOD, label=label)
        assert told.effects is not None
        assert told.evidence is not None
        assert told.effects.label == label
        c = model.classes.index(label)
        np.testing.assert_allclose(told.effects.phrases, told.evidence.phrases[:, c] * 3 / 2, atol=1e-9)
        assert told.subject == ("it" if label == told.predicted else label)


def test_several_labels_are_explained_one_by_one(cli: Cli, trained: Path) -> None:
    model = emhrnn.load(trained / "several")
    told = model.why_not(SEVERAL, "plot")
    share = float(model.predict_proba([SEVERAL])[0][model.classes.index("plot")])
    assert told.prior is not None
    assert told.prior + told.effects.sum() == pytest.approx(-np.log(share / (1 - share)), abs=1e-4)
    shown = cli.ok("explain", trained / "several", SEVERAL).out
    for label in model.predict([SEVERAL])[0]:
        assert shown.count(f"Most for {label}") == 1


def test_a_model_without_evidence_leaves_phrases_out(run: Path) -> None:
    model = emhrnn.load(run)
    (mine,) = model.predict([GOOD])
    other = next(name for name in model.classes if name != mine)
    told = model.why_not(GOOD, other)
    assert told.prior is None
    part = told.parts[0]
    chances = model.predict_proba([GOOD])[0]
    assert len(told.effects) == len(told.parts)
    assert part.text in GOOD
    assert np.isfinite(told.effects).all()
    assert chances.argmax() == model.classes.index(mine)
    with pytest.raises(ConfigError, match="--why-not"):
        model.explain(GOOD, label=other)


def test_the_command(cli: Cli, trained: Path) -> None:
    run = trained / "run"
    (mine,) = emhrnn.load(run).predict([GOOD])
    told = cli.ok("explain", run, GOOD, "--why-not", "fair").out
    assert "Why not fair?" in told
    assert f"For {mine} over fair" in told
    assert "add up to" in told
    facts = cli.ok("explain", run, GOOD, "--why-not", "fair", "--json").json["why_not"]
    assert isinstance(facts, dict)
    assert facts["total"] == pytest.approx(facts["prior"] + sum(part["effect"] for part in facts["parts"]))
    assert "is not a label" in cli.error("explain", run, GOOD, "--why-not", "far")
    assert "fair" in cli.error("explain", run, GOOD, "--why-not", "far")
    assert "leave out" in cli.error("explain", run, GOOD, "--why-not", mine)
    assert "one of them" in cli.error("explain", run, GOOD, "--why-not", "fair", "--counterfactual")
