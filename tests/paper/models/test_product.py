"""A network and n-grams: the logits, what each learns, the shares, and runs from before there was such a model."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import CheckpointError
from emhrnn.evaluation.calibration import FEWEST
from emhrnn.models.row import Facts
from emhrnn.models.table import MODELS
from emhrnn.paper.explanations.networks import gradient_effects
from emhrnn.paper.models import product
from emhrnn.paper.models.product import MOST, MOST_SCORES, NGrams, ProductOfExperts, best_shares, build_ngrams
from emhrnn.paper.models.rows import NGramsConfig
from emhrnn.training.arrays import load_arrays
from emhrnn.training.compatibility import WITH_NGRAMS, migrated_tensors
from emhrnn.training.config import make_config
from emhrnn.training.data import embedding_table
from emhrnn.training.loop import make_objective
from emhrnn.training.run import Run, load_run, new_run
from tests.models.examples import CLASSES, generator_of, make_batch, make_table, seeds, shapes
from tests.oracles import ngrams as ngrams_oracle
from tests.oracles import shares as oracle
from tests.oracles.em_hrnn import nested

OLD_RUN = Path(__file__).parents[2] / "behaviour" / "runs" / "em-hrnn"
SMALL = {"embedding_size": 10, "word_size": 6, "phrase_size": 6, "sentence_size": 6, "buckets": 50, "dropout": 0}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    reviews = list(generate_reviews(60, seed=0))
    return Corpus.from_texts([r.text for r in reviews], [r.label for r in reviews], min_count=2)


def make_run(corpus: Corpus, model: str, *more: str) -> Run:
    """With large scores of n-grams, where it has some."""
    own = [f"model.{name}={value}" for name, value in SMALL.items() if name in MODELS[model].config.model_fields]
    config = make_config(assignments=[*own, *more], model=model)
    table = embedding_table(config, corpus, None)
    run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
    if isinstance(run.model, ProductOfExperts):
        torch.nn.init.normal_(run.model.ngrams.table, generator=torch.Generator().manual_seed(0))
    return run


@pytest.mark.parametrize("name", ["em-hrnn", "hn-att"])
def test_the_logits_are_the_weighted_sum(corpus: Corpus, name: str) -> None:
    both, alone = make_run(corpus, f"{name}+ngrams").model, make_run(corpus, name).model
    assert isinstance(both, ProductOfExperts)
    batch = corpus.batch(np.arange(6))
    with torch.no_grad():
        network, apart = alone(batch), both.ngrams.apart(batch)
        found = both(batch)
        torch.testing.assert_close(found.logits, network.logits + apart.sum(dim=0))
        torch.testing.assert_close(found.alpha, network.alpha)
        for share, value in zip(both.shares.values(), (0.5, 2.0, 3.0, 0.0), strict=True):
            share.fill_(value)
        weighted = 0.5 * network.logits + 2 * apart[0] + 3 * apart[1]
        torch.testing.assert_close(both(batch).logits, weighted)
        z = batch.sentence_final if found.z is None else found.z
        torch.testing.assert_close(both.encode_phrases(batch, z).logits, weighted)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("em-hrnn", ("em.blocks=2", "em.block_length=3", "em.theta=map")),
        ("em-hrnn", ("em.blocks=2", "em.block_length=3", "em.theta=all")),
        ("hn-att", ()),
    ],
)
def test_network_and_ngrams_learn_apart(corpus: Corpus, name: str, settings: tuple[str, ...], epoch: int) -> None:
    """Neither changes what the other learns: the gradients are those of two models."""
    batch = corpus.batch(np.arange(6))
    runs = [make_run(corpus, model, *settings) for model in (name, f"{name}+ngrams")]
    alone, both = (run.model for run in runs)
    assert isinstance(both, ProductOfExperts)
    losses = [make_objective(run.model, run.config, corpus).loss(batch, epoch, 0)[0] for run in runs]
    for loss in losses:
        loss.backward()
    assert float(losses[0].detach()) == pytest.approx(float(losses[1].detach()), rel=1e-5)
    compared = [(own, both.get_parameter(f"network.{name}")) for name, own in alone.named_parameters()]
    for theirs, ours in compared:
        assert (theirs.grad is None) == (ours.grad is None)
        if theirs.grad is not None:
            torch.testing.assert_close(dense_gradient(ours), dense_gradient(theirs))
    table = both.ngrams.table
    learned, table.grad = dense_gradient(table), None
    torch.nn.functional.cross_entropy(both.ngrams(batch), torch.from_numpy(batch.labels)).backward()
    torch.testing.assert_close(learned, dense_gradient(table))


def dense_gradient(p: torch.Tensor) -> torch.Tensor:
    assert p.grad is not None
    return p.grad.to_dense() if p.grad.is_sparse else p.grad


def test_effects_by_gradient_count_the_ngrams(corpus: Corpus) -> None:
    """A network whose share is 0 leaves the n-grams, which are linear: the words add up to the log-odds."""
    run = make_run(corpus, "hn-att+ngrams")
    run.model.shares["network"].fill_(0)
    batch = corpus.batch(np.arange(1))
    found = gradient_effects(run.model, batch, multi_label=True)
    assert found is not None
    output, effects = found
    assert float(effects.words.sum()) == pytest.approx(float(output.logits.max()), rel=1e-4)


def test_many_classes_share_fewer_buckets() -> None:
    """200,000 buckets for each of 1,000 classes would be 800 MB."""
    for classes, buckets in ((2, 200_000), (1000, 50_000), (10 * MOST_SCORES, 1)):
        with torch.device("meta"):
            model = build_ngrams(NGramsConfig(name="ngrams"), Facts(classes=classes), torch.zeros(0, 0), ["a"], 0)
        assert model.ngrams.buckets == buckets


TRUE = np.array([1.5, 0.6, 0.0])


def drawn(documents: int, classes: int, seed: int, *, several: bool) -> tuple[np.ndarray, np.ndarray]:
    """Logits of three experts, and labels that were drawn with the shares TRUE."""
    rng = np.random.default_rng(seed)
    experts = (1.5 * rng.normal(size=(3, documents, classes))).astype(np.float32)
    logits = np.tensordot(TRUE, experts.astype(np.float64), axes=1)
    if several:
        return experts, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)
    return experts, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


@settings(max_examples=6, deadline=None)
@given(st.integers(FEWEST, 40), st.integers(2, 4), st.integers(0, 10**6), st.booleans())
def test_the_shares_are_the_best_of_a_grid(n: int, classes: int, seed: int, several: bool) -> None:
    experts, labels = drawn(n, classes, seed, several=several)
    shares = best_shares(experts, labels)
    assert ((shares >= 0) & (shares <= MOST)).all()
    assume((shares != 1).any())
    best = oracle.best_shares(experts, labels, MOST)
    assert np.allclose(shares, best, atol=2e-3)
    assert oracle.loss(experts, labels, shares) <= oracle.loss(experts, labels, best) + 1e-7


@pytest.mark.parametrize("several", [False, True])
def test_the_shares_that_labels_were_drawn_with_are_found(several: bool) -> None:
    assert np.allclose(best_shares(*drawn(20_000, 4, 0, several=several)), TRUE, atol=0.05)


def test_few_documents_move_the_shares_less() -> None:
    experts, labels = drawn(2_000, 4, 1, several=False)
    few, many = (best_shares(experts[:, :n], labels[:n]) for n in (FEWEST, 2_000))
    assert np.abs(few - 1).max() < np.abs(many - 1).max()
    assert best_shares(experts[:, : FEWEST - 1], labels[: FEWEST - 1]).tolist() == [1.0, 1.0, 1.0]


def test_of_many_documents_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    experts, labels = drawn(1_000, 4, 3, several=False)
    monkeypatch.setattr(product, "ENOUGH", 400)
    assert np.array_equal(best_shares(experts, labels), best_shares(experts[:, ::3], labels[::3]))


def test_data_that_cannot_decide_leaves_all_as_they_are() -> None:
    experts, labels = drawn(50, 3, 0, several=False)
    assert best_shares(experts, experts.sum(axis=0).argmax(axis=1)).tolist() == [1.0, 1.0, 1.0]
    experts[1, 3, 1] = np.nan
    assert best_shares(experts, labels).tolist() == [1.0, 1.0, 1.0]


def test_an_em_hrnn_of_version_0_1_with_ngrams_is_this_product() -> None:
    run = load_run(OLD_RUN)
    assert isinstance(run.model, ProductOfExperts)
    assert run.config.model.name == WITH_NGRAMS
    tensors, _ = load_arrays(OLD_RUN / "model.safetensors")
    assert np.array_equal(run.model.get_parameter("network.output.weight").detach(), tensors["output.weight"])
    assert np.array_equal(run.model.ngrams.table.detach(), tensors["ngrams.table"])
    shares = {"recurrent": 0.5, "common": 2.0, "rare": 3.0, "pairs": 0.0}
    assert migrated_tensors(WITH_NGRAMS, tensors, shares)["share"].tolist() == list(shares.values())
    now = run.model.state_dict()
    assert migrated_tensors(WITH_NGRAMS, now) is now
    assert migrated_tensors("em-hrnn", tensors) is tensors
    wrong = ({"recurrent": 1.0}, dict.fromkeys(shares, -1.0), dict.fromkeys(shares, np.nan), {"other": 1.0}, "1")
    for damaged in wrong:
        with pytest.raises(CheckpointError, match=r"corrupt \(shares .*; copy the run again or train again"):
            migrated_tensors(WITH_NGRAMS, tensors, damaged)


BUCKETS = 7


def make_layer(seed: int) -> NGrams:
    layer = NGrams(len(make_table(seed)), BUCKETS, CLASSES).double()
    torch.nn.init.normal_(layer.table, generator=generator_of(seed))
    return layer


@settings(max_examples=10, deadline=None)
@given(shapes, seeds)
def test_equal_the_oracle(lengths: list[list[int]], seed: int) -> None:
    layer, batch = make_layer(seed), make_batch(lengths, seed)
    with torch.no_grad():
        documents = [nested(batch, batch.words, d) for d in range(batch.n_documents)]
        theirs = torch.stack([ngrams_oracle.document_scores(layer, words) for words in documents])
        torch.testing.assert_close(layer(batch), theirs)
        torch.testing.assert_close(layer.apart(batch).sum(dim=0), theirs)


def test_common_words_rare_words_and_pairs_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "COMMON", 6)
    layer, batch = make_layer(0), make_batch([[3, 2], [4], [1]], 0)
    parts = {0: slice(6), 1: slice(6, layer.vocabulary), 2: slice(layer.vocabulary, None)}
    with torch.no_grad():
        whole, apart = layer(batch), layer.apart(batch)
        assert (apart.abs().amax((1, 2)) > 0.1).all()
        for part, rows in parts.items():
            kept = layer.table[rows].clone()
            layer.table[rows] = 0
            torch.testing.assert_close(layer(batch), whole - apart[part])
            layer.table[rows] = kept


def test_only_what_a_batch_holds_has_a_gradient() -> None:
    layer, batch = make_layer(0), make_batch([[3, 1], [2]], 0)
    layer(batch).sum().backward()
    gradient = layer.table.grad
    assert gradient.is_sparse
    touched = set(gradient.coalesce().indices()[0].tolist())
    pairs = {int(row) for row in layer.rows_of_pairs(batch, np.array([1, 2, 5]))}
    assert touched == set(batch.words.tolist()) | pairs


def test_a_place_that_is_left_out_takes_its_word_and_its_pair_along() -> None:
    layer, batch = make_layer(0), make_batch([[200]], 0)
    layer.table.data.fill_(1.0)
    share = 200**-0.5
    layer.table.data[layer.vocabulary :] = 1000.0
    said = round(float(layer(batch, 0.5, generator_of(0)).detach()[0, 0]) / share)
    words, pairs = said % 1000 / 2, said // 1000 / 2  # each that is kept counts twice
    assert words - pairs in (0, 1)  # the first word ends no pair
    assert 70 < words < 130
