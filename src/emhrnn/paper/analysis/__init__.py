"""How EM-HRNN and MHS-RNN read the same documents, in one pass by both: phrase lengths, attention of words beside
chance, the most important word of each document, and the phrases that move a class. table3.py writes what was found.

A softmax over n items gives each 1 / n by chance. EM-HRNN's runs over the words of a phrase (about four), MHS-RNN's
over all words and phrases of a sentence (about twenty), so their weights can only be compared after a division by
chance.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from emhrnn.api import labels_of
from emhrnn.corpus import is_corpus
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import TextEncoder, has_words
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError
from emhrnn.evaluation.scores import PhraseLengths, count_phrase_lengths
from emhrnn.explain.explainer import explain_texts, groups
from emhrnn.explain.explanation import as_tuple
from emhrnn.explain.lexicon import Entry, Gathered, measured
from emhrnn.models.model import Output
from emhrnn.paper.explanations.attention import Levels, levels_of
from emhrnn.paper.reports import making
from emhrnn.paper.sampling import Reservoir
from emhrnn.shapes import Float, Float64, Int64
from emhrnn.text import Located, TextLimits, Vocabulary
from emhrnn.text.words import normalise
from emhrnn.training.data import Named
from emhrnn.training.run import Run, load_run


@dataclass(frozen=True, eq=False)
class WordWeights:
    """The weight of each word in the softmax that it is in, and how many items share that softmax."""

    weight: Float64[np.ndarray, " words"]
    siblings: Int64[np.ndarray, " words"]
    in_sentence: Float64[np.ndarray, " words"]  # its share of the sentence, through its phrase, times the words of it

    @property
    def chance(self) -> Float64[np.ndarray, " words"]:
        chance: Float64[np.ndarray, " words"] = 1 / self.siblings
        return chance

    @property
    def lift(self) -> Float64[np.ndarray, " words"]:
        """Weight divided by chance: 1 where attention is indifferent."""
        lift: Float64[np.ndarray, " words"] = self.weight * self.siblings
        return lift


def word_weights(levels: Levels, batch: Batch) -> WordWeights:
    """The weights of all words of a batch."""
    offsets = np.concatenate([[0], np.flatnonzero(levels.z) + 1])  # (phrases + 1,)
    lengths = np.diff(offsets)
    sentence_lengths = batch.sentence_lengths[batch.sentence_of_word]  # (words,)
    if levels.direct is None:
        weight, siblings = levels.alpha, np.repeat(lengths, lengths)
    else:
        phrases = np.bincount(batch.sentence_of_word[levels.z], minlength=batch.n_sentences)
        weight, siblings = levels.direct, sentence_lengths + phrases[batch.sentence_of_word]
    share = levels.alpha.astype(np.float64) * np.repeat(levels.beta, lengths)
    return WordWeights(weight.astype(np.float64), siblings, share * sentence_lengths)


def important_words(levels: Levels, batch: Batch) -> Int64[np.ndarray, " documents"]:
    """The word of each document, by its number in the batch, that the paper's descent ends at: the heaviest sentence,
    its heaviest phrase, that phrase's heaviest word; where words and phrases share a softmax (MHS-RNN), the heaviest
    sentence, its heaviest word. The first wins a tie."""
    sentences = _heaviest(levels.gamma, batch.document_offsets)  # (documents,)
    by_sentence: Int64[np.ndarray, " sentences"]
    if levels.direct is not None:
        by_sentence = _heaviest(levels.direct, batch.sentence_offsets)
    else:
        phrase_offsets = np.concatenate([[0], np.flatnonzero(levels.z) + 1])
        phrases = _heaviest(levels.beta, np.searchsorted(phrase_offsets, batch.sentence_offsets))  # (sentences,)
        by_sentence = _heaviest(levels.alpha, phrase_offsets)[phrases]
    by_document: Int64[np.ndarray, " documents"] = by_sentence[sentences]
    return by_document


def _heaviest(
    weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"]
) -> Int64[np.ndarray, " segments"]:
    """Where the largest weight of each segment stands."""
    lengths = np.diff(offsets)
    largest = np.repeat(np.maximum.reduceat(weights, offsets[:-1]), lengths)
    places = np.flatnonzero(weights == largest)  # at least one in each segment
    _, first = np.unique(np.repeat(np.arange(len(lengths)), lengths)[places], return_index=True)
    return places[first]


MEANS = ("weight", "chance", "lift", "in_sentence", "alone")


@dataclass(frozen=True)
class WordAttention:
    """Means over the occurrences of a word; None where it does not occur."""

    word: str
    count: int
    weight: float | None = None  # in the softmax that it is in
    chance: float | None = None  # 1 / number of items in that softmax
    lift: float | None = None  # mean of weight / chance
    in_sentence: float | None = None  # mean of its share of the sentence / (1 / words of the sentence)
    alone: float | None = None  # share of occurrences with a softmax to themselves, where the weight can only be 1


class Tally:
    """Of one model, filled batch by batch."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.words = 0
        self.count: Int64[np.ndarray, " vocabulary"] = np.zeros(len(vocabulary), dtype=np.int64)
        self.sums: Float64[np.ndarray, "means vocabulary"] = np.zeros((len(MEANS), len(vocabulary)))
        self.lengths: Counter[int] = Counter()  # of phrases

    def add(self, batch: Batch, levels: Levels) -> Int64[np.ndarray, " documents"]:
        """The most important word of each document, by its number in the batch."""
        weights, size = word_weights(levels, batch), len(self.vocabulary)
        alone = (weights.siblings == 1).astype(np.float64)
        columns = (weights.weight, weights.chance, weights.lift, weights.in_sentence, alone)
        self.count += np.bincount(batch.words, minlength=size)
        for sums, column in zip(self.sums, columns, strict=True):
            sums += np.bincount(batch.words, column, size)
        lengths = count_phrase_lengths(levels.z)
        self.lengths.update({int(k): int(lengths[k]) for k in np.flatnonzero(lengths)})
        self.words += batch.n_words
        return important_words(levels, batch)

    def phrase_lengths(self) -> PhraseLengths:
        histogram = np.zeros(max(self.lengths) + 1, dtype=np.int64)
        for length, count in self.lengths.items():
            histogram[length] = count
        return PhraseLengths.of(histogram)

    def attention(self, word: str) -> WordAttention:
        row = self.vocabulary.id_of(word) if word in self.vocabulary else None
        if row is None or not self.count[row]:
            return WordAttention(word, 0)
        means = self.sums[:, row] / self.count[row]
        return WordAttention(word, int(self.count[row]), **dict(zip(MEANS, means.tolist(), strict=True)))

    def average(self) -> WordAttention:
        """Of all words together."""
        means = self.sums.sum(axis=1) / self.words
        return WordAttention("(all words)", self.words, **dict(zip(MEANS, means.tolist(), strict=True)))


