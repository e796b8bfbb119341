"""Pretrained word vectors: the embedding matrix that they give for a vocabulary, and the files they are read from.

The format of a file is seen from the content, not from the name; each may also be gzipped.

GloVe text          the 0.418 0.249 ...
word2vec text       400000 100, then lines as above
word2vec binary     400000 100, then word, blank, float32 numbers
.npz                `words` one newline-joined string (or an array of strings), `vectors` (words, size)
"""

import gzip
import math
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import DataError
from emhrnn.files import refuse_pipe
from emhrnn.shapes import Float32
from emhrnn.text.vocabulary import Vocabulary

_BLOCK_ROWS = 5_000
_BUFFER_BYTES = 1 << 16
_MOST_PACKED = 1032  # bytes that one byte of gzip or zip can stand for
_GZIP, _ZIP = b"\x1f\x8b", b"PK"
_BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"[ \t]*\d{1,18}[ \t]+\d{1,18}\s*\n")
# What a short form stands for: vectors without `n't` still know `not`.
_FULL_FORMS = {
    "n't": "not", "'s": "is", "'re": "are", "'m": "am", "'ve": "have", "'ll": "will", "'d": "would", "ca": "can",
    "wo": "will", "ai": "am", "'em": "them", "'til": "until", "'cause": "because", "a": "an", "i": "me",
    "!!": "!", "!!!": "!", "?!": "?", "??": "?", "???": "?", "...": "…", "..": "…", "--": "-", "–": "-", "—": "-",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Vectors:
    """`matrix[i]` is the vector of `words[i]`. A word that comes twice has its first vector."""

    words: list[str]
    matrix: Float32[np.ndarray, "words size"]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.matrix):
            raise DataError(f"there are {len(self.words)} words and {len(self.matrix)} vectors; give one vector a word")
        if self.matrix.size == 0:
            raise DataError(
                f"the vectors are {self.matrix.shape[0]} x {self.matrix.shape[1]}; there must be at least one"
            )
        finite = np.isfinite(self.matrix).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise DataError(f"the vector of {self.words[row]!r} (word {row + 1}) is not finite; remove or repair it")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(reversed(self.words), range(len(self) - 1, -1, -1), strict=True))

    def lookup(
        self, vocabulary: Vocabulary, *, generator: np.random.Generator | None
    ) -> Float32[np.ndarray, "vocabulary size"]:
        """The embedding matrix of a vocabulary.

        A word without a vector starts from the vector of a related form (`n't`: not, `mr.`: mr, `god-awful`: the mean
        of god and awful); without one, from a normal draw with the mean and deviation of all vectors in each
        dimension, or without a generator from their mean. `<unk>` starts from their mean.
        """
        mean = self.matrix.mean(axis=0, dtype=np.float64)
        shape = len(vocabulary), self.size
        if generator is None:
            matrix = np.tile(mean, (shape[0], 1)).astype(np.float32)
        else:  # one draw per word, used or not: a word's vector does not depend on which other words are known
            matrix = generator.normal(mean, self.matrix.std(axis=0, dtype=np.float64), shape).astype(np.float32)
        for i, word in enumerate(vocabulary.words):
            rows = self._related_rows(word)
            if rows:
                matrix[i] = self.matrix[rows].mean(axis=0)
            elif i == 0:
                matrix[i] = mean
        return matrix

    def _related_rows(self, word: str) -> list[int]:
        for forms in ([word], [_FULL_FORMS.get(word, word)], [word.rstrip(".")], word.split("-")):
            rows = [self._rows[form] for form in forms if form in self._rows]
            if len(rows) == len(forms):
                return rows
        return []


