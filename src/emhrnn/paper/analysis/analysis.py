"""What an analysis found, as data; markdown.py and page.py show it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emhrnn.evaluation.scores import PhraseLengths
from emhrnn.explain.explanation import Explanation, Labels, Sentence, Word, as_tuple
from emhrnn.explain.lexicon import Entry
from emhrnn.paper.analysis.words import Attention

Lexicon = Sequence[tuple[str, Sequence[Entry]]]  # class by class


@dataclass(frozen=True)
class RunFacts:
    """One run on all documents. `important`: the words that most often are the most important one of a document."""

    name: str
    model: str
    seed: int
    accuracy: float | None
    phrases: PhraseLengths | None  # None: the model has no phrases
    attention: Sequence[Attention]
    average: Attention
    important: Sequence[tuple[str, int]]
    lexicon: Lexicon

    def to_dict(self, *, texts: bool) -> dict[str, Any]:
        lexicon = {
            name: [entry.to_dict() if texts else {**entry.to_dict(), "example": None} for entry in entries]
            for name, entries in self.lexicon
        }
        return {
            "name": self.name,
            "model": self.model,
            "seed": self.seed,
            "accuracy": self.accuracy,
            "phrases": None if self.phrases is None else self.phrases.to_dict(),
            "attention": [word.to_dict() for word in self.attention],
            "average": self.average.to_dict(),
            "important": [{"word": word, "documents": count} for word, count in self.important],
            "lexicon": lexicon,
        }


@dataclass(frozen=True)
class WordAgreement:
    """In how many documents two models choose the same most important word, and the same occurrence of it. `chance`:
    the share in which two occurrences drawn blindly from each document are the same."""

    documents: int
    same_word: int
    same_place: int
    chance: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Example:
    """A document that was drawn, under each model."""

    row: int  # in the data, counted from 1
    explanations: tuple[Explanation, ...]

    @property
    def text(self) -> str:
        return self.explanations[0].text

    @property
    def label(self) -> Labels | None:
        return self.explanations[0].label

    @property
    def words(self) -> int:
        return len(self.explanations[0].starts)

    @property
    def choices(self) -> tuple[Word, ...]:
        return tuple(explanation.attention_path().word for explanation in self.explanations)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return tuple(explanation.attention_path().sentence for explanation in self.explanations)

    @property
    def same_place(self) -> bool:
        return len({word.start for word in self.choices}) == 1

    @property
    def same_word(self) -> bool:
        return len({word.text.lower() for word in self.choices}) == 1

    def to_dict(self, *, texts: bool) -> dict[str, Any]:
        words = [word.text for word in self.choices]
        label = None if self.label is None else list(as_tuple(self.label))
        told = {"row": self.row, "label": label, "words": words, "same": self.same_word}
        return {**told, "sentences": [sentence.text for sentence in self.sentences]} if texts else told


@dataclass(frozen=True, eq=False)
class Analysis:
    """`tied`: the words most tied to each class, where they were asked for. `drawn` are the documents that were drawn,
    `shown` is one of them to look at closely. `making`: command, commit, machine."""

    data: str
    documents: int
    words: int
    skipped: int  # rows without words
    classes: tuple[str, ...]
    tied: Mapping[str, Sequence[str]] | None
    models: Sequence[RunFacts]
    agreement: WordAgreement | None  # on the documents drawn; None with one model
    agreement_of_all: WordAgreement | None
    drawn: Sequence[Example]
    shown: Example
    seed: int
    making: Mapping[str, str]

    @property
    def disagreements(self) -> list[Example]:
        return [example for example in self.drawn if not example.same_word]

    def to_dict(self, *, texts: bool = True) -> dict[str, Any]:
        """Without `texts`, no sentence of the data is in it."""
        return {
            "data": self.data,
            "documents": self.documents,
            "words": self.words,
            "skipped": self.skipped,
            "seed": self.seed,
            "tied": None if self.tied is None else {name: list(words) for name, words in self.tied.items()},
            "models": [model.to_dict(texts=texts) for model in self.models],
            "agreement": None if self.agreement is None else self.agreement.to_dict(),
            "agreement_of_all": None if self.agreement_of_all is None else self.agreement_of_all.to_dict(),
            "drawn": [example.to_dict(texts=texts) for example in self.drawn],
            "making": dict(self.making),
        }
