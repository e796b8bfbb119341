"""Faithfulness with plain lists: one document, one share, one pass of the model at a time."""

import math

import torch

from emhrnn.paper.models.em_hrnn import EMHRNN
from tests.oracles.em_hrnn import document_logits

UNKNOWN_WORD = 0


def unit_numbers(z: list[list[bool]], level: str) -> list[list[int]]:
    """The number of each word's unit in its document."""
    numbers, number = [], 0
    for sentence in z:
        own = []
        for ends in sentence:
            own.append(number)
            number += level == "word" or (level == "phrase" and ends)
        numbers.append(own)
        number += level == "sentence"
    return numbers


def best(scores: list[float], share: float) -> set[int]:
    order = sorted(range(len(scores)), key=lambda unit: (-scores[unit], unit))
    return set(order[: math.ceil(share * len(scores))])


def probability(
    model: EMHRNN, sentences: list[list[int]], z: list[list[bool]], keep: list[list[bool]], chosen: int
) -> float:
    """Of the class, for what is kept; phrases keep their boundaries."""
    words, ends = [], []
    for sentence, own_z, kept in zip(sentences, z, keep, strict=True):
        phrases: list[list[int]] = [[]]
        for word, end, stays in zip(sentence, own_z, kept, strict=True):
            phrases[-1] += [word] if stays else []
            phrases += [[]] if end else []
        phrases = [phrase for phrase in phrases if phrase]
        if phrases:
            words.append([word for phrase in phrases for word in phrase])
            ends.append([t == len(phrase) - 1 for phrase in phrases for t in range(len(phrase))])
    logits = document_logits(model, words or [[UNKNOWN_WORD]], ends or [[True]])
    return float(torch.softmax(logits, dim=0)[chosen].detach())


def falls(
    model: EMHRNN, sentences: list[list[int]], z: list[list[bool]], level: str, scores: list[float], share: float
) -> tuple[float, float]:
    """Comprehensiveness and sufficiency at one share."""
    logits = document_logits(model, sentences, z)
    chosen = int(logits.argmax())
    p = float(torch.softmax(logits, dim=0)[chosen].detach())
    top, numbers = best(scores, share), unit_numbers(z, level)
    without = [[unit not in top for unit in sentence] for sentence in numbers]
    alone = [[unit in top for unit in sentence] for sentence in numbers]
    return tuple(p - probability(model, sentences, z, keep, chosen) for keep in (without, alone))
