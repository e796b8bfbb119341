"""Evidence that people marked, in the formats in which it is published.

ERASER movies       {"text", "label", "split", "evidence_tokens": [[start, end), ...]} a line; tokens of text.split()
SST                 (3 (2 It) (4 (2 's) (4 good))) a line: the sentiment, 0 to 4, of every phrase of a sentence
edited IMDB pairs   Sentiment, Text, batch_id: a review, then the same review edited so that its label flips
fine-grained set    an id, a line of domain and stars, then a label and a sentence a line; a blank line between reviews

A file, also .gz, or a zip of which one member is the asked part. What it is shows in its first line.
"""

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.readers.source import Source
from emhrnn.errors import DataError
from emhrnn.files import write_text
from emhrnn.shapes import Bool, Int64

POSITIVE, NEGATIVE = "pos", "neg"
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
NEUTRAL = 2  # of the five sentiments of the treebank
COMPARED = 200  # letters and digits at the start of a text, by which documents are recognised
RATINGS = {"pos": 1, "neg": -1, "neu": 0, "mix": 0, "nr": 0}  # of sentences; nr: not relevant


@dataclass(frozen=True, eq=False)
class Highlighted:
    """A text, its tokens [start, end) in characters, and those that people marked as evidence for its label."""

    text: str
    label: str
    tokens: Int64[np.ndarray, "tokens 2"]
    marked: Bool[np.ndarray, " tokens"]


@dataclass(frozen=True, eq=False)
class Rated:
    """A text, parts of it [start, end) in characters, and how good (> 0) or bad (< 0) people find what each says."""

    text: str
    spans: Int64[np.ndarray, "spans 2"]
    ratings: Int64[np.ndarray, " spans"]


@dataclass(frozen=True, eq=False)
class EditedPair:
    """A text and its label, and the same text edited so that the other label is right."""

    text: str
    label: str
    edited: str


Item = Highlighted | Rated | EditedPair


@dataclass(frozen=True, eq=False)
class HumanEvidence:
    """`name` is the set's, `part` the split that was read."""

    name: str
    part: str
    items: Sequence[Item]


def read_evidence(path: Path, part: str | None = None, *, least: int = 2) -> HumanEvidence:
    """The documents of a split: by default validation of ERASER, test of the others; the fine-grained set has one.
    Parts of SST have `least` words; with one, whole sentences are parts, too.

    Raises:
        DataError: the file is missing, or of none of the formats, or does not have the part.
    """
    text, member = _text(path, part)
    first = next((line for line in text.splitlines() if line.strip()), "")
    name, reader = _format_of(first, path)
    try:
        items = list(_treebank(text, part, least) if reader is _treebank else reader(text, part))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not {name} as it is published: {type(error).__name__} {error}") from None
    if not items:
        raise DataError(f"{path} has no documents of part {part or DEFAULT_PARTS[name]!r}; give another --part")
    return HumanEvidence(name, member or part or DEFAULT_PARTS[name], items)


def _text(path: Path, part: str | None) -> tuple[str, str | None]:
    """The text, and of which member of a zip it is."""
    if not path.is_file():
        raise DataError(f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; give a file of human evidence")
    try:
        if not zipfile.is_zipfile(path):
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            return content.decode("utf-8"), None
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith((".txt", ".tsv", ".jsonl"))]
            wanted = [name for name in names if re.split(r"[_.]", Path(name).name)[0] == (part or "test")]
            chosen = names if len(names) == 1 else wanted
            if len(chosen) != 1:
                raise DataError(f"{path} has no part {part or 'test'!r} but {sorted(names)}; give --part")
            stem = re.split(r"[_.]", Path(chosen[0]).name)[0]
            return archive.read(chosen[0]).decode("utf-8"), stem if len(names) > 1 else "all"
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile):
        raise DataError(f"{path} cannot be read as text; give a file of human evidence as it is published") from None


def _eraser(text: str, part: str | None) -> Iterator[Highlighted]:
    for line in text.splitlines():
        row: Mapping[str, Any] = json.loads(line)
        if row["split"] != (part or DEFAULT_PARTS[ERASER]):
            continue
        tokens = np.array([match.span() for match in re.finditer(r"\S+", row["text"])], dtype=np.int64).reshape(-1, 2)
        marked = np.zeros(len(tokens), dtype=bool)
        for start, end in row["evidence_tokens"]:
            marked[start:end] = True
        if marked.any() and not marked.all():
            yield Highlighted(row["text"], row["label"], tokens, marked)


def _treebank(text: str, part: str | None, least: int = 2) -> Iterator[Rated]:
    """Phrases of two words or more that are not the whole sentence; or of one and more, and the sentence."""
    for line in text.splitlines():
        if line.strip():
            yield _tree(line, least)


