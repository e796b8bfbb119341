"""One pass over the data: each piece through all readers, documents drawn on the way, agreement counted."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from tqdm import tqdm

from emhrnn.corpus.record import Record
from emhrnn.errors import DataError
from emhrnn.paper.analysis.analysis import Agreement
from emhrnn.paper.analysis.reading import Chosen, Reader, open_source, pieces, read_all
from emhrnn.paper.sampling import Reservoir
from emhrnn.text import Document
from emhrnn.training.data import Named

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
class Counted:
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

    def agreement(self) -> Agreement:
        return Agreement(self.documents, self.same_word, self.same_place, self.chance / self.documents)


@dataclass(frozen=True, eq=False)
class Draws:
    """Documents for the comparison, and more of them for the lexicon."""

    compared: Reservoir[Record]
    lexicon: Reservoir[Record]

    def offer(self, records: Sequence[Record]) -> None:
        for record in records:
            self.compared.offer(record)
            self.lexicon.offer(record)


@dataclass(frozen=True, eq=False)
class Pass:
    """The readers and what one pass over the data gave."""

    readers: Sequence[Reader]
    draws: Draws
    counted: Counted = field(default_factory=Counted)


def go_through(done: Pass, data: Named, question: Question, *, progress: bool) -> None:
    source = open_source(data, [reader.run for reader in done.readers])
    bar = tqdm(
        total=source.meter.total, unit="B", unit_scale=True, desc="reading", leave=False,
        disable=None if progress else True,  # None: shown where stderr is a terminal
    )  # fmt: skip
    with closing(iter(source)) as records, bar:
        rows = records if question.sample is None else drawn_from(records, question.sample, question.seed)
        for piece in pieces(rows):
            read_piece(done, piece)
            bar.update(source.meter.done - bar.n)
    if not done.counted.documents:
        raise DataError(f"{data.path} has no documents with words; give other data")


def drawn_from(source: Iterable[Record], size: int, seed: int) -> list[Record]:
    reservoir = Reservoir[Record](size, seed)
    for record in source:
        reservoir.offer(record)
    return reservoir.drawn


def read_piece(done: Pass, piece: Sequence[Record]) -> None:
    """Runs that read text the same way share the reading."""
    read: dict[tuple[str, bool], list[Document]] = {}
    records = [record for record in piece if record.fault is None]
    chosen, lengths = [], list[int]()
    for number, reader in enumerate(done.readers):
        key = (reader.run.text.language, reader.run.text.lowercase)
        if key not in read:
            read[key] = read_all(reader.run, records)
        if number == 0:
            with_words = [d for d, document in enumerate(read[key]) if len(document)]
            lengths = [len(read[key][d]) for d in with_words]
        chosen.append(reader.read([records[d] for d in with_words], [read[key][d] for d in with_words]))
    done.counted.add(chosen, lengths)
    done.counted.skipped += len(piece) - len(with_words)
    done.draws.offer([records[d] for d in with_words])
