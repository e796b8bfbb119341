"""Sentences with gold chunks in the format of CoNLL-2000: a word a line with its tag and B-, I- or O, a blank line
between sentences. Words are taken as they are: no tokeniser of ours cuts them again."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from emhrnn.errors import DataError


@dataclass(frozen=True, eq=False)
class Chunked:
    """`ends` is true at the last word of each chunk, and at each word outside of all chunks."""

    sentences: list[list[str]]
    ends: Bool[np.ndarray, " words"]


def read_chunks(path: Path, part: str) -> Chunked:
    """A file, or the member `part`.txt of a zip, as the corpus comes."""
    lines = _text(path, part).splitlines()
    sentences, tags = [list[str]()], list[str]()
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            if sentences[-1]:
                sentences.append([])
            continue
        if len(fields) != 3 or fields[2][0] not in "BIO":
            raise DataError(
                f"{path}, line {number}: {line[:60]!r} is not a word, a tag and B-, I- or O; give CoNLL-2000"
            )
        sentences[-1].append(fields[0])
        tags.append(fields[2] if len(sentences[-1]) > 1 else f"^{fields[2]}")
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise DataError(f"{path} has no sentences; give CoNLL-2000")
    return Chunked(sentences, _ends(tags))


def _ends(tags: list[str]) -> Bool[np.ndarray, " words"]:
    """A chunk ends where the next word does not go on with it; `^` marks the first word of a sentence."""
    return np.array([not following.startswith("I-") for following in [*tags[1:], "^"]], dtype=bool)


def _text(path: Path, part: str) -> str:
    if not path.is_file():
        raise DataError(
            f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; give conll2000.zip, or a file of it"
        )
    if not zipfile.is_zipfile(path):
        return _decoded(path, path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        members = [name for name in archive.namelist() if Path(name).name == f"{part}.txt"]
        if len(members) != 1:
            raise DataError(f"{path} has no {part}.txt; give conll2000.zip, and --part train or test")
        return _decoded(path, archive.read(members[0]))


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text; give conll2000.zip, or a file of it") from None
