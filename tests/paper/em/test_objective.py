"""What EM training promises: every variant of it trains, the rate is held, and phases do what they say."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import DataError
from emhrnn.evaluation.scores import PhraseLengths, count_phrase_lengths
from emhrnn.models.segmentation import single_words
from emhrnn.paper.em.blocks import exact_blocks
from emhrnn.paper.em.objective import Monitor, collapse
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.training.config import make_config
from emhrnn.training.data import embedding_table
from emhrnn.training.loop import make_objective
from emhrnn.training.progress import TrainingContext
from emhrnn.training.run import Run, new_run
from emhrnn.training.train import fit
from tests.paper.em.examples import make_batch, marginal_loss

SMALL = ("model.embedding_size=10", "model.word_size=6", "model.phrase_size=6", "model.sentence_size=6")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    reviews = list(generate_reviews(60, seed=0))
    return Corpus.from_texts([r.text for r in reviews], [r.label for r in reviews], min_count=2)


def make_run(corpus: Corpus, *settings: str) -> Run:
    config = make_config(assignments=[*SMALL, "training.batch_words=1500", *settings], model="em-hrnn")
    table = embedding_table(config, corpus, None)
    return new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)


def network(run: Run) -> dict[str, torch.Tensor]:
    """Its parameters but for those of the indicator."""
    return {name: p.detach().clone() for name, p in run.model.named_parameters() if not name.startswith("indicator.")}


@pytest.mark.parametrize(
    "settings",
    [
        {"em.theta": "all", "em.blocks": 2, "em.block_length": 3},
        {"em.theta": "sample"},
        {"em.impute": "prior", "em.hold_rate": "false"},
        {"em.printed_q": "true"},
        {"training.class_weight": "balanced", "training.label_smoothing": 0.1, "training.optimizer": "sgd"},
    ],
    ids=lambda settings: ", ".join(f"{name}={value}" for name, value in settings.items()),
)
def test_every_variant_trains(corpus: Corpus, settings: dict[str, Any]) -> None:
    assignments = [f"{name}={value}" for name, value in settings.items()]
    run = make_run(corpus, "training.epochs=2", "em.warmup_epochs=0", *assignments)
    before = network(run)
    result = fit(run, corpus, corpus, TrainingContext(progress=False))
    assert len(result.epochs) == 2
    assert all(np.isfinite(epoch.train_loss) for epoch in result.epochs)
    assert any(not torch.equal(before[name], p) for name, p in network(run).items())


def test_the_preset_of_the_paper_trains(corpus: Corpus) -> None:
    """Its exact settings, but for the words, which are those of the data. The indicator's bias begins at 0."""
    config = make_config("paper", assignments=["data.vocabulary=data", "training.epochs=4"])
    table = embedding_table(config, corpus, None)
    run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
    assert isinstance(run.model, EMHRNN)
    assert run.model.indicator.bias.item() == 0
    result = fit(run, corpus, corpus, TrainingContext(progress=False))
    assert [epoch.phase for epoch in result.epochs] == ["em"] * 4
    assert result.epochs[-1].train_loss < result.epochs[0].train_loss


def test_the_rate_is_held_although_pi_moves_fast(corpus: Corpus) -> None:
    run = make_run(corpus, "training.epochs=4", "em.warmup_epochs=1", "em.pace=50", "em.rate=0.3")
    result = fit(run, corpus, corpus, TrainingContext(progress=False))
    last = result.epochs[-1].boundaries
    words, ends = float(corpus.lengths.sum()), corpus.batch(np.arange(len(corpus))).n_sentences
    wanted = (0.3 * words - ends) / (words - ends)  # of the free positions
    assert last["pi_mean"] == pytest.approx(wanted, abs=0.05)
    assert last["valid_mean_phrase"] == pytest.approx(1 / 0.3, rel=0.25)


