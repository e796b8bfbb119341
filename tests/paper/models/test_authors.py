"""What CMA does without ids; test_networks.py has the rest."""

import pytest
import torch

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.models.authors import CMA, CMAConfig
from tests.models.examples import (
    CLASSES,
    PLAIN,
    generator_of,
    make_batch,
    make_table,
)

IDS = 4


def small(seed: int = 0, *, users: int = IDS, **settings) -> CMA:
    config = CMAConfig(**PLAIN | {"id_size": 3, "word_size": 4, "sentence_size": 5, "attention_size": 6} | settings)
    return CMA(
        config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), users=users, products=IDS
    )  # fmt: skip


def test_without_ids_the_batch_needs_none() -> None:
    with_ids, without = make_batch([[3], [2, 4]], ids=IDS), make_batch([[3], [2, 4]])
    assert torch.equal(small(ids=False, users=0)(with_ids).logits, small(ids=False, users=0)(without).logits)


def test_errors() -> None:
    with pytest.raises(ConfigError, match=r"reads user ids and the data has none; .* or set model.ids=false"):
        small(users=0)
    with pytest.raises(DataError, match="reads user ids and the data has none; give data with a user column"):
        small()(make_batch([[3]]))
    batch = make_batch([[3]], ids=IDS)
    batch.products[:] = IDS
    with pytest.raises(
        DataError, match="product id 4 where the model knows 4; ids that training has not seen must be -1"
    ):
        small()(batch)
