"""Slow, obvious twins of the fast text path."""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from emhrnn.text import read_document
from emhrnn.text.vocabulary import Vocabulary


def encode(vocabulary: Vocabulary, text: str, *, lowercase: bool = True) -> tuple[list[int], list[int]]:
    """Word ids and sentence offsets by way of the document with all its offsets."""
    document = read_document(text, lowercase=lowercase)
    return [vocabulary.id_of(word) for word in document.words], document.sentence_offsets.tolist()


def count_words(texts: Iterable[str], *, lowercase: bool = True) -> Counter[str]:
    """How often each word occurs."""
    return Counter(word for text in texts for word in read_document(text, lowercase=lowercase).words)


def uncovered(text: str, starts: np.ndarray, ends: np.ndarray) -> str:
    """The characters that no word covers, `<br>` tags with the blanks in them left out."""
    covered = np.zeros(len(text), dtype=int)
    for start, end in zip(starts, ends, strict=True):
        covered[start:end] += 1
    assert covered.max(initial=0) <= 1, "two words share a character"
    for tag in re.finditer(r"<[bB][rR]\s?/?>", text):
        if not covered[tag.start() : tag.end()].any():
            covered[tag.start() : tag.end()] = 1
    return "".join(character for character, times in zip(text, covered, strict=True) if not times)