def read_vectors(path: Path) -> Vectors:
    """The vectors of a file in any of the formats above.

    Raises:
        DataError: the file is missing, cut short or in no known format, or a row has the wrong number of values.
    """
    refuse_pipe(path)
    try:
        with _open(path) as file:
            if file.peek(len(_BOM)).startswith(_BOM):
                file.read(len(_BOM))  # else it would hide the header, or be part of the first word
            return _reader_for(file.peek(1 << 12), path)(file, path)
    except (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, RuntimeError) as error:  # or encrypted
        raise DataError(f"{path} is damaged or cut short ({error}); fetch it again") from error
    except OSError as error:
        raise DataError(f"cannot read the vectors {path}: {error.strerror or error}") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _packed(path: Path) -> bytes:
    """The first bytes of gzip or zip, if the file has them."""
    with path.open("rb") as file:
        magic = file.read(2)
    return magic if magic in (_GZIP, _ZIP) else b""


def _most_bytes(path: Path) -> int:
    """What the file can be when it is unpacked."""
    return path.stat().st_size * (_MOST_PACKED if _packed(path) else 1)


def _open(path: Path) -> BufferedReader:
    if _packed(path) == _GZIP:
        return BufferedReader(gzip.open(path), _BUFFER_BYTES)
    return BufferedReader(path.open("rb", buffering=0), _BUFFER_BYTES)


def _reader_for(head: bytes, path: Path) -> Callable[[BufferedReader, Path], Vectors]:
    if not head.strip():
        raise DataError("the file is empty; give GloVe text, word2vec text or binary, or .npz")
    if head.startswith(b"PK\x03\x04"):
        return _read_npz
    header = _HEADER.match(head)
    if header is None or _is_text_row(head[header.end() :], int(header[0].split()[1])):
        return _read_text
    return _read_binary


def _is_text_row(rest: bytes, size: int) -> bool:
    """Whether a file continues with a word and decimal numbers; the row may be cut off by the end of `rest`."""
    row, line_end, _ = rest.partition(b"\n")
    fields = row.split(b" ")[1 : size + 1]
    if fields and not line_end and not fields[-1]:
        fields.pop()  # cut off just before it
    figures = re.compile(rb"[-+.\deE]+|nan|inf")
    return bool(fields) and all(figures.fullmatch(field.strip()) for field in fields)


# --- text ---


def _read_text(file: BufferedReader, path: Path) -> Vectors:
    header = _HEADER.match(file.peek(1 << 12))
    count, size = map(int, file.readline().split()) if header else (None, None)
    words: list[bytes] = []
    blocks: list[Float32[np.ndarray, "rows size"]] = []
    while lines := [line.strip(b" \r\n") for line in islice(file, _BLOCK_ROWS)]:
        if size is None:
            size = _commonest_size(lines)
        block_words, numbers = _parse_lines(lines, len(words) + (2 if header else 1), size)
        words += block_words
        blocks.append(numbers)
    if count not in (None, len(words)):
        raise DataError(f"the first line promises {count} words, but {len(words)} follow; fetch the file again")
    if not blocks:
        raise DataError("there is no vector in it; give one word and its numbers a line")
    return Vectors([word.decode("utf-8", "replace") for word in words], np.concatenate(blocks))


def _commonest_size(lines: list[bytes]) -> int:
    """How many numbers most rows have: the first may be a word with blanks in it, or no row of a vector at all."""
    sizes = Counter(line.count(b" ") for line in lines if line)
    return sizes.most_common(1)[0][0] if sizes else 0


def _parse_lines(lines: list[bytes], first_row: int, size: int) -> tuple[list[bytes], Float32[np.ndarray, "rows size"]]:
    split = [_split_line(line, size) for line in lines]
    words, numbers = [word for word, _ in split], [numbers for _, numbers in split]
    table = _parse_table(numbers, size) if size > 0 and all(words) else None
    if table is None:
        bad = next(i for i, (word, row) in enumerate(split) if not word or _parse_table([row], size) is None)
        shown = lines[bad][:40].decode("utf-8", "replace")
        raise DataError(
            f"row {first_row + bad} ({shown!r}...) is not a word and {size or 'its'} numbers, with one blank between"
            " them; repair the row or fetch the file again"
        )
    return words, table


