"""A document of weight 2 is one that is there twice, and of weight 0 one that is not there: in every loss."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.training.config import make_config
from emhrnn.training.data import embedding_table
from emhrnn.training.loop import LabelLoss, Objective, balanced_weights, make_objective
from emhrnn.training.run import new_run
from tests.oracles import label_loss as oracle

# Nothing that is drawn, and nothing that depends on the other documents of the batch
STEADY = [
    "model.embedding_size=4", "model.word_size=3", "model.phrase_size=3", "model.sentence_size=3",
    "model.attention_size=3", "model.dropout=0", "em.warmup_epochs=0", "em.impute=prior", "em.hold_rate=false",
    "em.block_length=3",
]  # fmt: skip
VARIANTS = {
    "em, all": ["em.estep=blocks", "em.theta=all"],
    "em, map": ["em.estep=exact", "em.theta=map"],
    "plain": ["model.name=hn-att"],
    "balanced": ["model.name=lstm", "training.class_weight=balanced", "training.label_smoothing=0.2"],
}

ragged = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=2, max_size=5)
counts = st.lists(st.integers(0, 3), min_size=5, max_size=5)


def texts_of(lengths: list[list[int]], seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(" ".join(rng.choice(list("abcdef"), n)) + "." for n in document) for document in lengths]


def loss_and_gradient(corpus: Corpus, batch: Batch, assignments: list[str]) -> list[torch.Tensor]:
    """The loss, then the gradient, or where there is none the value, of every parameter."""
    config = make_config(assignments=assignments, shared=STEADY, model="em-hrnn")
    table = embedding_table(config, corpus, None)
    run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
    objective: Objective = make_objective(run.model.double(), config, corpus)
    loss, _ = objective.loss(batch, 0, 0)
    loss.backward()
    moved = [p.detach() if p.grad is None else p.grad.to_dense() for p in run.model.parameters()]
    return [loss.detach(), *moved]


@pytest.mark.parametrize("assignments", VARIANTS.values(), ids=VARIANTS)
@given(lengths=ragged, times=counts, seed=st.integers(0, 1000))
@settings(max_examples=6, deadline=None)
def test_a_weight_counts_repetitions(assignments: list[str], lengths: list[list[int]], times: list[int], seed: int):
    times = times[: len(lengths)]
    assume(sum(times) > 0)
    texts, labels = texts_of(lengths, seed), [i % 2 for i in range(len(lengths))]
    weighted = Corpus.from_texts(texts, labels, weights=times)
    plain = Corpus.from_texts(texts, labels)
    rows = np.arange(len(texts))
    ours = loss_and_gradient(weighted, weighted.batch(rows), assignments)
    repeated = plain.select(np.repeat(rows, times))
    theirs = loss_and_gradient(repeated, repeated.batch(np.arange(len(repeated))), assignments)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("assignments", VARIANTS.values(), ids=VARIANTS)
def test_weights_of_one_are_no_weights(assignments: list[str]) -> None:
    texts, labels = texts_of([[3, 2], [4], [1, 4, 2]], 0), [0, 1, 1]
    ours, theirs = (
        loss_and_gradient(corpus, corpus.batch(np.arange(3)), assignments)
        for corpus in (Corpus.from_texts(texts, labels, weights=[1, 1, 1]), Corpus.from_texts(texts, labels))
    )
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-14)


EM_VARIANTS = {name: assignments for name, assignments in VARIANTS.items() if name.startswith("em")}


@pytest.mark.parametrize("assignments", EM_VARIANTS.values(), ids=EM_VARIANTS)
def test_a_class_weight_is_the_weight_of_its_documents(assignments: list[str]) -> None:
    """In every part of Q: one of class 0 and three of class 1 weigh 2 and 2/3 each."""
    texts, labels = texts_of([[3, 2], [4], [1, 4, 2], [2, 2]], 0), [0, 1, 1, 1]
    plain, weighted = (
        Corpus.from_texts(texts, labels),
        Corpus.from_texts(texts, labels, weights=[2, 2 / 3, 2 / 3, 2 / 3]),
    )
    rows = np.arange(4)
    ours = loss_and_gradient(plain, plain.batch(rows), [*assignments, "training.class_weight=balanced"])
    theirs = loss_and_gradient(weighted, weighted.batch(rows), assignments)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-8)
    unweighted = loss_and_gradient(plain, plain.batch(rows), assignments)
    assert any(not torch.allclose(mine, other, rtol=1e-3) for mine, other in zip(ours, unweighted, strict=True))


@given(
    weights=st.lists(st.floats(0, 100, width=32), min_size=1, max_size=6),
    smoothing=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=20, deadline=None)
def test_label_loss_equals_the_oracle(weights: list[float], smoothing: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, y = rng.normal(size=(len(weights), 3)), rng.integers(0, 3, len(weights))
    class_weights = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
    given_weights = torch.tensor(weights, dtype=torch.float64)
    ours = LabelLoss(class_weights, smoothing)(torch.from_numpy(logits), y, given_weights)
    slow = oracle.label_loss(logits.tolist(), y.tolist(), weights, class_weights.tolist(), smoothing)
    assert float(ours) == pytest.approx(slow, rel=1e-9, abs=1e-12)


def test_a_batch_without_any_weight_asks_for_nothing() -> None:
    logits = torch.ones(2, 3, requires_grad=True)
    loss = LabelLoss()(logits, np.array([0, 1]), torch.zeros(2))
    loss.backward()
    assert float(loss.detach()) == 0
    assert (logits.grad == 0).all()


def test_balanced_weights_count_weights() -> None:
    labels = np.array([0, 0, 1])
    assert balanced_weights(labels, 2).tolist() == pytest.approx([0.75, 1.5])
    assert balanced_weights(labels, 2, np.array([1, 1, 2], dtype=np.float32)).tolist() == [1, 1]
