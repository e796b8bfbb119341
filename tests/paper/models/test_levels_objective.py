"""Levels take turns: each in its share of the epochs, with those below frozen; and a stop between changes nothing."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import ConfigError
from emhrnn.paper.models.em_hrnn_levels import EMHRNNLevels
from emhrnn.training.config import make_config
from emhrnn.training.data import Named
from emhrnn.training.resume import resume
from emhrnn.training.run import load_run
from emhrnn.training.schedule import stage
from emhrnn.training.train import check_settings, train

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

    config = make_config(assignments=SETTINGS)
    whole = train(Named(path=data), tmp_path / "whole", config=config, progress=False)
    with pytest.raises(KeyboardInterrupt):
        train(Named(path=data), tmp_path / "run", config=config, progress=False, on_epoch=stop)
    more = make_config(assignments=["training.epochs=12"])  # of which the third would be the first level's
    with pytest.raises(ConfigError, match=r"epochs = 12, but .* was started with 4, and its levels share them; leave"):
        resume(tmp_path / "run", config=more, progress=False)
    resumed = resume(tmp_path / "run", progress=False)
    assert kept == ["1 warm-up", "1 em", "2 warm-up"]
    assert [epoch.phase for epoch in resumed.fitted.epochs] == [*kept, "2 em"]
    model, loaded = resumed.run.model, load_run(tmp_path / "run").model
    assert isinstance(model, EMHRNNLevels)
    assert int(model.level) == 1
    for name, tensor in whole.run.model.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
        assert torch.equal(tensor, loaded.state_dict()[name]), name
    batch = whole.valid.batch(np.arange(len(whole.valid)))
    below = model.units(batch)
    top = model.top.segment(below, model.top.words(below))
    assert below.n_words < batch.n_words
    assert below.n_sentences < top.sum() < below.n_words


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"model\.levels = 2, but hn-att has no latent levels; use em-hrnn"):
        check_settings(make_config(assignments=["model.name=hn-att", "model.levels=2"]))
    with pytest.raises(ConfigError, match=r"3 levels share 2 epochs, one each at least; raise training\.epochs"):
        check_settings(make_config(assignments=["model.levels=3", "training.epochs=2"]))
