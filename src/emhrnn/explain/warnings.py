"""Warnings that go with a prediction: the text is unlike the documents that the model was trained on."""

from collections.abc import Sequence

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.shapes import Bool
from emhrnn.text import Document, Located

UNKNOWN_SHARE = 0.5  # of the words, punctuation aside: from here on there is a warning
FAR = 3  # times as long as the longest training document, or a third of the shortest


def warnings_of(
    documents: Sequence[Located | Document],
    batch: Batch,
    known: Bool[np.ndarray, " words"],
    lengths: tuple[int, int] | None,
) -> list[tuple[str, ...]]:
    """Of each document. `lengths` are the fewest and the most words of a training document, None where not known."""
    words = batch.document_lengths
    unknown = words - np.add.reduceat(known, batch.word_offsets[:-1], dtype=np.int64)
    fewest, most = lengths or (0, int(words.max()))
    # Punctuation, which is nearly always known, may be half of a text: a first look at all words, then at each.
    suspects = np.flatnonzero((unknown > UNKNOWN_SHARE / 2 * words) | (FAR * words < fewest) | (words > FAR * most))
    warnings: list[tuple[str, ...]] = [()] * len(documents)
    for d in suspects.tolist():
        of_document = known[batch.word_offsets[d] : batch.word_offsets[d + 1]]
        told = [_unknown(documents[d], of_document), _length(int(words[d]), fewest, most)]
        warnings[d] = tuple(filter(None, told))
    return warnings


def _unknown(document: Located | Document, known: Bool[np.ndarray, " words"]) -> str:
    spans = zip(document.starts.tolist(), document.ends.tolist(), strict=True)
    spelled = np.array([any(map(str.isalnum, document.text[start:end])) for start, end in spans])
    share = 1 - known[spelled].mean() if spelled.any() else 0.0
    if share < UNKNOWN_SHARE:
        return ""
    return f"{share:.0%} of the words are unknown to this model; do not trust the label."


def _length(words: int, fewest: int, most: int) -> str:
    told = f"This text has {words:,} word{'s' if words > 1 else ''}"
    if FAR * words < fewest:
        return f"{told}, the shortest training document {fewest:,}; the label is less reliable."
    if words > FAR * most:
        return f"{told}, the longest training document {most:,}; the label is less reliable."
    return ""
