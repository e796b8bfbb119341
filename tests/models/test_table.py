"""Every row of the table can be built, predicts, and says what it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from emhrnn.errors import ConfigError
from emhrnn.models.row import Facts
from emhrnn.models.settings import ModelConfig, TransformerConfig
from emhrnn.models.table import MODELS, build_model
from tests.models.examples import CLASSES, VOCABULARY, make_batch, make_table

FACTS = Facts(classes=CLASSES, users=4, products=4)
SMALL = {"features": 4, "dense_size": 8, "means": 3, "max_features": 50, "buckets": 50, "word_size": 6}
WORDS = ["<unk>", *(f"word{i}" for i in range(1, VOCABULARY))]
OFFLINE = sorted(MODELS.keys() - {"transformer"})


def small(name: str) -> ModelConfig:
    kind = MODELS[name].config
    return kind(name=name, **{key: value for key, value in SMALL.items() if key in kind.model_fields})


@pytest.mark.parametrize("name", OFFLINE)
def test_every_row_is_built_and_predicts(name) -> None:
    batch = make_batch([[3, 2], [4], [1, 1]], ids=4)
    model = build_model(small(name), FACTS, make_table(), WORDS, seed=1)
    inferred = model.infer(batch)
    assert inferred.logits.shape == (3, CLASSES)
    assert inferred.v.shape[0] == 3
    again = build_model(small(name), FACTS, make_table(), WORDS, seed=1)
    assert np.array_equal(again.infer(batch).logits, inferred.logits)
    assert model.fits_at_once == (MODELS[name].learns == "fit")
    if not isinstance(model, torch.nn.Module):
        assert not MODELS[name].shows
        return
    output = model(batch)
    shown = {
        "words": output.alpha is not None,
        "phrases": output.beta is not None,
        "sentences": output.gamma is not None,
        "boundaries": output.z is not None,
    }
    if name != "evidence":  # which shows a segmentation with the evidence of its phrases, on request
        assert {weights for weights, there in shown.items() if there} == set(MODELS[name].shows)


def test_every_setting_has_a_line_of_help_and_a_valid_default() -> None:
    for name, row in MODELS.items():
        assert row.config(name=name).name == name
        for key, field in row.config.model_fields.items():
            assert field.description, f"{name}: {key}"


def test_a_model_draws_unless_its_settings_leave_nothing_to_draw() -> None:
    assert all(row.config().draws for row in MODELS.values())
    assert not TransformerConfig(frozen=True).draws


@pytest.mark.parametrize("name", OFFLINE)
def test_a_model_reads_all_its_settings(name: str) -> None:
    """A setting that nothing reads would be shown, written down and without effect."""
    read = set()

    class Watched(MODELS[name].config):  # type: ignore[name-defined,misc]
        def __getattribute__(self, attribute: str) -> Any:
            read.add(attribute)
            return super().__getattribute__(attribute)

    build_model(Watched(**small(name).model_dump()), FACTS, make_table(), WORDS, seed=0)
    of_data = {"embedding_size", "id_count", "rate", "rationales"}
    assert MODELS[name].config.model_fields.keys() - of_data <= read


def test_errors() -> None:
    with pytest.raises(ConfigError, match="unknown model 'hann'; did you mean 'hm-rnn'\\? `emhrnn models` lists"):
        build_model(ModelConfig(name="hann"), FACTS, make_table(), WORDS, seed=0)
    with pytest.raises(ConfigError, match=r"set model.pretrained: give a folder"):
        build_model(small("transformer"), FACTS, make_table(), WORDS, seed=0)
    with pytest.raises(ConfigError, match="reads user ids and the data has none"):
        build_model(small("cma"), replace(FACTS, users=0), make_table(), WORDS, seed=0)
