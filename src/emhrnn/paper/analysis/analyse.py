"""One pass over the data for one or two runs: everything that the reports show."""

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
from tqdm import tqdm

from emhrnn.corpus import Columns, Source, is_corpus
from emhrnn.corpus.record import Record, clean_text
from emhrnn.errors import ConfigError, DataError
from emhrnn.explain.attention import levels_of
from emhrnn.explain.build import predict
from emhrnn.explain.explainer import batch_of, explain_texts, groups
from emhrnn.explain.explanation import as_tuple
from emhrnn.explain.lexicon import Gathered, measured
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output
from emhrnn.paper.analysis.analysis import Analysis, Example, Lexicon, RunFacts, WordAgreement
from emhrnn.paper.analysis.words import Tally, Ties
from emhrnn.paper.provenance import commit, machine
from emhrnn.paper.sampling import Reservoir
from emhrnn.text import Document, read_document
from emhrnn.training.data import Named, check_ids
from emhrnn.training.run import Run, load_run

PIECE = 256  # rows at a time


class Chosen(NamedTuple):
    """The most important word of a document: what it is, and where it stands in the text."""

    word: str
    start: int


@dataclass(eq=False)
class RunReader:
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
def _ready(readers: Sequence[RunReader]) -> Iterator[None]:
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


def _pieces(rows: Iterable[Record]) -> Iterator[list[Record]]:
    records = iter(rows)
    while piece := list(islice(records, PIECE)):
        yield piece


def _read_all(run: Run, records: Sequence[Record]) -> list[Document]:
    """Whole texts, without the length caps of training, as an explanation shows them."""
    text = run.text
    return [
        read_document(clean_text(record.text)[0], language=text.language, lowercase=text.lowercase)
        for record in records
    ]


PAPER_WORDS = ("good", "bad", "great", "sad", "excellent")


@dataclass(frozen=True)
class Question:
    """What is asked. `words`: some, or None for those most tied to each class."""

    words: tuple[str, ...] | None = PAPER_WORDS
    documents: int = 200
    seed: int = 0
    sample: int | None = None  # rows to draw and to look at; None: all
    phrases: int = 15  # of each class in the lexicon


