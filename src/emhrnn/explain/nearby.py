"""How much support stands around each word: where a reader who marks passages would mark."""

import numpy as np

from emhrnn.shapes import Float64, Int64

REACH = 7  # words; chosen on what people marked in the training split of ERASER movies (docs/trust.md)


def nearby(
    effects: Float64[np.ndarray, " words"], sentence_of_word: Int64[np.ndarray, " words"]
) -> Float64[np.ndarray, " words"]:
    """The positive effects of a word and its neighbours in its sentence. A neighbour counts a seventh less for each
    step, and nothing from the seventh on."""
    support = np.maximum(effects, 0.0)
    total: np.ndarray = support.copy()
    for step in range(1, min(REACH, len(support))):
        together = (1 - step / REACH) * (sentence_of_word[step:] == sentence_of_word[:-step])
        total[step:] += together * support[:-step]
        total[:-step] += together * support[step:]
    return total
