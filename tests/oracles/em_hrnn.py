"""EM-HRNN straight from SPEC 1.2: one document, one z, Python loops over words, phrases and sentences."""

import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.layers.bidirectional import Bidirectional
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import log_likelihood


def lstm(layer, inputs: list[Tensor]) -> list[Tensor]:
    """Equation 1, step by step."""
    H = layer.state_weight.shape[1]
    h, c = inputs[0].new_zeros(H), inputs[0].new_zeros(H)
    states = []
    for x in inputs:
        i, f, g, o = (layer.input_weight @ x + layer.state_weight @ h + layer.bias).split(H)
        c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
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
        forward = lstm(model.word_layer.forward_layer, x)
        backward = lstm(model.word_layer.backward_layer, x[::-1])[::-1]
        return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
    return lstm(model.word_layer, x)


def phrases(states: list[Tensor], z: list[bool]) -> list[list[Tensor]]:
    """Cut after every word with z = 1; the last word always ends a phrase."""
    cut: list[list[Tensor]] = [[]]
    for t, h in enumerate(states):
        cut[-1].append(h)
        if z[t] and t < len(states) - 1:
            cut.append([])
    return cut


def document_logits(model: EMHRNN, sentences: list[list[int]], z: list[list[bool]]) -> Tensor:
    s = []
    for words, z_sentence in zip(sentences, z, strict=True):
        h1 = word_states(model, words)
        q = [pool(model.word_attention, phrase) for phrase in phrases(h1, z_sentence)]
        s.append(pool(model.phrase_attention, lstm(model.phrase_layer, q)))
    forward = lstm(model.sentence_forward, s)
    backward = lstm(model.sentence_backward, s[::-1])[::-1]
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
    return log_likelihood(logits[None], torch.from_numpy(batch.labels[document : document + 1]))[0]