ROWS = 256  # at a time
IMPORTANT = 20  # most frequent words that are listed
LEXICON_DOCUMENTS, LEXICON_PHRASES = 3000, 15  # drawn documents; phrases of each class

Lexicon = Sequence[tuple[str, Sequence[Entry]]]  # class by class


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
    accuracy: float
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
    right: int = 0  # documents
    important: Counter[str] = field(default_factory=Counter)

    @cached_property
    def _encoder(self) -> TextEncoder:
        """Reads whole texts, without the length caps of training."""
        return TextEncoder(self.run.vocabulary, replace(self.run.text, limits=TextLimits()))

    @torch.inference_mode()
    def choose(self, records: Sequence[Record]) -> list[tuple[str, int, int]]:
        """The most important word of each document, where it starts, and the number of words."""
        documents, batch = self._encoder.locate([one.text for one in records])
        chosen: list[tuple[str, int]] = []
        for start, stop in groups(batch.document_lengths.tolist()):
            chosen += self._choose_batch(records[start:stop], documents[start:stop], batch.part(start, stop))
        self.important.update(word for word, _ in chosen)
        return [(*choice, len(document)) for choice, document in zip(chosen, documents, strict=True)]

    def _choose_batch(
        self, records: Sequence[Record], documents: Sequence[Located], batch: Batch
    ) -> list[tuple[str, int]]:
        output: Output = self.run.model(batch)
        levels = levels_of(output, batch)
        assert levels is not None  # both models weigh words and sentences
        places = self.tally.add(batch, levels) - batch.word_offsets[:-1]
        table = self.run.probabilities(output.logits.numpy())
        for predicted, record in zip(labels_of(self.run, table), records, strict=True):
            assert record.label is not None  # a record without label has a fault
            self.right += set(as_tuple(predicted)) == set(as_tuple(record.label))
        lowercase, rows = self.run.text.lowercase, zip(documents, places.tolist(), strict=True)
        spans = [(document.text, int(document.starts[t]), int(document.ends[t])) for document, t in rows]
        return [(normalise(text[start:end], lowercase=lowercase), start) for text, start, end in spans]

    def facts(self, documents: int, words: Sequence[str], texts: Sequence[str], *, progress: bool) -> RunFacts:
        """What was counted in so many documents, and the lexicon of some texts."""
        run, lower = self.run, self.run.text.lowercase
        gathered = Gathered(len(run.classes))
        starts = range(0, len(texts), 64)
        for start in tqdm(starts, desc="phrases", disable=None if progress else True, leave=False):
            gathered.add(explain_texts(run, texts[start : start + 64]))
        return RunFacts(
            name=self.name,
            model=run.config.model.name,
            seed=run.config.training.seed,
            accuracy=self.right / documents,
            phrases=self.tally.phrase_lengths(),
            attention=[self.tally.attention(word.lower() if lower else word) for word in words],
            average=self.tally.average(),
            important=self.important.most_common(IMPORTANT),
            lexicon=[(name, measured(run, gathered, c, top=LEXICON_PHRASES)) for c, name in enumerate(run.classes)],
        )


def analyse(
    folders: Mapping[str, Path], data: Named, *, words: Sequence[str], documents: int, seed: int, progress: bool
) -> Analysis:
    """How runs, by name, read the documents of `data`: the attention of some words, and the most important word of so
    many documents, drawn with this seed.

    Raises:
        EmhrnnError: a folder is not a run, or the data cannot be read or is empty.
    """
    runs = {name: load_run(folder) for name, folder in folders.items()}
    readers = [_Reader(name, run, Tally(run.vocabulary)) for name, run in runs.items()]
    drawn = Reservoir[ComparedDocument](documents, seed)
    texts = Reservoir[str](LEXICON_DOCUMENTS, seed)
    everywhere, agreement, rows = WordAgreement(), WordAgreement(), 0
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no text to show; give the raw file")
    source = data.source()
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
    facts = [reader.facts(everywhere.documents, words, texts.drawn, progress=progress) for reader in readers]
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
        seed=seed,
        making=making(),
    )


def _compare(readers: Sequence[_Reader], rows: Sequence[Record]) -> Iterator[tuple[Record, ComparedDocument]]:
    """The rows that have words, and what each reader chooses there."""
    records = [record for record in rows if record.fault is None and has_words(record.text)]
    for record, *choices in zip(records, *(reader.choose(records) for reader in readers if records), strict=True):
        words, starts, lengths = zip(*choices, strict=True)
        label = None if record.label is None else as_tuple(record.label)
        yield record, ComparedDocument(record.where.row, label, lengths[0], words, starts)
