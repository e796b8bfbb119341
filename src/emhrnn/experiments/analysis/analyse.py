"""One pass over the data for one or two runs: everything that the reports show."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from emhrnn.corpus.record import Record
from emhrnn.errors import ConfigError, DataError
from emhrnn.experiments.analysis.analysis import Agreement, Analysis, Example, Lexicon, ModelFacts
from emhrnn.experiments.analysis.reading import Chosen, Reader, open_source, pieces, read_all, ready
from emhrnn.experiments.analysis.sampling import Reservoir
from emhrnn.experiments.analysis.tally import Tally
from emhrnn.experiments.analysis.ties import Ties
from emhrnn.experiments.provenance import commit, machine
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.lexicon import Gathered, measured
from emhrnn.text import Document
from emhrnn.training.data import Named
from emhrnn.training.run import Run, load_run

PAPER_WORDS = ("good", "bad", "great", "sad", "excellent")
TIED_WORDS = 5  # of each class
LEXICON_DOCUMENTS = 3000  # drawn for the lexicon
IMPORTANT = 20  # most frequent words that are told
SHOWN_WORDS = 120  # the document that is shown in full has about so many


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
        Reader(name, run, Tally(run.vocabulary), None if question.words else Ties(run.vocabulary, len(run.classes)))
        for name, run in zip(names or names_of(folders, runs), runs, strict=True)
    ]
    draws = Draws(Reservoir(question.documents, question.seed), Reservoir(LEXICON_DOCUMENTS, question.seed))
    done = Pass(readers, draws)
    with ready(readers):
        go_through(done, data, question, progress=progress)
        return gather(done, data, question, command, progress=progress)


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


def gather(done: Pass, data: Named, question: Question, command: str, *, progress: bool) -> Analysis:
    first, readers, counted = done.readers[0], done.readers, done.counted
    tied = None
    if first.ties is not None:
        tied = {name: first.ties.top(label, TIED_WORDS) for label, name in enumerate(first.run.classes)}
    words = question.words or tuple(dict.fromkeys(word for some in (tied or {}).values() for word in some))
    drawn = examples(readers, done.draws.compared.drawn)
    pair = len(readers) == 2
    return Analysis(
        data=data.path.name,
        documents=counted.documents,
        words=first.tally.words,
        skipped=counted.skipped,
        classes=first.run.classes,
        tied=tied,
        models=[facts(reader, words, done.draws.lexicon.drawn, question, progress=progress) for reader in readers],
        agreement=agreement_on(drawn) if pair else None,
        agreement_of_all=counted.agreement() if pair else None,
        drawn=drawn,
        shown=min(drawn, key=lambda example: (example.same_word, abs(example.words - SHOWN_WORDS))),
        seed=question.seed,
        making={"command": command, "commit": commit(), "machine": machine()},
    )  # fmt: skip


def examples(readers: Sequence[Reader], drawn: Sequence[Record]) -> list[Example]:
    texts, labels = [record.text for record in drawn], [record.label for record in drawn]
    users, products = [record.user for record in drawn], [record.product for record in drawn]
    columns = [explain_texts(reader.run, texts, labels, users=users, products=products) for reader in readers]
    return [Example(record.where.row, seen) for record, seen in zip(drawn, zip(*columns, strict=True), strict=True)]


def agreement_on(drawn: Sequence[Example]) -> Agreement:
    return Agreement(
        documents=len(drawn),
        same_word=sum(example.same_word for example in drawn),
        same_place=sum(example.same_place for example in drawn),
        chance=sum(1 / example.words for example in drawn) / len(drawn),
    )


def facts(
    reader: Reader, words: Sequence[str], drawn: Sequence[Record], question: Question, *, progress: bool
) -> ModelFacts:
    lower = reader.run.text.lowercase
    return ModelFacts(
        name=reader.name,
        model=reader.run.config.model.name,
        seed=reader.run.config.training.seed,
        accuracy=reader.accuracy,
        phrases=reader.tally.phrase_lengths() if reader.has_phrases else None,
        attention=[reader.tally.attention(word.lower() if lower else word) for word in words],
        average=reader.tally.average(),
        important=reader.important.most_common(IMPORTANT),
        lexicon=lexicon(reader, drawn, question.phrases, progress=progress) if reader.has_phrases else (),
    )


def lexicon(reader: Reader, drawn: Sequence[Record], phrases: int, *, progress: bool) -> Lexicon:
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
