"""Documents drawn from a file, for measurements that no sum over all of them would bear."""

import json
from collections.abc import Iterable
from pathlib import Path

from emhrnn.corpus import is_corpus
from emhrnn.corpus.readers.source import Source
from emhrnn.errors import DataError
from emhrnn.files import write_text
from emhrnn.paper.sampling import Reservoir
from emhrnn.text import read_document
from emhrnn.training.data import Named


def drawn_texts(data: Named, count: int, seed: int) -> list[str]:
    """`count` texts, each set of them as likely as any other; all texts where there are fewer. Those without words are
    left out, after the drawing, since finding them means reading all."""
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no texts; give the data that it was made from")
    source = Source(data.path, format=data.format, columns=data.columns, split=data.split)
    reservoir = Reservoir[str](count, seed)
    for record in source:
        if record.text.strip():
            reservoir.offer(record.text)
    texts = [text for text in reservoir.drawn if len(read_document(text))]  # a text may be all `<br>`
    if not texts:
        raise DataError(f"{data.path} has no text with words; give data with documents")
    return texts


def save_texts(path: Path, texts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(text) + "\n" for text in texts))


def load_texts(path: Path) -> list[str]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