def _split_line(line: bytes, size: int) -> tuple[bytes, bytes]:
    """The word and its numbers. A word may hold blanks itself, as some of GloVe 840B do: `. . . 0.1 0.2`."""
    if line.count(b" ") <= size:
        word, _, numbers = line.partition(b" ")
        return word, numbers
    word, *fields = line.rsplit(b" ", size)
    return word, b" ".join(fields)


def _parse_table(rows: list[bytes], size: int) -> Float32[np.ndarray, "rows size"] | None:
    """The numbers of rows of text; None if they are not numbers or not `size` a row."""
    import pyarrow as pa  # here, since importing it takes longer than most uses of this package
    from pyarrow import csv

    if any(row.count(b" ") != size - 1 for row in rows):  # before columns are made: a header may promise any number
        return None
    text = b"\n".join(rows) + b"\n"
    columns = [str(i) for i in range(size)]
    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(column_names=columns, use_threads=False, block_size=len(text)),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.float32()), null_values=[]),
        )
    except pa.ArrowInvalid:
        return None
    return np.stack([column.to_numpy() for column in table.columns], axis=1) if size else None


# --- word2vec binary ---


def _read_binary(file: BufferedReader, path: Path) -> Vectors:
    count, size = map(int, file.readline().split())
    if count < 1 or size < 1:
        raise DataError(f"the first line promises {count} words of {size} numbers; both must be 1 or more")
    if size * 4 > _most_bytes(path):  # before memory is taken for them
        raise DataError(f"the first line promises words of {size} numbers, too many for this file; fetch it again")
    words: list[str] = []
    blocks: list[bytes] = []
    for row in range(1, count + 1):
        word = _read_until_blank(file)
        numbers = file.read(size * 4)
        if word is None or len(numbers) < size * 4:
            raise DataError(f"it ends inside word {row} of the {count} that its first line promises; fetch it again")
        words.append(word.lstrip(b"\n").decode("utf-8", "replace"))
        blocks.append(numbers)
    matrix = np.frombuffer(b"".join(blocks), dtype="<f4").reshape(count, size)
    return Vectors(words, matrix.astype(np.float32))


def _read_until_blank(file: BufferedReader) -> bytes | None:
    """The word before the next blank; None if the file ends, or goes on for too long without one."""
    head = file.peek(1 << 10)
    end = head.find(b" ")
    if end >= 0:
        return file.read(end + 1)[:-1]
    word = bytearray()  # the buffer ends inside the word
    while len(word) < 1 << 16 and (character := file.read(1)):
        if character == b" ":
            return bytes(word)
        word += character
    return None


# --- npz ---


def _read_npz(file: BufferedReader, path: Path) -> Vectors:
    try:
        with zipfile.ZipFile(file) as archive:
            for name in ("words.npy", "vectors.npy"):
                with archive.open(name) as array:
                    _check_array(array, name, min(archive.getinfo(name).file_size, _most_bytes(path)))
        file.seek(0)
        with np.load(file, allow_pickle=False) as arrays:
            words, matrix = arrays["words"], arrays["vectors"]
    except (KeyError, ValueError) as error:
        raise DataError(f"it must hold the arrays `words` (text) and `vectors` (numbers): {error}") from error
    if words.dtype.kind != "U" or words.ndim > 1 or matrix.dtype.kind != "f" or matrix.ndim != 2:
        raise DataError(
            f"`words` is {words.dtype} {words.shape} and `vectors` is {matrix.dtype} {matrix.shape}; they must be"
            " text (one newline-joined string, or one string a word) and numbers (words, size)"
        )
    listed = str(words).split("\n") if words.ndim == 0 else words.tolist()
    return Vectors(listed, matrix.astype(np.float32))


def _check_array(array: Any, name: str, most: int) -> None:
    """Its header says how much memory is taken before the first number is read: `most` bytes are possible."""
    version = np.lib.format.read_magic(array)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read_header(array)
    if math.prod(shape) * kind.itemsize > most:
        raise DataError(f"{name} promises {' x '.join(map(str, shape))} values, too many for this file; fetch it again")
