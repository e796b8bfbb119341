"""Pauses, word by word."""

import math

from emhrnn.models.pauses import SMOOTH, SURE


def odds(sentences: list[list[str]], word: str, following: str) -> float:
    """log-odds, over those of any word, that a pause follows `word`, plus that one goes before `following`."""
    return _one(sentences, word, +1) + _one(sentences, following, -1)


def is_mark(word: str) -> bool:
    return all(character in ",;:.!?)]…—–" for character in word) or (len(word) > 1 and set(word) == {"-"})


def _one(sentences: list[list[str]], word: str, side: int) -> float:
    if is_mark(word):
        return SURE if side == 1 else -2 * SURE
    seen = paused = all_seen = all_paused = 0
    for sentence in sentences:
        for place, other in enumerate(sentence):
            if is_mark(other):
                continue
            beside = place + side
            pause = not 0 <= beside < len(sentence) or is_mark(sentence[beside])
            all_seen, all_paused = all_seen + 1, all_paused + pause
            if other == word:
                seen, paused = seen + 1, paused + pause
    rate = (all_paused + 1) / (all_seen + 2)
    share = (paused + SMOOTH * rate) / (seen + SMOOTH)
    return math.log(share / (1 - share)) - math.log(rate / (1 - rate))
