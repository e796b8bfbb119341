"""A run as a reader of documents: each piece of the data through its model, and what it chose in each document."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int64

from emhrnn.corpus import Columns, Source, is_corpus
from emhrnn.corpus.record import Record, clean_text
from emhrnn.errors import ConfigError, DataError
from emhrnn.explain.attention import levels_of
from emhrnn.explain.build import predict
from emhrnn.explain.explainer import batch_of, groups
from emhrnn.explain.explanation import as_tuple
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output
from emhrnn.paper.analysis.tally import Tally
from emhrnn.paper.analysis.ties import Ties
from emhrnn.text import Document, read_document
from emhrnn.training.data import Named, check_ids
from emhrnn.training.run import Run

PIECE = 256  # rows at a time


class Chosen(NamedTuple):
    """The most important word of a document: what it is, and where it stands in the text."""

    word: str
    start: int


@dataclass(eq=False)
class Reader:
    """A run, and what has been seen of its reading."""

    name: str
    run: Run
    tally: Tally
    ties: Ties | None = None
    has_phrases: bool = False
    right: int = 0
    labelled: int = 0
    important: Counter[str] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labelled if self.labelled else None

    @torch.inference_mode()
    def read(self, records: Sequence[Record], documents: Sequence[Document]) -> list[Chosen]:
        """What it chose in each document."""
        chosen: list[Chosen] = []
        for start, stop in groups([len(document) for document in documents]):
            chosen += self._read_batch(records[start:stop], documents[start:stop])
        self.important.update(choice.word for choice in chosen)
        return chosen

    def _read_batch(self, records: Sequence[Record], documents: Sequence[Document]) -> list[Chosen]:
        users, products = [record.user for record in records], [record.product for record in records]
        batch = batch_of(self.run, documents, users=users, products=products)
        output: Output = self.run.model(batch)
        levels = levels_of(output, batch)
        if levels is None:
            raise ConfigError(
                f"the model {self.run.config.model.name!r} of {self.name} has no weights of words and sentences to "
                "analyse; give a run of em-hrnn, mhs-rnn-att, hn-att, cma or basis-cust"
            )
        self.has_phrases = output.z is not None
        places = self.tally.add(batch, levels) - batch.word_offsets[:-1]
        labels = self._labels(output, records)
        if self.ties is not None:
            self.ties.add(batch, labels)
        rows = zip(documents, places.tolist(), strict=True)
        return [Chosen(document.words[t], int(document.starts[t])) for document, t in rows]

    def _labels(self, output: Output, records: Sequence[Record]) -> Int64[np.ndarray, " documents"]:
        """The class of each document: its label, or where it has none, what the model says. Counts what is right."""
        run, table = self.run, self.run.probabilities(output.logits).numpy()
        labels: Int64[np.ndarray, " documents"] = table.argmax(axis=1)
        for d, record in enumerate(records):
            if record.label is None:
                continue
            predicted = predict(table[d], run.classes, run.multi_label)
            self.labelled += 1
            self.right += set(as_tuple(predicted)) == set(as_tuple(record.label))
            if record.label in run.classes:
                labels[d] = run.classes.index(record.label)
        return labels


@contextmanager
def ready(readers: Sequence[Reader]) -> Iterator[None]:
    """Word layers precomputed, where models can do that."""
    models = [reader.run.model for reader in readers if isinstance(reader.run.model, EMHRNN)]
    for model in models:
        model.precompute_words()
    try:
        yield
    finally:
        for model in models:
            model.forget_words()


def open_source(data: Named, runs: Sequence[Run]) -> Source:
    """With labels where the data has them, which is seen at its first row."""
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no text to show; give the raw file")

    def source(columns: Columns) -> Source:
        return Source(data.path, format=data.format, columns=columns, split=data.split)

    columns = data.columns
    try:
        with closing(iter(first := source(columns))) as records:
            next(records, None)
    except DataError:
        if columns.label is not None:
            raise
        columns = Columns(text=columns.text, labelled=False)
        with closing(iter(first := source(columns))) as records:
            next(records, None)
    for run in runs:
        check_ids(run.config, Path(data.path), first.taken)
    return source(columns)


def pieces(rows: Iterable[Record]) -> Iterator[list[Record]]:
    records = iter(rows)
    while piece := list(islice(records, PIECE)):
        yield piece


def read_all(run: Run, records: Sequence[Record]) -> list[Document]:
    """Whole texts, without the length caps of training, as an explanation shows them."""
    text = run.text
    return [
        read_document(clean_text(record.text)[0], language=text.language, lowercase=text.lowercase)
        for record in records
    ]
