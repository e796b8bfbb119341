"""phi of the semi-Markov E-step, term by term as it is defined, in Python loops over one sentence's words."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.em.semi_markov import expand, segment_scores
from emhrnn.em.strategies import STRATEGIES, EMSettings
from tests.em.examples import make_batch, random_z, seeds, shapes, small_model
from tests.oracles import em_hrnn
from tests.oracles.recurrent import step, zero_state


class Surrogate:
    """One document at the current Z, and its slopes by autograd."""

    def __init__(self, model, batch, z, document) -> None:
        self.model = model
        self.z = em_hrnn.nested(batch, z, document)
        self.h1 = [em_hrnn.word_states(model, words) for words in em_hrnn.nested(batch, batch.words, document)]
        self.entering, self.s, self.mass = [], [], []
        for h1, ends in zip(self.h1, self.z, strict=True):
            state, entering, p = zero_state(model.phrase_layer), [], []
            for phrase in em_hrnn.phrases(h1, ends):
                state = tuple(part + torch.zeros_like(part, requires_grad=True) for part in state)
                entering.append(state)
                state, features = self.phrase(phrase, state)
                p.append(features)
            self.entering.append(entering)
            self.s.append(em_hrnn.pool(model.phrase_attention, p))
            self.mass.append(sum(self.score(features).exp() for features in p))
        forward = em_hrnn.recurrence(model.sentence_forward, self.s)
        backward = em_hrnn.recurrence(model.sentence_backward, self.s[::-1])[::-1]
        h3 = [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
        said = em_hrnn.said(model, em_hrnn.nested(batch, batch.words, document))
        logits = model.output(em_hrnn.pool(model.sentence_attention, h3)) + said
        self.log_p = torch.log_softmax(logits, 0)[batch.labels[document]]

    def phrase(self, words, state):
        """The state behind a phrase, and what attention pools of it."""
        q = em_hrnn.pool(self.model.word_attention, words)
        state = step(self.model.phrase_layer, q, *state)
        return state, em_hrnn.phrase_features(self.model, state[0], q)

    def score(self, p):
        attention = self.model.phrase_attention
        return torch.tanh(attention.weight @ p + attention.bias) @ attention.context

    def slope(self, of):
        return torch.autograd.grad(self.log_p, of, retain_graph=True, allow_unused=True, materialize_grads=True)

    def context(self, i, a):
        """C_a: Z cut after word a - 1; and the phrase of Z that holds word a."""
        begins = [0, *(t + 1 for t, end in enumerate(self.z[i][:-1]) if end)]
        k = max(k for k, begin in enumerate(begins) if begin <= a)
        state = self.entering[i][k]
        return (self.phrase(self.h1[i][begins[k] : a], state)[0] if begins[k] < a else state), k

    def phi(self, i, a, b):
        state, p = self.phrase(self.h1[i][a : b + 1], self.context(i, a)[0])
        (g,) = self.slope(self.s[i])
        value = self.score(p).exp() / self.mass[i] * (g @ (p - self.s[i]))
        if b + 1 < len(self.h1[i]):
            after, k = self.context(i, b + 1)
            slopes = self.slope(self.entering[i][k])
            value = value + sum(d @ (x - y) for d, x, y in zip(slopes, state, after, strict=True))
        return value.detach()


@given(shapes(2, 2, 5), seeds)
@settings(max_examples=8, deadline=None)
def test_phi_is_what_it_says(lengths, seed):
    model, batch = small_model(seed, scale=1.5, restart=False), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    phi = segment_scores(model, batch, states, z, expand(model, batch, states, z), longest=5)
    expected = torch.full_like(phi, -torch.inf)
    for document in range(batch.n_documents):
        surrogate = Surrogate(model, batch, z, document)
        for i in range(len(surrogate.h1)):
            first = batch.sentence_offsets[batch.document_offsets[document] + i]
            for a in range(len(surrogate.h1[i])):
                for b in range(a, len(surrogate.h1[i])):
                    expected[first + a, b - a] = surrogate.phi(i, a, b)
    torch.testing.assert_close(phi, expected, atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("level", [-40.0, 40.0])
def test_attention_scores_may_be_as_high_or_low_as_they_like(level):
    """Scores of about +-240 in single precision, of which e^score is inf or 0: only differences count."""
    model, batch = small_model(votes=10).float(), make_batch([[6, 5], [7]])
    with torch.no_grad():
        model.phrase_attention.context.fill_(level)
        model.phrase_attention.bias.fill_(3.0)
        model.phrase_attention.weight.mul_(0.1)
    z = random_z(batch)
    results, masses = [], []
    for precise in (model, deepcopy(model).double()):
        states = precise.words(batch)
        masses.append(expand(precise, batch, states, z).log_mass.double())
        results.append(
            STRATEGIES["semi-markov"](precise, batch, states, z, EMSettings(), np.random.default_rng(0)).gamma.double()
        )
    torch.testing.assert_close(*masses, atol=1e-3, rtol=0)
    torch.testing.assert_close(*results, atol=1e-3, rtol=0)
