"""Documents drawn from a file, for measurements that no sum over all of them would bear."""

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from emhrnn.corpus import is_corpus
from emhrnn.corpus.readers.source import Source
from emhrnn.errors import DataError
from emhrnn.files import write_text
from emhrnn.text import read_document
from emhrnn.training.data import Named


def drawn_texts(data: Named, count: int, seed: int) -> list[str]:
    """`count` texts, each set of them as likely as any other; all texts where there are fewer."""
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no texts; give the data that it was made from")
    source = Source(data.path, format=data.format, columns=data.columns, split=data.split)
    drawn = _reservoir((record.text for record in source if record.text.strip()), count, seed)
    texts = [text for text in drawn if len(read_document(text))]  # a text may be all `<br>`
    if not texts:
        raise DataError(f"{data.path} has no text with words; give data with documents")
    return texts


def _reservoir(texts: Iterable[str], count: int, seed: int) -> list[str]:
    """One pass, and only as many texts in memory as are drawn (Vitter's algorithm R)."""
    generator, kept = np.random.default_rng(seed), list[str]()
    for number, text in enumerate(texts):
        if number < count:
            kept.append(text)
        elif (place := int(generator.integers(number + 1))) < count:
            kept[place] = text
    return kept


def save_texts(path: Path, texts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(text) + "\n" for text in texts))


def load_texts(path: Path) -> list[str]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
