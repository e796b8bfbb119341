"""EM-HRNN with several levels, one document, one z per level, in Python loops."""

import torch
from torch import Tensor

from tests.oracles.em_hrnn import phrases, pool, recurrence, word_states


def document_logits(levels, sentences: list[list[int]], z: list[list[list[bool]]]) -> Tensor:
    """`z[k][i]` cuts the units of sentence i at level k."""
    top = levels[-1]
    s = []
    for i, words in enumerate(sentences):
        states, q = word_states(levels[0], words), []
        for k, level in enumerate(levels):
            states = recurrence(level.word_layer, q) if k else states
            q = [pool(level.word_attention, phrase) for phrase in phrases(states, z[k][i])]
        s.append(pool(top.phrase_attention, recurrence(top.phrase_layer, q)))
    forward = recurrence(top.sentence_forward, s)
    backward = recurrence(top.sentence_backward, s[::-1])[::-1]
    v = pool(top.sentence_attention, [torch.cat(pair) for pair in zip(forward, backward, strict=True)])
    return top.output.weight @ v + top.output.bias
