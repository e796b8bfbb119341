"""EM-HRNN straight from docs/paper.md 1.2: one document, one z, Python loops over words, phrases and sentences."""

from typing import Any

import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.layers.recurrent import Bidirectional
from emhrnn.paper.models.em_hrnn import EMHRNN
from tests.oracles.recurrent import step, zero_state


def recurrence(layer, inputs: list[Tensor]) -> list[Tensor]:
    """h of every step."""
    state, states = zero_state(layer), []
    for x in inputs:
        state = step(layer, x, *state)
        states.append(state[0])
    return states


def pool(attention, states: list[Tensor]) -> Tensor:
    """Attention over a list of states."""
    scores = torch.stack([torch.tanh(attention.weight @ h + attention.bias) @ attention.context for h in states])
    weights = torch.softmax(scores, dim=0)
    return sum(weight * h for weight, h in zip(weights, states, strict=True))


def word_states(model: EMHRNN, words: list[int]) -> list[Tensor]:
    """h1 of one sentence."""
    x = list(model.embedding.vectors()[words])
    if isinstance(model.word_layer, Bidirectional):
        forward = recurrence(model.word_layer.forward_layer, x)
        backward = recurrence(model.word_layer.backward_layer, x[::-1])[::-1]
        return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
    return recurrence(model.word_layer, x)


def phrases(states: list[Any], z: list[bool]) -> list[list[Any]]:
    """Cut after every word with z = 1; the last word always ends a phrase."""
    cut: list[list[Any]] = [[]]
    for t, h in enumerate(states):
        cut[-1].append(h)
        if z[t] and t < len(states) - 1:
            cut.append([])
    return cut


def phrase_features(model: EMHRNN, h: Tensor, q: Tensor) -> Tensor:
    """What is pooled of a phrase: its state, and beside it its vector in a model with skip."""
    return torch.cat([h, q]) if model.skip else h


def sentence_vector(model: EMHRNN, q: list[Tensor]) -> Tensor:
    """s from the vectors of its phrases."""
    p = [phrase_features(model, *pair) for pair in zip(recurrence(model.phrase_layer, q), q, strict=True)]
    return pool(model.phrase_attention, p)


def phrase_states(model: EMHRNN, words: list[int], z: list[bool]) -> list[list[Tensor]]:
    """h1 of each phrase of a sentence."""
    return phrases(word_states(model, words), z)


def document_logits(model: EMHRNN, sentences: list[list[int]], z: list[list[bool]]) -> Tensor:
    s = []
    for words, z_sentence in zip(sentences, z, strict=True):
        h1 = phrase_states(model, words, z_sentence)
        s.append(sentence_vector(model, [pool(model.word_attention, phrase) for phrase in h1]))
    forward = recurrence(model.sentence_forward, s)
    backward = recurrence(model.sentence_backward, s[::-1])[::-1]
    v = pool(model.sentence_attention, [torch.cat(pair) for pair in zip(forward, backward, strict=True)])
    return model.output.weight @ v + model.output.bias


def nested(batch: Batch, values, document: int) -> list[list]:
    """The document's values (words, z, ...) as a list per sentence."""
    offsets = batch.sentence_offsets
    begin, end = batch.document_offsets[document], batch.document_offsets[document + 1]
    return [values[offsets[i] : offsets[i + 1]].tolist() for i in range(begin, end)]


def log_p(model: EMHRNN, batch: Batch, z, document: int) -> Tensor:
    """log p(y | z, w) of one document of a batch."""
    logits = document_logits(model, nested(batch, batch.words, document), nested(batch, z, document))
    y = batch.labels[document]
    if y.ndim == 0:
        return torch.log(torch.exp(logits[int(y)]) / sum(torch.exp(logit) for logit in logits))
    answers = [torch.sigmoid(logit) if one else 1 - torch.sigmoid(logit) for logit, one in zip(logits, y, strict=True)]
    return sum(torch.log(p) for p in answers)


# ---------------------------------------------------- docs/paper.md 1.3: two other ways to write steps 3 to 6


def token_synchronous(model: EMHRNN, h1: Tensor, scores: Tensor, z: list[bool]) -> Tensor:
    """s of one sentence, form (b): one step per word, z as numbers that switch the recurrences."""
    state = zero_state(model.phrase_layer)
    A = h1.new_zeros(model.phrase_attention.weight.shape[1])
    S, N, B, z_before = torch.zeros_like(h1[0]), h1.new_zeros(()), h1.new_zeros(()), 1
    e = torch.exp((scores - scores.max()).clamp(min=-30))
    for t in range(len(h1)):
        z_t = int(z[t] or t == len(h1) - 1)
        S, N = (1 - z_before) * S + e[t] * h1[t], (1 - z_before) * N + e[t]
        new = step(model.phrase_layer, S / N, *state)
        state = tuple(z_t * after + (1 - z_t) * before for after, before in zip(new, state, strict=True))
        p = phrase_features(model, state[0], S / N)
        g = torch.exp(model.phrase_attention.scores(p[None])[0])
        A, B = A + z_t * g * p, B + z_t * g
        z_before = z_t
    return A / B


def segment_table(h1: Tensor, scores: Tensor) -> dict[tuple[int, int], Tensor]:
    """q of every segment first .. last of one sentence, form (c): differences of prefix sums."""
    e = torch.exp(scores - scores.max())
    P = torch.cat([torch.zeros_like(h1[:1]), (e[:, None] * h1).cumsum(0)])
    M = torch.cat([e.new_zeros(1), e.cumsum(0)])
    T = len(h1)
    return {(a, b): (P[b + 1] - P[a]) / (M[b + 1] - M[a]) for a in range(T) for b in range(a, T)}
