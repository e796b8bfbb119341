"""A document as it is read: the original string, its words, where each stands, and where sentences end."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Int64

from emhrnn.text.sentences import split_sentences
from emhrnn.text.words import normalise, token_spans


@dataclass(frozen=True, eq=False)
class Document:
    """Word i is `words[i]` in its normal form and `text[starts[i] : ends[i]]` as written.
    Sentence j is words[sentence_offsets[j] : sentence_offsets[j + 1]]; no sentence is empty."""

    text: str
    words: list[str]
    starts: Int64[np.ndarray, " words"]
    ends: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def n_sentences(self) -> int:
        return len(self.sentence_offsets) - 1

    @property
    def sentences(self) -> list[list[str]]:
        """The words of each sentence."""
        return [self.words[start:stop] for start, stop in pairwise(self.sentence_offsets.tolist())]

    @property
    def sentence_spans(self) -> list[tuple[int, int]]:
        """Where each sentence stands in the text: from its first word's start to its last word's end."""
        first, last = self.sentence_offsets[:-1], self.sentence_offsets[1:] - 1
        return list(zip(self.starts[first].tolist(), self.ends[last].tolist(), strict=True))


def read_document(text: str, *, language: str = "en", lowercase: bool = True) -> Document:
    """Split a text into sentences and words. A blank text gives a document without words.

    Blanks and `<br>` tags are in no word; every other character is in exactly one.
    """
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    offsets = [0]
    position = 0
    for sentence in split_sentences(text, language):
        for start, end in token_spans(sentence):
            words.append(normalise(sentence[start:end], lowercase=lowercase))
            spans.append((position + start, position + end))
        position += len(sentence)
        if len(words) > offsets[-1]:
            offsets.append(len(words))
    starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return Document(text, words, starts.copy(), ends.copy(), np.array(offsets, dtype=np.int64))
