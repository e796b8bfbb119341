"""Every row of the table can be built, predicts, and says what it is."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch

from emhrnn.errors import ConfigError
from emhrnn.models.fitting import Fitted
from emhrnn.models.row import Sizes
from emhrnn.models.table import MODELS, build_model
from tests.models.examples import CLASSES, VOCABULARY, make_batch, make_table

SIZES = Sizes(
    classes=CLASSES, users=4, products=4, features=4, dense_size=8, means=3, max_features=50, buckets=50, word_size=6
)
WORDS = ["<unk>", *(f"word{i}" for i in range(1, VOCABULARY))]
OFFLINE = sorted(MODELS.keys() - {"transformer"})


@pytest.mark.parametrize("name", OFFLINE)
def test_every_row_is_built_and_predicts(name) -> None:
    batch = make_batch([[3, 2], [4], [1, 1]], ids=4)
    model = build_model(name, SIZES, make_table(), WORDS, seed=1)
    output = model(batch)
    assert output.logits.shape == (3, CLASSES)
    assert output.v.shape[0] == 3
    again = build_model(name, SIZES, make_table(), WORDS, seed=1)
    assert torch.equal(again(batch).logits, output.logits)
    shown = {
        "words": output.alpha is not None,
        "phrases": output.beta is not None,
        "sentences": output.gamma is not None,
        "boundaries": output.z is not None,
    }
    if name != "evidence":  # which shows a segmentation with the evidence of its phrases, on request
        assert {weights for weights, there in shown.items() if there} == set(MODELS[name].shows)
    assert isinstance(model, Fitted) == (MODELS[name].learns == "fit")


def test_rows_say_what_they_are() -> None:
    for row in MODELS.values():
        facts = json.loads(json.dumps(row.to_dict()))
        assert facts.keys() == {"learns", "reference", "needs", "shows", "reads", "settings", "undrawn"}


def test_a_row_draws_unless_its_settings_leave_nothing_to_draw() -> None:
    for frozen in (False, True):
        undrawn = [name for name, row in MODELS.items() if not row.draws({"frozen": frozen})]
        assert undrawn == ["transformer"] * frozen


FACTS = {
    "classes",
    "several",
    "users",
    "products",
    "rate",
    "upper_rate",
    "encoder",
}  # no settings of the section `model`


@pytest.mark.parametrize("name", OFFLINE)
def test_a_row_reads_what_it_says(name: str) -> None:
    """A setting that is read and not said would be left out of a comparison's record of the run."""
    read = set()

    class Watched(Sizes):
        def __getattribute__(self, attribute: str) -> Any:
            if attribute in Sizes.__dataclass_fields__:
                read.add(attribute)
            return super().__getattribute__(attribute)

    sizes = Watched(**asdict(replace(SIZES, ngrams=True)))
    build_model(name, sizes, make_table(), WORDS, seed=0)
    assert read <= {*MODELS[name].reads, *FACTS}
    assert {*MODELS[name].reads} <= {*read, *FACTS, "embedding_size", "id_count"}  # these are about the data


def test_errors() -> None:
    with pytest.raises(ConfigError, match="unknown model 'hann'; did you mean 'hm-rnn'\\? `emhrnn models` lists"):
        build_model("hann", SIZES, make_table(), WORDS, seed=0)
    with pytest.raises(ConfigError, match=r"set model.pretrained: give a folder"):
        build_model("transformer", SIZES, make_table(), WORDS, seed=0)
    with pytest.raises(ConfigError, match="reads user ids and the data has none"):
        build_model("cma", replace(SIZES, users=0), make_table(), WORDS, seed=0)
