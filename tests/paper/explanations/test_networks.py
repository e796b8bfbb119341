"""First-order effects against finite differences, and estimates of sentences against leaving them out."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.corpus import TextSettings
from emhrnn.explain.removal import without
from emhrnn.paper.explanations.networks import gradient_effects, log_odds, network_findings
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run
from tests.models.examples import (
    CLASSES,
    VOCABULARY,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    paper_network,
    seeds,
    shapes,
)


def make_model(seed: int, **sizes: object) -> EMHRNN:
    return EMHRNN(
        paper_network(
            word_size=4, phrase_size=3, sentence_size=3, attention_size=4, cell="gru" if seed // 2 % 2 else "lstm",
            skip=seed % 2 == 1, **sizes,
        ),
        table=make_table(seed), classes=CLASSES, generator=generator_of(seed),
    )  # fmt: skip


@settings(max_examples=5, deadline=None)
@given(shapes, seeds)
def test_effects_are_vectors_times_slopes(lengths: list[list[int]], seed: int) -> None:
    """The slope along a word's vector, by finite differences."""
    model, batch = enlarged(make_model(seed), 1.5).double(), make_batch(lengths, seed)
    z = (np.random.default_rng(seed).random(batch.n_words) < 0.4) | batch.sentence_final
    found = gradient_effects(model, batch, z, temperature=1.3)
    assert found is not None
    output, effects = found
    chosen = torch.from_numpy(effects.classes)
    x = model.embedding.vectors()[torch.from_numpy(batch.words)].detach()
    step = 1e-6

    @torch.no_grad()
    def odds(t: int, share: float) -> float:
        moved = x.clone()
        moved[t] *= share
        states = model.word_states(batch, model.read(model.project(moved), batch.sentence_offsets))
        logits = model.encode(batch, states, z).logits
        return float(log_odds(logits, chosen, multi_label=False, temperature=1.3).sum())

    expected = [(odds(t, 1 + step) - odds(t, 1 - step)) / (2 * step) for t in range(batch.n_words)]
    np.testing.assert_allclose(effects.words, expected, atol=1e-6, rtol=1e-4)
    phrase = np.cumsum(z) - z
    np.testing.assert_allclose(effects.phrases, np.bincount(phrase, effects.words), atol=1e-9)
    np.testing.assert_allclose(effects.sentences, np.bincount(batch.sentence_of_word, effects.words), atol=1e-9)
    torch.testing.assert_close(output.logits, model.encode(batch, model.words(batch), z).logits.detach())


def test_estimates_leave_out_whole_sentences() -> None:
    model, batch = make_model(3), make_batch([[3, 2, 4], [2]], 3)
    vocabulary = Vocabulary(["<unk>", *map(str, range(1, VOCABULARY))])
    run = Run(model, make_config(model="em-hrnn"), vocabulary, ("a", "b", "c"), False, TextSettings())
    found = network_findings(run, batch)
    assert found.effects is not None
    assert found.z is not None
    assert found.effects.by == "estimate"
    keep = batch.sentence_of_word != 1
    smaller, left = without(batch, found.z, keep)
    chosen = torch.from_numpy(found.effects.classes[:1])
    with torch.no_grad():
        logits = model.encode(smaller, model.words(smaller), left).logits[:1]
    before, after = (log_odds(x, chosen, multi_label=False) for x in (torch.from_numpy(found.logits[:1]), logits))
    assert found.effects.sentences[1] == pytest.approx(float(before - after), abs=1e-5)


@pytest.mark.parametrize("multi_label", [False, True])
def test_log_odds_are_those_of_the_probability(multi_label: bool) -> None:
    logits = torch.randn(5, 3, generator=generator_of(0), dtype=torch.float64)
    chosen = logits.argmax(1)
    p = (torch.sigmoid(logits / 2) if multi_label else torch.softmax(logits / 2, 1)).gather(1, chosen[:, None])[:, 0]
    odds = log_odds(logits, chosen, multi_label=multi_label, temperature=2.0)
    torch.testing.assert_close(odds, torch.log(p / (1 - p)))
