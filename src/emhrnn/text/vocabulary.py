"""The words that a model knows, and their ids. Id 0 is `<unk>`, every word that it does not know."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_text
from emhrnn.shapes import Int, Int32
from emhrnn.text.language import COMPOUNDING

UNK = "<unk>"
ENDINGS = ("ern", "est", "em", "en", "er", "es", "st", "te", "e", "n", "s", "t")  # of inflected words, longest first
SHORTEST_STEM, SHORTEST_HEAD, SHORTEST_REST = 4, 5, 3  # letters: Zimmer|n, Hotel|zimmer; never un|freundlich
NEGATIONS = ("miss", "nicht", "kein", "anti", "niet", "icke", "ikke")


@runtime_checkable
class WordIds(Protocol):
    """All that encoding needs of a vocabulary, which may be one that grows."""

    def id_of(self, word: str) -> int: ...


@dataclass(frozen=True)
class Vocabulary:
    """`words[id]` is the word of an id. Made from counted words, from pretrained vectors, or from both: `a | b`."""

    words: list[str]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.words or self.words[0] != UNK:
            given = repr(self.words[0]) if self.words else "nothing"
            raise DataError(f"a vocabulary must begin with {UNK!r}, the word of id 0, and begins with {given}")
        ids = {word: i for i, word in enumerate(self.words)}
        if len(ids) < len(self.words):
            twice = next(word for i, word in enumerate(self.words) if ids[word] != i)
            raise DataError(f"the word {twice!r} is twice in the vocabulary; give each word once")
        broken = next((word for word in self.words if not word or "\n" in word), None)
        if broken is not None:
            raise DataError(f"{broken!r} cannot be in a vocabulary: a word is not empty and has no line end")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 1,
        max_size: int | None = None,
        known: Container[str] | None = None,
    ) -> "Vocabulary":
        """Words that occur `min_count` times or more, the most frequent first; at most `max_size` besides `<unk>`.
        Those in `known` count as frequent enough, however rare."""
        if min_count < 1 or (max_size is not None and max_size < 1):
            raise ConfigError(f"min_count is {min_count} and max_size is {max_size}; both must be 1 or more")
        known = known or ()
        kept = [word for word, count in counts.items() if (count >= min_count or word in known) and word != UNK]
        kept.sort(key=lambda word: (-max(counts[word], min_count), word))
        return cls([UNK, *kept[:max_size]])

    @classmethod
    def from_words(cls, words: Iterable[str]) -> "Vocabulary":
        """The words as given, for example those of pretrained vectors, as the paper does; repeats are left out."""
        return cls(list(dict.fromkeys([UNK, *words])))

    def __or__(self, other: "Vocabulary") -> "Vocabulary":
        """The words of both: ours keep their ids, the new ones of the other follow."""
        return Vocabulary.from_words([*self.words, *other.words])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id_of(self, word: str) -> int:
        """The id of a word, 0 if it is unknown."""
        return self._ids.get(word, 0)

    def encode(self, words: Iterable[str]) -> Int32[np.ndarray, " words"]:
        return np.fromiter(map(self.id_of, words), dtype=np.int32)

    def decode(self, ids: Int[np.ndarray, " words"]) -> list[str]:
        if len(ids) and not (ids.min() >= 0 and ids.max() < len(self)):
            raise DataError(f"word ids {ids.min()} to {ids.max()} are not all of a vocabulary of {len(self)} words")
        return [self.words[i] for i in ids.tolist()]

    def save(self, path: Path) -> None:
        """A plain text file, one word a line, line i (from 0) the word of id i."""
        write_text(path, "\n".join(self.words) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        try:
            lines = path.read_bytes().decode("utf-8").split("\n")
            if lines.pop() != "":
                raise DataError("its last line has no end; the file was cut short")
            return cls(lines)
        except OSError as error:
            raise CheckpointError(f"cannot read the vocabulary {path}: {error.strerror}") from error
        except (UnicodeDecodeError, DataError) as error:
            raise CheckpointError(f"{path} is not a vocabulary: {error}; save it again") from error


def word_ids(vocabulary: WordIds, language: str) -> WordIds:
    """How words are looked up: in a language with compounds, an unknown word is read as one that it is made of."""
    return Relatives(vocabulary) if language in COMPOUNDING and isinstance(vocabulary, Vocabulary) else vocabulary


def encoded_words(words: Iterable[str], vocabulary: Vocabulary, language: str) -> Int32[np.ndarray, " words"]:
    """The ids of words, as text of the language is read."""
    return np.fromiter(map(word_ids(vocabulary, language).id_of, words), dtype=np.int32)


@dataclass(frozen=True)
class Relatives:
    """A vocabulary in which an unknown word has the id of a known relative: the same word with another ending
    (freundlichem -> freundlich), or the word that it ends with, which in a compound is what it is about
    (Hotelzimmer -> Zimmer). 0 where there is none."""

    vocabulary: Vocabulary

    def id_of(self, word: str) -> int:
        return self.vocabulary.id_of(word) or (self._relative(word) if word.isalpha() else 0)

    def _relative(self, word: str) -> int:
        known = self.vocabulary.id_of
        for ending in ENDINGS:
            stem = word.removesuffix(ending)
            if SHORTEST_STEM <= len(stem) < len(word) and (found := known(stem) or known(stem + "e")):
                return found
        if word.lower().startswith(NEGATIONS):
            return 0
        heads = (word[start:] for start in range(SHORTEST_REST, len(word) - SHORTEST_HEAD + 1))
        return next((found for head in heads if (found := known(head) or known(head.capitalize()))), 0)