@dataclass(eq=False)
class _Counted:
    """Agreement so far, over all documents."""

    documents: int = 0
    same_word: int = 0
    same_place: int = 0
    chance: float = 0.0
    skipped: int = 0

    def add(self, chosen: Sequence[list[Chosen]], lengths: Sequence[int]) -> None:
        self.documents += len(lengths)
        self.chance += sum(1 / length for length in lengths)
        if len(chosen) == 2:
            pairs = list(zip(*chosen, strict=True))
            self.same_word += sum(a.word.lower() == b.word.lower() for a, b in pairs)
            self.same_place += sum(a.start == b.start for a, b in pairs)

    def agreement(self) -> WordAgreement:
        return WordAgreement(self.documents, self.same_word, self.same_place, self.chance / self.documents)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Documents for the comparison, and more of them for the lexicon."""

    compared: Reservoir[Record]
    lexicon: Reservoir[Record]

    def offer(self, records: Sequence[Record]) -> None:
        for record in records:
            self.compared.offer(record)
            self.lexicon.offer(record)


@dataclass(frozen=True, eq=False)
class _Pass:
    """The readers and what one pass over the data gave."""

    readers: Sequence[RunReader]
    draws: _Draws
    counted: _Counted = field(default_factory=_Counted)


def _go_through(done: _Pass, data: Named, question: Question, *, progress: bool) -> None:
    source = open_source(data, [reader.run for reader in done.readers])
    bar = tqdm(
        total=source.meter.total, unit="B", unit_scale=True, desc="reading", leave=False,
        disable=None if progress else True,  # None: shown where stderr is a terminal
    )  # fmt: skip
    with closing(iter(source)) as records, bar:
        rows = records if question.sample is None else _drawn_from(records, question.sample, question.seed)
        for piece in _pieces(rows):
            _read_piece(done, piece)
            bar.update(source.meter.done - bar.n)
    if not done.counted.documents:
        raise DataError(f"{data.path} has no documents with words; give other data")


def _drawn_from(source: Iterable[Record], size: int, seed: int) -> list[Record]:
    reservoir = Reservoir[Record](size, seed)
    for record in source:
        reservoir.offer(record)
    return reservoir.drawn


def _read_piece(done: _Pass, piece: Sequence[Record]) -> None:
    """Runs that read text the same way share the reading."""
    read: dict[tuple[str, bool], list[Document]] = {}
    records = [record for record in piece if record.fault is None]
    chosen, lengths = [], list[int]()
    for number, reader in enumerate(done.readers):
        key = (reader.run.text.language, reader.run.text.lowercase)
        if key not in read:
            read[key] = _read_all(reader.run, records)
        if number == 0:
            with_words = [d for d, document in enumerate(read[key]) if len(document)]
            lengths = [len(read[key][d]) for d in with_words]
        chosen.append(reader.read([records[d] for d in with_words], [read[key][d] for d in with_words]))
    done.counted.add(chosen, lengths)
    done.counted.skipped += len(piece) - len(with_words)
    done.draws.offer([records[d] for d in with_words])


TIED_WORDS = 5  # of each class
LEXICON_DOCUMENTS = 3000  # drawn for the lexicon
IMPORTANT = 20  # most frequent words that are told
SHOWN_WORDS = 120  # the document that is shown in full has about so many


def analyse(
    folders: Sequence[Path],
    data: Named,
    question: Question,
    *,
    command: str,
    names: Sequence[str] = (),
    progress: bool = True,
) -> Analysis:
    """How one run, or two, read the documents of `data`. They are called by `names`, or by those of their folders.

    Raises:
        EmhrnnError: a folder is no run, a model has no weights to look at, or the data cannot be read or is empty.
    """
    if not 1 <= len(folders) <= 2:
        raise ConfigError(f"{len(folders)} runs were given; give one, or two to compare")
    runs = [load_run(folder) for folder in folders]
    readers = [
        RunReader(name, run, Tally(run.vocabulary), None if question.words else Ties(run.vocabulary, len(run.classes)))
        for name, run in zip(names or names_of(folders, runs), runs, strict=True)
    ]
    draws = _Draws(Reservoir(question.documents, question.seed), Reservoir(LEXICON_DOCUMENTS, question.seed))
    done = _Pass(readers, draws)
    with _ready(readers):
        _go_through(done, data, question, progress=progress)
        return _gather(done, data, question, command, progress=progress)


def _gather(done: _Pass, data: Named, question: Question, command: str, *, progress: bool) -> Analysis:
    first, readers, counted = done.readers[0], done.readers, done.counted
    tied = None
    if first.ties is not None:
        tied = {name: first.ties.top(label, TIED_WORDS) for label, name in enumerate(first.run.classes)}
    words = question.words or tuple(dict.fromkeys(word for some in (tied or {}).values() for word in some))
    drawn = _examples(readers, done.draws.compared.drawn)
    pair = len(readers) == 2
    return Analysis(
        data=data.path.name,
        documents=counted.documents,
        words=first.tally.words,
        skipped=counted.skipped,
        classes=first.run.classes,
        tied=tied,
        models=[_facts(reader, words, done.draws.lexicon.drawn, question, progress=progress) for reader in readers],
        agreement=_agreement_on(drawn) if pair else None,
        agreement_of_all=counted.agreement() if pair else None,
        drawn=drawn,
        shown=min(drawn, key=lambda example: (example.same_word, abs(example.words - SHOWN_WORDS))),
        seed=question.seed,
        making={"command": command, "commit": commit(), "machine": machine()},
    )  # fmt: skip


def _examples(readers: Sequence[RunReader], drawn: Sequence[Record]) -> list[Example]:
    texts, labels = [record.text for record in drawn], [record.label for record in drawn]
    users, products = [record.user for record in drawn], [record.product for record in drawn]
    columns = [explain_texts(reader.run, texts, labels, users=users, products=products) for reader in readers]
    return [Example(record.where.row, seen) for record, seen in zip(drawn, zip(*columns, strict=True), strict=True)]


def _agreement_on(drawn: Sequence[Example]) -> WordAgreement:
    return WordAgreement(
        documents=len(drawn),
        same_word=sum(example.same_word for example in drawn),
        same_place=sum(example.same_place for example in drawn),
        chance=sum(1 / example.words for example in drawn) / len(drawn),
    )


def _facts(
    reader: RunReader, words: Sequence[str], drawn: Sequence[Record], question: Question, *, progress: bool
) -> RunFacts:
    lower = reader.run.text.lowercase
    return RunFacts(
        name=reader.name,
        model=reader.run.config.model.name,
        seed=reader.run.config.training.seed,
        accuracy=reader.accuracy,
        phrases=reader.tally.phrase_lengths() if reader.has_phrases else None,
        attention=[reader.tally.attention(word.lower() if lower else word) for word in words],
        average=reader.tally.average(),
        important=reader.important.most_common(IMPORTANT),
        lexicon=_lexicon(reader, drawn, question.phrases, progress=progress) if reader.has_phrases else (),
    )


def _lexicon(reader: RunReader, drawn: Sequence[Record], phrases: int, *, progress: bool) -> Lexicon:
    run, gathered = reader.run, Gathered(len(reader.run.classes))
    starts = range(0, len(drawn), 64)
    for start in tqdm(starts, desc="phrases", disable=None if progress else True, leave=False):
        gathered.add(explain_texts(run, [record.text for record in drawn[start : start + 64]]))
    return [(name, measured(run, gathered, label, top=phrases)) for label, name in enumerate(run.classes)]


def names_of(folders: Sequence[Path], runs: Sequence[Run]) -> list[str]:
    """Those of the folders; with the model, or a number, where they are the same."""
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [f"{name} ({run.config.model.name})" for name, run in zip(names, runs, strict=True)]
    if len(set(names)) < len(names):
        names = [f"{name} {number}" for number, name in enumerate(names, start=1)]
    return names
