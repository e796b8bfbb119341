"""Faithfulness against plain lists, and each explanation's scores and cost."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus import TextSettings
from emhrnn.explain.removal import LEVELS, RemovalUnits, units_of
from emhrnn.paper.faithfulness import attributions
from emhrnn.paper.faithfulness.attributions import SHARES, Subject, measure
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run
from tests.explain.test_effects import make_model
from tests.models.examples import VOCABULARY, enlarged, make_batch, seeds, shapes
from tests.oracles import faithfulness as oracle
from tests.oracles.em_hrnn import nested


def make_subject(lengths: list[list[int]], seed: int, *, double: bool = False) -> Subject:
    model = make_model(seed)
    model = enlarged(model, 1.5) if double else model
    batch, rng = make_batch(lengths, seed), np.random.default_rng(seed)
    z = (rng.random(batch.n_words) < 0.4) | batch.sentence_final
    run = Run(
        model,
        make_config(model="em-hrnn"),
        Vocabulary(["<unk>", *map(str, range(1, VOCABULARY))]),
        ("a", "b", "c"),
        False,
        TextSettings(),
    )
    with torch.no_grad():
        logits = model.encode(batch, model.words(batch), z).logits
    chosen = logits.argmax(dim=1)
    p = torch.softmax(logits, 1).gather(1, chosen[:, None])[:, 0]
    return Subject(run, batch, z, chosen.numpy(), p.double().numpy())


@settings(max_examples=5, deadline=None)
@given(shapes, seeds, st.sampled_from(LEVELS))
def test_falls_are_those_of_plain_lists(lengths: list[list[int]], seed: int, level: str) -> None:
    subject = make_subject(lengths, seed, double=True)
    units = units_of(subject.batch, subject.z, level)
    scores = np.random.default_rng(seed).integers(0, 4, units.offsets[-1]).astype(np.float64)  # ties, too
    measured = measure(subject, level, scores, (0.2, 0.5))
    for d in range(subject.batch.n_documents):
        own = scores[units.offsets[d] : units.offsets[d + 1]].tolist()
        words, z = nested(subject.batch, subject.batch.words, d), nested(subject.batch, subject.z, d)
        for k, share in enumerate((0.2, 0.5)):
            expected = oracle.falls(subject.run.model, words, z, level, own, share)
            ours = measured.comprehensiveness[d, k], measured.sufficiency[d, k]
            np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_the_top_share_is_at_least_one_unit_and_the_earlier_wins() -> None:
    units = RemovalUnits(np.arange(7), np.array([0, 3, 7]))
    scores = np.array([1.0, 5, 5, 0, 2, 2, 2])
    assert units.top(scores, 0.01).tolist() == [False, True, False, False, True, False, False]
    assert units.top(scores, 0.5).tolist() == [False, True, True, False, True, True, False]
    assert units.top(scores, 1.0).all()


def test_occlusion_ranks_by_what_really_happens() -> None:
    subject = make_subject([[3, 2], [4]], 3)
    for level in LEVELS:
        found = attributions.occlusion(subject, level)
        units = units_of(subject.batch, subject.z, level)
        assert found.forward[level].tolist() == units.counts.tolist()
        for d in range(2):
            one = subject.part(d)
            own = units_of(one.batch, one.z, level)
            first = one.copies_without((own.of_word != 0)[None], odds=True)[0, 0]
            assert found.scores[level][units.offsets[d]] == pytest.approx(-first, abs=1e-6)


def test_every_explanation_scores_every_unit() -> None:
    subject = make_subject([[3, 1, 4], [2]], 1)
    found = {
        "attention": attributions.attention(subject),
        "effect": attributions.effect(subject),
        "thorough": attributions.thorough(subject),
        "random": attributions.random(subject, np.random.default_rng(0)),
        "gradients": attributions.integrated_gradients(subject, steps=4),
    }
    for attribution in found.values():
        for level in LEVELS:
            assert len(attribution.scores[level]) == units_of(subject.batch, subject.z, level).offsets[-1]
            assert measure(subject, level, attribution.scores[level]).comprehensiveness.shape == (2, len(SHARES))
    np.testing.assert_allclose(found["attention"].scores["word"].sum(), 2, atol=1e-5)  # shares of two documents
    assert found["gradients"].backward["word"].tolist() == [4, 4]
    assert found["effect"].forward["word"].tolist() == [1, 1]


def test_integrated_gradients_add_up_to_the_difference_from_no_words() -> None:
    """Their completeness axiom: the right function is being integrated."""
    subject = make_subject([[3, 2]], 2)
    function = attributions._FromVectors(subject.part(0))
    with torch.no_grad():
        inputs = function.inputs
        whole, nothing = (function(*x)[0] for x in (inputs, [torch.zeros_like(part) for part in inputs]))
    total = attributions.integrated_gradients(subject, steps=200).scores["word"].sum()
    assert total == pytest.approx(float(whole - nothing), abs=1e-3)
