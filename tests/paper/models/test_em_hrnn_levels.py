"""Levels against plain loops; they take turns to learn, with those below frozen."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.api import train
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.em.blocks import exact_blocks
from emhrnn.em.steps import e_step
from emhrnn.errors import ConfigError
from emhrnn.models.em_hrnn import EMHRNNConfig
from emhrnn.models.row import Facts
from emhrnn.models.table import build_em_hrnn
from emhrnn.paper.models.em_hrnn_levels import EMHRNNLevels
from emhrnn.paper.simulation.learners import newton_indicator
from emhrnn.training.config import make_config
from emhrnn.training.run import load_run
from emhrnn.training.schedule import stage
from tests.models.examples import (
    CLASSES,
    PLAIN,
    VOCABULARY,
    check_sums_to_one,
    check_survives_saving,
    enlarged,
    make_batch,
    make_table,
    seeds,
    sentences_of,
    shapes,
)
from tests.oracles import em_hrnn_levels as oracle


def small(seed: int = 0, levels: int = 3) -> EMHRNNLevels:
    config = EMHRNNConfig(
        levels=levels, word_size=4, phrase_size=3, sentence_size=5, attention_size=6, bidirectional_words=False,
        cell="gru" if seed // 2 % 2 else "lstm", **PLAIN,
    )  # fmt: skip
    model = build_em_hrnn(config, Facts(classes=CLASSES, rate=0.6), make_table(seed), ["word"] * VOCABULARY, seed)
    assert isinstance(model, EMHRNNLevels)
    return model


def risen(seed: int = 0, levels: int = 3) -> EMHRNNLevels:
    """All levels at work, with weights that matter."""
    model = small(seed, levels)
    enlarged(model)
    while int(model.level) < levels - 1:
        model.rise()
    for level in model.levels:
        torch.nn.init.zeros_(level.indicator.bias)
    return model


def cuts(model: EMHRNNLevels, batch: Batch, document: int) -> list[list[list[bool]]]:
    """z of each level, a list per sentence."""
    found = []
    for k, level in enumerate(model.levels):
        model.level.fill_(k)
        units = model.units(batch)
        z = level.segment(units, level.words(units))
        begin, end = batch.document_offsets[document], batch.document_offsets[document + 1]
        offsets = units.sentence_offsets
        found.append([z[offsets[i] : offsets[i + 1]].tolist() for i in range(begin, end)])
    return found


@settings(max_examples=8, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(lengths, seed) -> None:
    model, batch = risen(seed % 1000), make_batch(lengths, seed)
    output = model(batch)
    for document in range(batch.n_documents):
        slow = oracle.document_logits(list(model.levels), sentences_of(batch, document), cuts(model, batch, document))
        torch.testing.assert_close(output.logits[document], slow, atol=1e-9, rtol=1e-7)
    phrases_before = np.concatenate([[0], np.cumsum(output.z)])
    check_sums_to_one(output.alpha, np.concatenate([[0], np.flatnonzero(output.z) + 1]))
    check_sums_to_one(output.beta, phrases_before[batch.sentence_offsets])
    check_sums_to_one(output.gamma, batch.document_offsets)


def test_one_level_is_em_hrnn() -> None:
    alone, model = (
        build_em_hrnn(
            EMHRNNConfig(word_size=4, levels=levels, skip=False, ngrams=False, pauses=False),
            Facts(classes=CLASSES), make_table(), ["word"] * VOCABULARY, 0,
        )
        for levels in (1, 2)
    )  # fmt: skip
    batch = make_batch([[3, 2], [4]])
    assert torch.equal(alone(batch).logits, model(batch).logits)


def test_a_new_level_changes_what_it_adds_and_no_more() -> None:
    model, batch = small(levels=2), make_batch([[5, 6], [4]])
    first = {name: p.clone() for name, p in model.levels[0].named_parameters()}
    model.rise()
    assert all(torch.equal(p, first[name]) for name, p in model.levels[0].named_parameters())
    below, top = model.levels
    assert torch.equal(top.word_layer.state_weight, below.phrase_layer.state_weight)
    assert torch.equal(top.output.weight, below.output.weight)
    model(batch).logits.sum().backward()
    assert all(p.grad is None or p.grad.abs().sum() > 0 for p in top.parameters())


def test_frozen_levels_get_no_gradient() -> None:
    model, batch = risen(levels=2), make_batch([[5, 6], [4]])
    units = model.units(batch)
    top = model.top
    top.encode(units, top.words(units), units.sentence_final).logits.sum().backward()
    assert all(p.grad is None for p in model.levels[0].parameters())
    assert top.word_layer.state_weight.grad.abs().sum() > 0


def test_em_never_lowers_the_likelihood() -> None:
    """Exact EM of the top's indicator, theta fixed: the E-steps serve phrases as they serve words."""
    model, batch = risen(levels=2), make_batch([[6, 6], [5], [6, 3]], seed=1)
    units, top = model.units(batch), model.top
    blocks = exact_blocks(units)
    assert blocks.free.sum() > 3
    evidence = []
    for _ in range(6):
        states = top.words(units)
        posterior = e_step(top, units, states, units.sentence_final.copy(), blocks)
        evidence.append(float(posterior.evidence.sum()))
        free = torch.from_numpy(~units.sentence_final)
        newton_indicator(top.indicator, states.h1, posterior.marginals(), free, steps=5)
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(evidence))
    assert evidence[-1] > evidence[0]


