"""The search space: every range is valid for its setting, every system has one, and what is wrong is told."""

from typing import Any

import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from emhrnn.errors import ConfigError
from emhrnn.models.table import MODELS
from emhrnn.training.config import make_config, with_settings
from emhrnn.tuning.space import assignments_of, distributions, holds, space_of

CONFIG = make_config(model="em-hrnn")


@pytest.mark.parametrize("name", MODELS)
def test_every_system_has_a_space_of_valid_settings(name: str) -> None:
    config = make_config(assignments=[f"model.name={name}"], model="em-hrnn")
    space = distributions(space_of(config), name)
    assert space
    for setting, one in space.items():
        ends = one.choices if isinstance(one, CategoricalDistribution) else (one.low, one.high)  # type: ignore[attr-defined]
        for value in ends:
            with_settings(config, {setting: value})


def test_settings_that_would_do_nothing_do_not_vary() -> None:
    paper = make_config("paper")
    assert "training.batch_words" not in space_of(paper)
    for cut, expected in (("every-4", []), ("random", ["em.rate"])):
        fixed = space_of(make_config(assignments=[f"model.segmentation={cut}"], model="em-hrnn"))
        assert [name for name in fixed if name.startswith("em.")] == expected
    assert "em.blocks" not in space_of(make_config(assignments=["em.estep=blocks"], model="em-hrnn"))
    one_epoch = space_of(make_config(assignments=["training.epochs=1"], model="em-hrnn"))
    assert "em.warmup_epochs" not in distributions(one_epoch, "em-hrnn")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training.learning_rate=0.001:1:log", FloatDistribution(0.001, 1.0, log=True)),
        ("em.blocks=2:8", IntDistribution(2, 8)),
        ("model.dropout=0:1e-1", FloatDistribution(0.0, 0.1)),
        ("training.decay=none, cosine", CategoricalDistribution(["none", "cosine"])),
        ("em.focus=true,false", CategoricalDistribution([True, False])),
        ("model.C=1:10", FloatDistribution(1.0, 10.0)),
        ("model.fit_epochs=1:3", IntDistribution(1, 3)),
    ],
)
def test_notation(text: str, expected: BaseDistribution) -> None:
    name = text.partition("=")[0]
    model = {"model.C": "tfidf-lr", "model.fit_epochs": "fasttext"}.get(name, "em-hrnn")
    assert distributions(assignments_of([text]), model) == {name: expected}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training.learning_rat=1:2", "unknown setting 'training.learning_rat'; did you mean 'training.learning_rate'"),
        ("learning_rate", "cannot read --vary 'learning_rate'; write section.key=low:high"),
        ("training.learning_rate=", "cannot read --vary"),
        ("training.learning_rate=1:2:3", "cannot read --vary"),
        ("training.learning_rate=2:1", "the range '2:1' of training.learning_rate is empty"),
        ("model.dropout=0:0.5:log", "is logarithmic and starts at 0.0; start above 0"),
        ("model.dropout=0:1.5", "model.dropout = 1.5: input should be less than 1"),
        ("em.blocks=1:2.5", "em.blocks = 2.5: input should be a valid integer"),
        ("em.focus=true:false", "em.focus is not a number, but 'true:false' is a range; give its values as a list"),
        ("training.decay=fast,slow", "training.decay = 'fast'"),
        ("model.C=1:2", "em-hrnn has no setting 'model.C', which is for tfidf-lr"),
        ("training.seed=1,2", "training.seed cannot vary: all trials share it; give it once with --set"),
    ],
)
def test_wrong_notation(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        distributions(assignments_of([text]), "em-hrnn")
    assert message in str(error.value)


@pytest.mark.parametrize(("value", "inside"), [(0.1, True), (0.5, True), (0.6, False), ("x", False), (None, False)])
def test_holds(value: Any, inside: bool) -> None:
    assert holds(FloatDistribution(0.0, 0.5), value) is inside
