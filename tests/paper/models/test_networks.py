"""Every network against its oracle, and what all of them promise. HM-RNN, MHS-RNN and CNN-word have tests of their own
for what they find; here they learn."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.corpus.batch import Batch
from emhrnn.models.model import DocumentModel
from emhrnn.paper.models import rows as configs
from emhrnn.paper.models.authors import CMA, BasisCust
from emhrnn.paper.models.flat import CNNWord, MeanLSTM
from emhrnn.paper.models.hierarchical import GRNN, HAN
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_learns,
    check_logits_and_gradients,
    check_sums_to_one,
    check_survives_saving,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    seeds,
    sentences_of,
    separable_batch,
    shapes,
)
from tests.oracles import basis_cust, cma, grnn, han, lstm

IDS = 4


@dataclass(frozen=True)
class Network:
    """How a small one is built, what its oracle is, and how it learns: its settings then, documents, steps, rate."""

    model: type[DocumentModel]
    config: type[configs.NetworkConfig]
    sizes: dict[str, Any]
    oracle: ModuleType | None = None
    option: dict[str, str] = field(default_factory=dict)  # beside the settings; the oracle takes it, too
    weighs: bool = False  # words and sentences
    ids: bool = False
    learner: dict[str, Any] = field(default_factory=dict)
    documents: int = 32
    descent: dict[str, Any] = field(default_factory=dict)

    def make(self, seed: int = 0, **given: Any) -> DocumentModel:
        config = self.config(**PLAIN | self.sizes | given)
        facts: dict[str, Any] = {**self.option, **({"users": IDS, "products": IDS} if self.ids else {})}
        return self.model(config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), **facts)

    def slow_logits(self, model: DocumentModel, batch: Batch, d: int) -> torch.Tensor:
        ids = (int(batch.users[d]), int(batch.products[d])) if self.ids else ()
        return self.oracle.logits(model, *self.option.values(), sentences_of(batch, d), *ids)


TWO, ATTENTION, WIDE = {"word_size": 4, "sentence_size": 3}, {"attention_size": 6}, {"word_size": 8}
SLOWLY, BRIEFLY = {"steps": 100}, {"steps": 60, "learning_rate": 0.03}
OF_IDS = {"id_size": 3, "word_size": 4, "attention_size": 6}
NETWORKS = {
    "lstm": Network(MeanLSTM, configs.FlatConfig, {"word_size": 4}, lstm, learner=WIDE, descent=SLOWLY),
    "hn-att": Network(HAN, configs.AttentionConfig, TWO | ATTENTION, han, {"pooling": "attention"}, weighs=True),
    "hn-ave": Network(HAN, configs.HierarchyConfig, TWO, han, {"pooling": "mean"}),
    "hn-max": Network(HAN, configs.HierarchyConfig, TWO, han, {"pooling": "max"}),
    "conv-grnn": Network(
        GRNN, configs.HierarchyConfig, TWO, grnn, {"sentences": "convolution"}, learner=WIDE, descent=SLOWLY
    ),
    "lstm-grnn": Network(GRNN, configs.HierarchyConfig, TWO, grnn, {"sentences": "lstm"}, learner=WIDE, descent=SLOWLY),
    "cma": Network(CMA, configs.CMAConfig, OF_IDS | {"sentence_size": 5}, cma, weighs=True, ids=True),
    "cma without ids": Network(
        CMA, configs.CMAConfig, OF_IDS | {"sentence_size": 5, "ids": False}, cma, weighs=True, ids=True
    ),
    "basis-cust": Network(
        BasisCust, configs.BasisCustConfig, OF_IDS | {"bases": 2}, basis_cust, weighs=True, ids=True
    ),
    "hm-rnn": Network(HMRNN, configs.HMRNNConfig, WIDE, documents=18, descent=BRIEFLY),
    "mhs-rnn": Network(MHSRNN, configs.HierarchyConfig, TWO | WIDE, documents=18, descent=BRIEFLY),
    "mhs-rnn-att": Network(MHSRNN, configs.AttentionConfig, TWO | ATTENTION | WIDE, documents=18, descent=BRIEFLY),
    "cnn-word": Network(
        CNNWord, configs.CNNWordConfig, {"features": 16, "dense_size": 16, "length": 123},
        descent={"steps": 60, "learning_rate": 0.01},
    ),
}  # fmt: skip
WITH_ORACLE = [name for name, network in NETWORKS.items() if network.oracle is not None]
WITHOUT_IDS = [name for name, network in NETWORKS.items() if not network.ids]


@pytest.mark.parametrize("name", WITH_ORACLE)
@settings(max_examples=8, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(name: str, lengths: list[list[int]], seed: int) -> None:
    network = NETWORKS[name]
    model, batch = enlarged(network.make(seed)), make_batch(lengths, seed, ids=IDS if network.ids else 0)
    output = check_logits_and_gradients(model, batch, lambda d: network.slow_logits(model, batch, d))
    if network.weighs:
        check_sums_to_one(output.alpha, batch.sentence_offsets)
        check_sums_to_one(output.gamma, batch.document_offsets)
    else:
        assert output.alpha is None
        assert output.gamma is None


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_learns_and_survives_saving(name: str) -> None:
    network = NETWORKS[name]
    model = network.make(tune_embedding=True, dropout=0.1, **network.learner)
    batch = separable_batch(network.documents)
    check_learns(model, batch, **network.descent)
    model.set_epoch(3)
    check_survives_saving(model, network.make(1, tune_embedding=True, **network.learner), batch)


@pytest.mark.parametrize(
    ("name", "learner", "rate"),
    [
        ("cma", {"tune_embedding": True, "word_size": 8}, 0.03),
        ("basis-cust", {"bases": 3, "id_size": 4}, 0.05),
    ],
)
def test_learns_from_ids_alone(name: str, learner: dict[str, Any], rate: float) -> None:
    """All documents say the same; only who wrote it tells the class."""
    batch = make_batch([[2]] * 12, ids=IDS)
    batch.words[:] = np.tile([3, 4], 12)  # ids that only steer attention need words that differ
    batch.users[:] = np.arange(12) % CLASSES
    batch.labels[:] = batch.users
    model = NETWORKS[name].make(**learner)
    check_learns(model, batch, steps=100, learning_rate=rate)
    check_survives_saving(model, NETWORKS[name].make(1, **learner), batch)


@pytest.mark.parametrize("name", WITHOUT_IDS)
def test_the_seed_decides(name: str) -> None:
    make, batch = NETWORKS[name].make, make_batch([[3, 2], [4]])
    assert torch.equal(make(3)(batch).logits, make(3)(batch).logits)
    assert not torch.equal(make(3)(batch).logits, make(4)(batch).logits)
    model = make(dropout=0.5)
    assert torch.equal(model(batch, generator_of(0)).logits, model(batch, generator_of(0)).logits)
    assert not torch.equal(model(batch, generator_of(0)).logits, model(batch).logits)