@pytest.mark.parametrize("estep", ["blocks", "local"])
def test_theta_learns_on_as_many_phrases_as_the_rate_says(
    corpus: Corpus, estep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained network's label says next to nothing: the likeliest boundaries are those of the prior."""
    run = make_run(corpus, "em.warmup_epochs=0", f"em.estep={estep}")
    learned_on, plain = [], EMHRNN.encode

    def encode(self, batch, states, z, generator=None):
        learned_on.append(z)
        return plain(self, batch, states, z, generator)

    objective = make_objective(run.model, run.config, corpus)
    monkeypatch.setattr(EMHRNN, "encode", encode)
    objective.loss(corpus.batch(np.arange(30)), 0, 0)
    assert learned_on[-1].mean() == pytest.approx(0.23, abs=0.01)


TINY = (
    "model.dropout=0", "em.warmup_epochs=0", "em.impute=prior", "em.hold_rate=false",
    "em.block_length=2", "em.theta=all",
)  # fmt: skip


def gradients(run: Run, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    named = dict(run.model.named_parameters())
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {name: g.to_dense() for name, g in zip(named, found, strict=True) if g is not None}


def short_documents() -> Corpus:
    return Corpus.from_texts(["a b c d. b c.", "d a.", "c b a d b."], [0, 1, 1])


def test_both_terms_of_q_together_are_the_gradient_of_the_evidence() -> None:
    """Fisher's identity, for the mean over documents, however long they are."""
    corpus = short_documents()
    run = make_run(corpus, *TINY, "em.estep=exact")
    model = run.model.double()
    assert isinstance(model, EMHRNN)
    batch = corpus.batch(np.arange(len(corpus)))
    loss, _ = make_objective(model, run.config, corpus).loss(batch, 0, 0)
    states = model.words(batch)
    direct = gradients(run, marginal_loss(model, batch, states, batch.sentence_final, exact_blocks(batch)))
    ours = gradients(run, loss)
    assert ours.keys() == direct.keys()
    for name, gradient in direct.items():
        torch.testing.assert_close(ours[name], gradient, rtol=1e-6, atol=1e-9)


def test_a_document_counts_once_however_many_blocks_it_has() -> None:
    corpus = short_documents()
    run = make_run(corpus, *TINY, "em.estep=blocks")
    objective = make_objective(run.model.double(), run.config, corpus)
    losses = [objective.loss(corpus.batch(np.array(rows)), 0, 0)[0].item() for rows in ([0], [1], [2], [0, 1, 2])]
    assert losses[3] == pytest.approx(np.mean(losses[:3]), rel=1e-6)


def test_the_warm_up_leaves_pi_flat_but_for_its_bias(corpus: Corpus) -> None:
    warm = make_run(corpus, "training.epochs=1", "em.warmup_epochs=1")
    weight = warm.model.get_parameter("indicator.weight").detach().clone()
    assert fit(warm, corpus, corpus, TrainingContext(progress=False)).epochs[0].boundaries.keys() <= {
        "valid_mean_phrase",
        "valid_longest_phrase",
    }
    assert torch.equal(weight, warm.model.get_parameter("indicator.weight"))


@pytest.mark.parametrize("epoch", [0, 1], ids=["warm-up", "em"])
def test_sentences_of_one_word_leave_the_threshold_alone(corpus: Corpus, epoch: int) -> None:
    run = make_run(corpus)
    model = run.model
    assert isinstance(model, EMHRNN)
    short = Corpus.from_texts(
        ["great", "good"], ["5", "4"], vocabulary=corpus.vocabulary, classes=list(corpus.classes), text=corpus.text
    )

    def learn(corpus: Corpus, step: int) -> float:
        objective = make_objective(model, run.config, corpus)
        objective.loss(corpus.batch(np.arange(2)), epoch, step)
        objective.end_epoch()
        return float(model.threshold)

    assert learn(short, step=0) == 0.0  # where it begins
    learned = learn(corpus, step=1)
    assert learned != 0.0
    assert [learn(short, step) for step in range(2, 6)] == [learned] * 4


def test_the_first_batch_that_knows_a_threshold_sets_it(corpus: Corpus) -> None:
    """Whatever the step: an upper level begins late, and so does a run whose first documents have one word each."""
    thresholds = []
    for step in (0, 7):
        run = make_run(corpus, "em.hold_rate=false", "model.dropout=0")
        make_objective(run.model, run.config, corpus).loss(corpus.batch(np.arange(6)), 0, step)
        thresholds.append(float(run.model.get_buffer("threshold")))
    assert thresholds[0] == thresholds[1] != 0.0


def test_documents_that_came_before_count_for_the_threshold(corpus: Corpus) -> None:
    run = make_run(corpus, "em.hold_rate=false", "model.dropout=0", "model.pauses=false")  # they count documents, too
    threshold, few = run.model.get_buffer("threshold"), corpus.select(np.arange(4))
    make_objective(run.model, run.config, few).end_epoch()
    alone = float(threshold)
    threshold.fill_(alone - 1)
    objective = make_objective(run.model, run.config, few, known=96)
    objective.loss(few.batch(np.arange(4)), 0, 0)  # each moves it by 4 of 100 documents
    assert float(threshold) == pytest.approx(alone - 0.96)
    objective.end_epoch()
    assert float(threshold) == pytest.approx(alone - 0.96**2)


def test_a_fixed_segmentation_learns_no_boundaries(corpus: Corpus) -> None:
    run = make_run(corpus, "training.epochs=2", "model.segmentation=every-4")
    result = fit(run, corpus, corpus, TrainingContext(progress=False))
    assert isinstance(run.model, EMHRNN)
    assert result.scores.phrases is not None
    assert result.scores.phrases.longest == 4


@pytest.mark.parametrize(
    ("settings", "settled"),
    [
        (("em.warmup_epochs=2",), [False, False, True]),
        (("em.estep=none",), [True, True, True]),
        (("model.segmentation=every-3", "em.warmup_epochs=2"), [True, True, True]),
    ],
)
def test_the_best_epoch_is_sought_once_phrases_are_learned(
    corpus: Corpus, settings: tuple[str, ...], settled: list[bool]
) -> None:
    """Where there is nothing to learn of them, from the first epoch on."""
    run = make_run(corpus, *settings)
    objective = make_objective(run.model, run.config, corpus)
    assert [objective.settled(epoch) for epoch in range(3)] == settled


def test_a_document_that_cannot_be_enumerated_is_told_before_the_warm_up() -> None:
    corpus = Corpus.from_texts(["a b " * 12, "b a."], [0, 1])
    run = make_run(corpus, "em.estep=exact")
    with pytest.raises(DataError, match="row 0 has 24 words, 23 free positions; at most 20"):
        make_objective(run.model, run.config, corpus)
    fixed = make_run(corpus, "em.estep=exact", "model.segmentation=none")
    make_objective(fixed.model, fixed.config, corpus)


@pytest.mark.parametrize(
    ("z", "told"),
    [
        ([0] * 99 + [1], "phrases are whole sentences: only 0.0% of"),
        ([1] * 100, "phrases are single words: 100.0% of"),
        ([0, 0, 0, 1] * 25, None),
        ([1], None),  # no word that might end a phrase or not
    ],
)
def test_collapse_of_one_sentence(z: list[int], told: str | None) -> None:
    found = collapse(PhraseLengths.of(count_phrase_lengths(np.array(z, dtype=bool))), sentences=1)
    assert found is None if told is None else (found or "").startswith(told)


def test_numbers_by_hand():
    batch = make_batch([[4, 2], [3]])
    z = np.array([0, 1, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    monitor = Monitor()
    monitor.update(batch, z, np.full(9, 0.5))
    seen = monitor.summary()
    assert seen["boundary_rate"] == pytest.approx(2 / 6)
    assert seen["mean_phrase_length"] == pytest.approx(9 / 5)
    assert seen["max_phrase_length"] == 2
    assert seen["pi_entropy"] == pytest.approx(math.log(2))
    assert seen["pi_mean"] == pytest.approx(0.5)


def test_two_batches_count_as_one():
    both, apart = Monitor(), Monitor()
    whole = make_batch([[4, 2], [3]])
    z, pi = np.array([0, 1, 0, 1, 0, 1, 1, 0, 1], dtype=bool), np.linspace(0.1, 0.9, 9)
    both.update(whole, z, pi)
    apart.update(make_batch([[4, 2]]), z[:6], pi[:6])
    apart.update(make_batch([[3]]), z[6:], pi[6:])
    assert both.summary() == pytest.approx(apart.summary())


def test_a_checkpoint_keeps_the_sums():
    batch, kept, loaded = make_batch([[4, 2], [3]]), Monitor(), Monitor()
    kept.update(batch, single_words(batch), np.linspace(0.1, 0.9, 9))
    state = kept.state_dict()
    state["counts"] = torch.cat([state["counts"], torch.zeros(2, dtype=torch.int64)])  # as version 0.1 wrote it
    loaded.load_state_dict(state)
    assert loaded.summary() == kept.summary()


def test_certain_pi_has_no_entropy():
    batch = make_batch([[3]])
    monitor = Monitor()
    monitor.update(batch, single_words(batch), np.array([0.0, 1.0, 1.0], dtype=np.float32))
    assert monitor.summary()["pi_entropy"] == 0
