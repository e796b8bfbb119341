"""Effects against their definition, and against really taking things out where they are exact."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.explain.removal import without
from emhrnn.paper.explanations.effects import encode_with_effects, log_odds, log_odds_slopes, with_context
from emhrnn.paper.models.em_hrnn import EMHRNN
from tests.models.examples import CLASSES, enlarged, generator_of, make_batch, make_table, paper_network, seeds, shapes
from tests.oracles import effects as oracle
from tests.oracles.em_hrnn import nested


def make_model(seed: int, **sizes: object) -> EMHRNN:
    return EMHRNN(
        paper_network(
            word_size=4, phrase_size=3, sentence_size=3, attention_size=4, cell="gru" if seed // 2 % 2 else "lstm",
            skip=seed % 2 == 1, **sizes,
        ),
        table=make_table(seed), classes=CLASSES, generator=generator_of(seed),
    )  # fmt: skip


@settings(max_examples=5, deadline=None)
@given(shapes, seeds, st.booleans(), st.booleans())
def test_effects_are_what_the_definition_says(
    lengths: list[list[int]], seed: int, both_ways: bool, context: bool
) -> None:
    model = enlarged(make_model(seed, bidirectional_words=both_ways), 1.5)
    batch, rng = make_batch(lengths, seed), np.random.default_rng(seed)
    z = (rng.random(batch.n_words) < 0.4) | batch.sentence_final
    with torch.no_grad():
        states = model.words(batch)
    output, effects = encode_with_effects(model, batch, states, z, temperature=1.3)
    if context:
        effects = with_context(model, batch, z, temperature=1.3)
    expected = [
        oracle.effects(model, nested(batch, batch.words, d), nested(batch, z, d), 1.3, context)
        for d in range(batch.n_documents)
    ]
    classes, words, phrases, sentences = zip(*expected, strict=True)
    assert effects.classes.tolist() == list(classes)
    for ours, theirs in ((effects.words, words), (effects.phrases, phrases), (effects.sentences, sentences)):
        np.testing.assert_allclose(ours, np.concatenate(theirs), atol=1e-7, rtol=1e-5)
    plain = model.encode(batch, states, z)
    for ours, theirs in zip(
        (output.logits, output.v, output.alpha, output.beta, output.gamma),
        (plain.logits, plain.v, plain.alpha, plain.beta, plain.gamma),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs.detach())


@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=4), seeds)
def test_a_sentence_is_exact_where_sentences_do_not_hear_each_other(lengths: list[int], seed: int) -> None:
    model = enlarged(make_model(seed), 1.5)
    with torch.no_grad():
        for layer in (model.sentence_forward, model.sentence_backward):
            layer.state_weight.zero_()
            layer.input_weight[3:6], layer.bias[3:6] = 0, -1e3  # the forget gates
    batch = make_batch([lengths], seed)
    z = batch.sentence_final
    states = model.words(batch)
    output, effects = encode_with_effects(model, batch, states, z)
    for i in range(batch.n_sentences):
        smaller, left = without(batch, z, batch.sentence_of_word != i)
        logits = model.encode(smaller, model.words(smaller), left).logits
        classes = torch.from_numpy(effects.classes)
        before, after = (log_odds(x.detach(), classes, multi_label=False) for x in (output.logits, logits))
        assert effects.sentences[i] == pytest.approx(float(before - after), abs=1e-7, rel=1e-5)


@settings(max_examples=5, deadline=None)
@given(shapes, seeds)
def test_the_words_of_a_phrase_share_its_effect(lengths: list[list[int]], seed: int) -> None:
    model, batch = make_model(seed), make_batch(lengths, seed)
    with torch.no_grad():
        states = model.words(batch)
    z = model.segment(batch, states)
    _, effects = encode_with_effects(model, batch, states, z)
    starts = np.concatenate([[0], np.flatnonzero(z)[:-1] + 1])
    np.testing.assert_allclose(np.add.reduceat(effects.words, starts), effects.phrases, atol=1e-5)


def test_one_dominant_sentence_leaves_finite_effects() -> None:
    """Its weight is 1 to the last bit of float32, so 1 - weight is 0."""
    model = make_model(0)
    with torch.no_grad():
        model.sentence_attention.context.mul_(1e5)
    batch = make_batch([[3, 2, 4]], 0)
    states = model.words(batch)
    output, effects = encode_with_effects(model, batch, states, batch.sentence_final)
    assert float(output.gamma.max()) == 1
    assert np.isfinite(np.concatenate(effects.levels)).all()


@pytest.mark.parametrize("multi_label", [False, True])
def test_log_odds_are_those_of_the_probability(multi_label: bool) -> None:
    logits = torch.randn(5, 3, generator=generator_of(0), dtype=torch.float64)
    chosen = logits.argmax(1)
    p = (torch.sigmoid(logits / 2) if multi_label else torch.softmax(logits / 2, 1)).gather(1, chosen[:, None])[:, 0]
    odds = log_odds(logits, chosen, multi_label=multi_label, temperature=2.0)
    torch.testing.assert_close(odds, torch.log(p / (1 - p)))


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_slopes_of_log_odds_are_those_of_autograd(multi_label: bool, classes: int) -> None:
    logits = torch.randn(5, classes, generator=generator_of(0), dtype=torch.float64, requires_grad=True)
    chosen = torch.arange(5) % classes
    odds = log_odds(logits, chosen, multi_label=multi_label, temperature=2.0)
    slopes = log_odds_slopes(logits.detach(), chosen, multi_label=multi_label, temperature=2.0)
    torch.testing.assert_close(slopes, torch.autograd.grad(odds.sum(), logits)[0])
