"""One pass over the data for EM-HRNN and MHS-RNN: phrase lengths, attention of words, the most important word of each
document, and the phrases that move a class."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from emhrnn.api import labels_of
from emhrnn.corpus import Columns, Source, is_corpus
from emhrnn.corpus.record import Record, clean_text
from emhrnn.errors import DataError
from emhrnn.evaluation.scores import PhraseLengths
from emhrnn.explain.explainer import explain_texts, groups
from emhrnn.explain.explanation import as_tuple
from emhrnn.explain.lexicon import Entry, Gathered, measured
from emhrnn.models.output import Output
from emhrnn.paper.analysis.words import Tally, WordAttention
from emhrnn.paper.explanations.attention import levels_of
from emhrnn.paper.provenance import making
from emhrnn.paper.sampling import Reservoir
from emhrnn.text import Located, TextLimits, WordEncoder
from emhrnn.text.words import normalise
from emhrnn.training.data import Named, check_ids
from emhrnn.training.run import Run, load_run

ROWS = 256  # at a time
IMPORTANT = 20  # most frequent words that are listed
LEXICON_DOCUMENTS, LEXICON_PHRASES = 3000, 15  # drawn documents; phrases of each class
PAPER_WORDS = ("good", "bad", "great", "sad", "excellent")

Lexicon = Sequence[tuple[str, Sequence[Entry]]]  # class by class


@dataclass(frozen=True)
class Question:
    """The words whose attention is measured, and the documents to draw for the comparison."""

    words: tuple[str, ...] = PAPER_WORDS
    documents: int = 200
    seed: int = 0


@dataclass(frozen=True)
class ComparedDocument:
    """The most important word of a document under each model, and where it starts in the text."""

    row: int  # in the data, counted from 1
    label: tuple[str, ...] | None
    length: int  # in words
    words: tuple[str, ...]
    starts: tuple[int, ...]

    @property
    def same_word(self) -> bool:
        return len({word.lower() for word in self.words}) == 1

    def to_dict(self) -> dict[str, Any]:
        return {"row": self.row, "label": self.label, "words": self.words, "same": self.same_word}


@dataclass
class WordAgreement:
    """In how many documents two models choose the same most important word, and the same occurrence of it. `chance`:
    the share in which two words drawn at random from each document are the same occurrence."""

    documents: int = 0
    same_word: int = 0
    same_place: int = 0
    chance: float = 0.0

    def add(self, document: ComparedDocument) -> None:
        self.documents += 1
        self.same_word += document.same_word
        self.same_place += len(set(document.starts)) == 1
        self.chance += (1 / document.length - self.chance) / self.documents

    def __str__(self) -> str:
        word, place = self.same_word / self.documents, self.same_place / self.documents
        return (
            f"Both choose the same word in {self.same_word:,} ({word:.1%}), at the same place in {self.same_place:,} "
            f"({place:.1%}; two words drawn at random: {self.chance:.1%})"
        )


@dataclass(frozen=True)
class RunFacts:
    """One run on all documents. `important`: the words that most often are the most important one of a document."""

    name: str
    model: str
    seed: int
    accuracy: float | None  # None: the data has no labels
    phrases: PhraseLengths
    attention: Sequence[WordAttention]
    average: WordAttention
    important: Sequence[tuple[str, int]]
    lexicon: Lexicon

    def to_dict(self) -> dict[str, Any]:
        """Without the lexicon, whose phrases and examples are text of the data."""
        told = asdict(replace(self, lexicon=()))
        told["important"] = [{"word": word, "documents": count} for word, count in self.important]
        del told["lexicon"]
        return told


@dataclass(frozen=True, eq=False)
class Analysis:
    """`drawn` are the documents of `agreement`. `making`: command, commit, machine."""

    data: str
    documents: int
    words: int
    skipped: int  # rows without words
    models: Sequence[RunFacts]
    agreement: WordAgreement  # on the documents drawn
    agreement_of_all: WordAgreement
    drawn: Sequence[ComparedDocument]
    seed: int
    making: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """No text of the data is in it."""
        return {
            **asdict(replace(self, models=(), drawn=())),
            "models": [model.to_dict() for model in self.models],
            "drawn": [document.to_dict() for document in self.drawn],
        }


@dataclass(eq=False)
class _Reader:
    """A run, and what was counted while it read."""

    name: str
    run: Run
    tally: Tally
    right: int = 0
    labelled: int = 0
    important: Counter[str] = field(default_factory=Counter)

    def documents(self, records: Sequence[Record]) -> list[Located]:
        """Whole texts, without the length caps of training."""
        encoder = WordEncoder(self.run.vocabulary, replace(self.run.text, limits=TextLimits()))
        return encoder.locate([clean_text(record.text)[0] for record in records])

    @torch.inference_mode()
    def choose(self, records: Sequence[Record], documents: Sequence[Located]) -> list[tuple[str, int]]:
        """The most important word of each document, and where it starts."""
        chosen: list[tuple[str, int]] = []
        for start, stop in groups([len(document) for document in documents]):
            chosen += self._choose_batch(records[start:stop], documents[start:stop])
        self.important.update(word for word, _ in chosen)
        return chosen

    def _choose_batch(self, records: Sequence[Record], documents: Sequence[Located]) -> list[tuple[str, int]]:
        users, products = [record.user for record in records], [record.product for record in records]
        batch = self.run.encoder.batch(documents, users=users, products=products)
        output: Output = self.run.model(batch)
        levels = levels_of(output, batch)
        assert levels is not None  # both models weigh words and sentences
        places = self.tally.add(batch, levels) - batch.word_offsets[:-1]
        table = self.run.probabilities(output.logits.numpy())
        labels = labels_of(self.run, table)
        for predicted, record in zip(labels, records, strict=True):
            if record.label is not None:
                self.labelled += 1
                self.right += set(as_tuple(predicted)) == set(as_tuple(record.label))
        lowercase, rows = self.run.text.lowercase, zip(documents, places.tolist(), strict=True)
        spans = [(document.text, int(document.starts[t]), int(document.ends[t])) for document, t in rows]
        return [(normalise(text[start:end], lowercase=lowercase), start) for text, start, end in spans]

    def facts(self, words: Sequence[str], texts: Sequence[str], *, progress: bool) -> RunFacts:
        """What was counted, and the lexicon of some texts."""
        run, lower = self.run, self.run.text.lowercase
        gathered = Gathered(len(run.classes))
        starts = range(0, len(texts), 64)
        for start in tqdm(starts, desc="phrases", disable=None if progress else True, leave=False):
            gathered.add(explain_texts(run, texts[start : start + 64]))
        return RunFacts(
            name=self.name,
            model=run.config.model.name,
            seed=run.config.training.seed,
            accuracy=self.right / self.labelled if self.labelled else None,
            phrases=self.tally.phrase_lengths(),
            attention=[self.tally.attention(word.lower() if lower else word) for word in words],
            average=self.tally.average(),
            important=self.important.most_common(IMPORTANT),
            lexicon=[(name, measured(run, gathered, c, top=LEXICON_PHRASES)) for c, name in enumerate(run.classes)],
        )


def analyse(folders: Mapping[str, Path], data: Named, question: Question, *, progress: bool = True) -> Analysis:
    """How runs, by name, read the documents of `data`.

    Raises:
        EmhrnnError: a folder is not a run, or the data cannot be read or is empty.
    """
    runs = {name: load_run(folder) for name, folder in folders.items()}
    readers = [_Reader(name, run, Tally(run.vocabulary)) for name, run in runs.items()]
    drawn = Reservoir[ComparedDocument](question.documents, question.seed)
    texts = Reservoir[str](LEXICON_DOCUMENTS, question.seed)
    everywhere, agreement, rows = WordAgreement(), WordAgreement(), 0
    source = _open(data, list(runs.values()))
    bar = tqdm(
        total=source.meter.total, unit="B", unit_scale=True, desc="reading", leave=False,
        disable=None if progress else True,  # None: shown where stderr is a terminal
    )  # fmt: skip
    with closing(iter(source)) as records, bar:
        while piece := list(islice(records, ROWS)):
            rows += len(piece)
            for record, document in _compare(readers, piece):
                everywhere.add(document)
                drawn.offer(document)
                texts.offer(record.text)
            bar.update(source.meter.done - bar.n)
    if not everywhere.documents:
        raise DataError(f"{data.path} has no documents with words; give other data")
    facts = [reader.facts(question.words, texts.drawn, progress=progress) for reader in readers]
    for document in drawn.drawn:
        agreement.add(document)
    return Analysis(
        data=data.path.name,
        documents=everywhere.documents,
        words=readers[0].tally.words,
        skipped=rows - everywhere.documents,
        models=facts,
        agreement=agreement,
        agreement_of_all=everywhere,
        drawn=drawn.drawn,
        seed=question.seed,
        making=making(),
    )


def _compare(readers: Sequence[_Reader], rows: Sequence[Record]) -> Iterator[tuple[Record, ComparedDocument]]:
    """The rows that have words, and what each reader chooses there."""
    records = [record for record in rows if record.fault is None]
    read = [reader.documents(records) for reader in readers]
    kept = [d for d, document in enumerate(read[0]) if len(document)]
    records = [records[d] for d in kept]
    chosen = [
        reader.choose(records, [documents[d] for d in kept]) for reader, documents in zip(readers, read, strict=True)
    ]
    for record, d, *choices in zip(records, kept, *chosen, strict=True):
        words, starts = zip(*choices, strict=True)
        label = None if record.label is None else as_tuple(record.label)
        yield record, ComparedDocument(record.where.row, label, len(read[0][d]), words, starts)


def _open(data: Named, runs: Sequence[Run]) -> Source:
    """With labels where the data has them, which its first row shows."""
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no text to show; give the raw file")
    columns = data.columns

    def first_row() -> Source:
        source = Source(data.path, format=data.format, columns=columns, split=data.split)
        with closing(iter(source)) as records:
            next(records, None)
        return source

    try:
        first = first_row()
    except DataError:
        if columns.label is not None:
            raise
        columns = Columns(text=columns.text, labelled=False)
        first = first_row()
    for run in runs:
        check_ids(run.config, Path(data.path), first.taken)
    return Source(data.path, format=data.format, columns=columns, split=data.split)