def _tree(line: str, least: int) -> Rated:
    words, open_phrases, spans, position = list[str](), list[tuple[int, int, int]](), list[tuple[int, int, int]](), 0
    for bracket, sentiment, word in re.findall(r"(\()(\d) ?|([^\s()]+)|\)", line):
        if bracket:
            open_phrases.append((int(sentiment), position, len(words)))
        elif word:
            words.append(BRACKETS.get(word, word.replace("\\/", "/").replace("\\*", "*")))
            position += len(words[-1]) + 1
        else:
            rating, start, first = open_phrases.pop()
            if len(words) - first >= least and (open_phrases or least == 1):
                spans.append((start, position - 1, rating - NEUTRAL))
    if open_phrases:
        raise ValueError(f"brackets that do not close in {line[:40]!r}")
    table = np.array(spans, dtype=np.int64).reshape(-1, 3)
    return Rated(" ".join(words), table[:, :2], table[:, 2])


def _pairs(text: str, part: str | None) -> Iterator[EditedPair]:
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t"))
    for original, edited in zip(rows[::2], rows[1::2], strict=True):
        if original["batch_id"] != edited["batch_id"]:
            raise ValueError(f"rows of batch {original['batch_id']} are not next to each other")
        yield EditedPair(original["Text"], original["Sentiment"][:3].lower(), edited["Text"])


def _sentences(text: str, part: str | None) -> Iterator[Rated]:
    for block in re.split(r"\n\s*\n", text.strip()):
        rows = [line.split("\t", 1) for line in block.splitlines()[2:]]
        ends = np.cumsum([len(row[1]) + 1 for row in rows])
        starts = np.concatenate([[0], ends[:-1]])
        ratings = np.array([RATINGS[row[0]] for row in rows], dtype=np.int64)
        yield Rated("\n".join(row[1] for row in rows), np.stack([starts, ends - 1], axis=1), ratings)


ERASER, SST, CAD, SENTENCES = "ERASER movies", "SST", "edited IMDB pairs", "fine-grained sentences"
DEFAULT_PARTS = {ERASER: "validation", SST: "test", CAD: "test", SENTENCES: "all"}
Reader = Callable[[str, str | None], Iterator[Item]]


def _format_of(first: str, path: Path) -> tuple[str, Reader]:
    if first.startswith("{") and "evidence_tokens" in first:
        return ERASER, _eraser
    if re.match(r"\(\d ", first):
        return SST, _treebank
    if first.split("\t") == ["Sentiment", "Text", "batch_id"]:
        return CAD, _pairs
    if re.match(r"\S+$", first):
        return SENTENCES, _sentences
    raise DataError(f"{path} is none of ERASER movies, SST, edited IMDB pairs and the fine-grained sentences")


# ------------------------------------------------------------------ `emhrnn paper documents`


def write_marked(path: Path, part: str, out: Path, marked: int | None = None, seed: int = 0) -> int:
    """Rated parts as documents of their own, each text and label once; marked documents with their spans, or only
    so many of them, drawn with the seed. How many documents.

    Raises:
        DataError: the evidence is of pairs, or not of a known format.
    """
    rows = list[dict[str, Any]]()
    for item in read_evidence(path, part, least=1).items:
        if isinstance(item, EditedPair):
            raise DataError(
                f"{path} has edited pairs; give SST or ERASER movies, or leave its texts out with --without"
            )
        if isinstance(item, Highlighted):
            spans = item.tokens[item.marked].tolist()
            rows.append({"text": item.text, "label": item.label, "spans": spans})
        else:
            rows += _rated_rows(item)
    if marked is not None:
        for place in np.random.default_rng(seed).permutation(len(rows))[marked:].tolist():
            rows[place] = {**rows[place], "spans": []}
    return _write(out, {json.dumps(row, ensure_ascii=False): None for row in rows})


def _rated_rows(item: Rated) -> list[dict[str, str]]:
    parts = zip(item.spans.tolist(), item.ratings.tolist(), strict=True)
    names = {1: POSITIVE, -1: NEGATIVE}
    return [
        {"text": item.text[start:end], "label": names[1 if rating > 0 else -1]}
        for (start, end), rating in parts
        if rating
    ]


def write_without(data: Path, evidence: Path, out: Path) -> int:
    """The rows of the data whose text is in no split of the evidence, edited texts included. How many.

    Raises:
        DataError: one of the files cannot be read.
    """
    known = set[str]()
    for part in ("train", "dev", "test"):
        for item in read_evidence(evidence, part).items:
            known.add(_compared(item.text))
            if isinstance(item, EditedPair):
                known.add(_compared(item.edited))
    rows = (
        {"text": record.text, "label": record.label} for record in Source(data) if _compared(record.text) not in known
    )
    return _write(out, [json.dumps(row, ensure_ascii=False) for row in rows])


def _compared(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", re.sub(r"<br\s*/?>", "", text.lower()))[:COMPARED]


def _write(out: Path, lines: Iterable[str]) -> int:
    lines = list(lines)
    write_text(out, "".join(f"{line}\n" for line in lines))
    return len(lines)