def test_survives_saving() -> None:
    model, fresh = small(), small(1)
    model.rise()
    check_survives_saving(model, fresh, make_batch([[5, 6], [4]]))
    assert int(fresh.level) == 1


SETTINGS = (
    "model.levels=2", "training.epochs=4", "training.batch_words=500", "em.blocks=2", "em.block_length=3",
    "model.embedding_size=8", "model.word_size=6", "model.phrase_size=5", "model.sentence_size=4",
    "model.attention_size=4",
)  # fmt: skip


def test_the_levels_share_the_epochs() -> None:
    assert [stage(5, 2, epoch) for epoch in range(5)] == [(0, 0, 2), (0, 0, 2), (1, 2, 5), (1, 2, 5), (1, 2, 5)]
    assert stage(12, 1, 7) == (0, 0, 12)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("levels") / "reviews.jsonl"
    rows = [{"text": review.text, "label": review.label} for review in generate_reviews(40, seed=0)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_trains_bottom_up_and_goes_on_as_if_it_had_never_stopped(data: Path, tmp_path: Path) -> None:
    kept = []

    def stop(epoch) -> None:
        kept.append(epoch.phase)
        if epoch.epoch == 2:  # in the middle of the second level
            raise KeyboardInterrupt

    config = make_config(assignments=SETTINGS, model="em-hrnn")
    whole = train(data, tmp_path / "whole", config=config, progress=False)
    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "run", config=config, progress=False, on_epoch=stop)
    more = make_config(
        assignments=["training.epochs=12"], model="em-hrnn"
    )  # of which the third would be the first level's
    with pytest.raises(ConfigError, match=r"epochs = 12, but .* was started with 4, and its levels share them; leave"):
        train(None, tmp_path / "run", resume=True, config=more, progress=False)
    resumed = train(None, tmp_path / "run", resume=True, progress=False)
    assert kept == ["1 warm-up", "1 em", "2 warm-up"]
    assert [epoch.phase for epoch in resumed.fitted.epochs] == [*kept, "2 em"]
    model, loaded = resumed.model.run.model, load_run(tmp_path / "run").model
    assert isinstance(model, EMHRNNLevels)
    assert int(model.level) == 1
    for name, tensor in whole.model.run.model.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
        assert torch.equal(tensor, loaded.state_dict()[name]), name
    batch = whole.valid.batch(np.arange(len(whole.valid)))
    below = model.units(batch)
    top = model.top.segment(below, model.top.words(below))
    assert below.n_words < batch.n_words
    assert below.n_sentences < top.sum() < below.n_words


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"hn-att has no setting 'model\.levels', which is for em-hrnn"):
        make_config(assignments=["model.name=hn-att", "model.levels=2"], model="em-hrnn")
