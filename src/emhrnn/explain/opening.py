"""Which sentences of a page open. If all of them did in a document of 200,000 words, a browser would build millions of
elements before it shows the first; beyond 20,000 words only some do."""

import numpy as np
from jaxtyping import Bool

from emhrnn.explain.explanation import Explanation, largest
from emhrnn.explain.headline import ways

WORDS = 20_000


def opening(explanation: Explanation, words: int = WORDS) -> Bool[np.ndarray, " sentences"]:
    """All, or those that the summary quotes and then the heaviest, as long as they have no more words together."""
    lengths = np.diff(explanation.phrase_offsets[explanation.sentence_offsets])
    opens = np.ones(len(lengths), dtype=bool)
    if lengths.sum() <= words:
        return opens
    order = np.array(list(dict.fromkeys([*_quoted(explanation), *largest(explanation.gamma, len(lengths))])))
    opens[order] = np.cumsum(lengths[order]) <= words
    return opens


def _quoted(explanation: Explanation) -> list[int]:
    spoken = [phrase for _, phrases in ways(explanation) for phrase in phrases]
    starts = explanation.starts[explanation.phrase_offsets[explanation.sentence_offsets[:-1]]]
    held = np.searchsorted(starts, [phrase.start for phrase in spoken], side="right") - 1
    decisive = [explanation.decisive_path().sentence.index] if explanation.supported else []
    return [*decisive, *held.tolist()]
