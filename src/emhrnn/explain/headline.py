"""What decided, in one or two sentences, for a document that is explained by evidence. Renderings choose the type."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from emhrnn.explain.explanation import Effects, Explanation, Phrase, Word
from emhrnn.explain.page import signed

STRANGE = "No word of this text is known to the model"


class Piece(NamedTuple):
    text: str
    kind: Literal["plain", "quote", "number"] = "plain"


def headline(explanation: Explanation) -> list[Piece]:
    """The phrase with the largest evidence for the prediction; or that there is none."""
    effects = explanation.effects
    assert effects is not None  # evidence comes with effects
    if not explanation.supported:
        return _unsupported(explanation, effects)
    sentence, phrase, word = explanation.decisive_path()
    it = explanation.spoken_of
    pieces = [Piece(f"{STRANGE}; do not trust the label. ")] if _strange(explanation) else []
    pieces += [Piece("Decided most by " if it == "it" else f"Most for {it}: "), *_quoted(phrase.text, phrase.effect)]
    if len(explanation.sentences) > 1:
        pieces.append(Piece(f" in sentence {sentence.index + 1}"))
    if sum(map(_spelled, phrase.words)) > 1 and _spelled(word) and (word.effect or 0) > 0:
        pieces += [Piece(", in it "), *_quoted(word.text, word.effect)]
    return [*pieces, Piece(".")]


def _unsupported(explanation: Explanation, effects: Effects) -> list[Piece]:
    label = Piece(effects.label)
    prior = [Piece(" ("), Piece(signed(effects.prior or 0), "number"), Piece(").")]
    if _strange(explanation):
        first = STRANGE
    elif not effects.phrases.any():
        first = "No phrase of this text is evidence for or against it"
    else:
        first = f"No phrase speaks for {explanation.spoken_of}"
    return [Piece(f"{first}; the label is by the prior of "), label, *prior]


def _strange(explanation: Explanation) -> bool:
    return not any(word.known and _spelled(word) for word in explanation.words)


def _spelled(word: Word) -> bool:
    """Marks are no words here."""
    return any(map(str.isalnum, word.text))


def _quoted(text: str, effect: float | None) -> list[Piece]:
    return [Piece(text, "quote"), Piece(" ("), Piece(signed(effect or 0), "number"), Piece(")")]


def ways(explanation: Explanation) -> Iterator[tuple[str, list[Phrase]]]:
    """The phrases that speak most, each way; those that the headline names are not said again."""
    supporting = explanation.supporting(3 if explanation.evidence is None else 4)
    if explanation.evidence is None:
        yield "For", supporting
    else:
        yield "Also for", supporting[1:]
    yield "Against", explanation.opposing()


def balance(explanation: Explanation) -> list[Piece]:
    """That the effects add up to the prediction."""
    effects, predicted = explanation.effects, explanation.predicted
    assert effects is not None
    several = isinstance(predicted, str) and len(explanation.classes) > 2
    against = " against the mean of the other labels" if several else ""
    return [
        Piece("Prior "), Piece(signed(effects.prior or 0), "number"),
        Piece(", all phrases "), Piece(signed(float(effects.sentences.sum())), "number"),
        Piece(": together "), Piece(signed(effects.total), "number"),
        Piece(f" log-odds{against}, those of the probabilities."),
    ]  # fmt: skip
