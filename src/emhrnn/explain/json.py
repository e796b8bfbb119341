"""An `Explanation` as plain JSON values and back: one nested object per node, every number in full precision."""

from typing import Any, get_args

import numpy as np

from emhrnn.errors import DataError
from emhrnn.explain.arrays import Attention
from emhrnn.explain.explanation import (
    DecisivePath,
    Effects,
    EffectsBy,
    Explanation,
    Labels,
    Phrase,
    PhraseEvidence,
    Sentence,
    Word,
    as_tuple,
)
from emhrnn.explain.headline import headline_text
from emhrnn.shapes import Int64

FORMAT = "emhrnn.explanation/1"
MOST_CLASSES, LIKELIEST = 20, 5  # with more classes than the first, evidence for so many of them is kept


def explanation_to_dict(explanation: Explanation) -> dict[str, Any]:
    """`decided` is what decided most, null where nothing supports the prediction; `decided_by` is `Effects.by`.
    Weights, shares and lifts are attention. `direct`, a number for each word, is there only where the model has such
    weights; `evidence`, a number for each class, only where phrases add up."""
    direct = {} if explanation.weights.direct is None else {"direct": explanation.weights.direct.tolist()}
    path = explanation.decisive_path()
    return {
        "format": FORMAT,
        "model": explanation.model,
        "predicted": _labels_to_json(explanation.predicted),
        "label": None if explanation.label is None else _labels_to_json(explanation.label),
        "probabilities": dict(zip(explanation.classes, explanation.probabilities.tolist(), strict=True)),
        "decided_by": explanation.decided_by,
        "effects_on": None if explanation.effects is None else explanation.effects.label,
        "headline": headline_text(explanation),
        "warnings": list(explanation.warnings),
        "decided": None if path is None else _path_to_dict(path),
        "text": explanation.text,
        **_evidence_to_dict(explanation),
        "sentences": _sentences_to_dict(explanation),
        **direct,
    }


def _path_to_dict(path: DecisivePath) -> dict[str, Any]:
    """What decided, level by level, with its place in the text."""
    return {level: _span_to_dict(node) for level, node in path._asdict().items()}


def _evidence_to_dict(explanation: Explanation) -> dict[str, Any]:
    evidence, effects = _kept_evidence(explanation), explanation.effects
    if effects is None or effects.prior is None:
        return {}
    sums: dict[str, Any] = {"prior": effects.prior, **({} if effects.error is None else {"error": effects.error})}
    if effects.left_out is not None:
        sums["left_out"] = {str(k): fall for k, fall in effects.left_out.items()}
    if evidence is None:
        return sums
    return {
        **sums,
        "evidence": {
            name: dict(zip(evidence.classes, values.tolist(), strict=True))
            for name, values in (("bias", evidence.bias), ("logits", evidence.logits()))
        },
    }


def _kept_evidence(explanation: Explanation) -> PhraseEvidence | None:
    """For all classes; of many, for the likeliest, the predicted and the one that effects are on."""
    evidence = explanation.evidence
    if evidence is None or explanation.effects is None or len(evidence.classes) <= MOST_CLASSES:
        return evidence
    kept = {name for name, _ in explanation.ranking()[:LIKELIEST]} | {explanation.effects.label}
    kept |= set(as_tuple(explanation.predicted))
    return evidence.only([name for name in evidence.classes if name in kept])


def _sentences_to_dict(explanation: Explanation) -> list[dict[str, Any]]:
    sentences = [_sentence_to_dict(sentence) for sentence in explanation.sentences]
    evidence = _kept_evidence(explanation)
    if evidence is not None:
        phrases = [phrase for sentence in sentences for phrase in sentence["phrases"]]
        for nodes, table in ((sentences, evidence.sentences()), (phrases, evidence.phrases)):
            for node, values in zip(nodes, table.tolist(), strict=True):
                node["evidence"] = dict(zip(evidence.classes, values, strict=True))
    return sentences


def _sentence_to_dict(sentence: Sentence) -> dict[str, Any]:
    return {**_span_to_dict(sentence), "phrases": [_phrase_to_dict(phrase) for phrase in sentence.phrases]}


def _phrase_to_dict(phrase: Phrase) -> dict[str, Any]:
    return {**_span_to_dict(phrase), "words": [_word_to_dict(word) for word in phrase.words]}


def _word_to_dict(word: Word) -> dict[str, Any]:
    return {**_span_to_dict(word), "known": word.known, "boundary": word.boundary}


def _span_to_dict(node: Sentence | Phrase | Word) -> dict[str, Any]:
    return {
        "text": node.text,
        "start": node.start,
        "end": node.end,
        "weight": node.weight,
        "share": node.share,
        "lift": node.lift,
        "effect": node.effect,
    }


def explanation_from_dict(data: dict[str, Any]) -> Explanation:
    """Only spans and weights are read: texts, shares and lifts follow from them."""
    if data.get("format") != FORMAT:
        raise DataError(f"not an explanation: format is {data.get('format')!r}, expected {FORMAT!r}")
    try:
        return _read_columns(data)
    except DataError:  # what does not fit says so by itself
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"broken explanation ({type(error).__name__}: {error}); write it with to_dict()") from error


def _read_columns(data: dict[str, Any]) -> Explanation:
    sentences = data["sentences"]
    phrases = [phrase for sentence in sentences for phrase in sentence["phrases"]]
    words = [word for phrase in phrases for word in phrase["words"]]
    pi = [word["boundary"] for word in words]
    sentence_offsets = np.cumsum([0, *(len(sentence["phrases"]) for sentence in sentences)], dtype=np.int64)
    return Explanation(
        text=data["text"],
        classes=tuple(data["probabilities"]),
        probabilities=np.array(list(data["probabilities"].values()), dtype=np.float64),
        predicted=_labels_from_json(data["predicted"]),
        label=None if data["label"] is None else _labels_from_json(data["label"]),
        model=data["model"],
        starts=np.array([word["start"] for word in words], dtype=np.int64),
        ends=np.array([word["end"] for word in words], dtype=np.int64),
        phrase_offsets=np.cumsum([0, *(len(phrase["words"]) for phrase in phrases)], dtype=np.int64),
        sentence_offsets=sentence_offsets,
        known=np.array([word["known"] for word in words], dtype=bool),
        pi=None if None in pi else np.array(pi, dtype=np.float64),
        attention=_read_attention(data, words, phrases, sentences),
        effects=_read_effects(data, words, phrases, sentences),
        evidence=_read_evidence(data, phrases, sentence_offsets),
        warnings=tuple(data.get("warnings", ())),
    )


def _read_attention(data: dict[str, Any], *levels: list[dict[str, Any]]) -> Attention | None:
    if data.get("evidence") is not None:
        return None
    alpha, beta, gamma = (np.array([node["weight"] for node in level], dtype=np.float64) for level in levels)
    direct = data.get("direct")
    return Attention(alpha, beta, gamma, None if direct is None else np.array(direct, dtype=np.float64))


def _read_effects(data: dict[str, Any], *levels: list[dict[str, Any]]) -> Effects | None:
    """Files from before effects were known have none."""
    label = data.get("effects_on")
    if label is None:
        return None
    words, phrases, sentences = (np.array([node["effect"] for node in level], dtype=np.float64) for level in levels)
    by: EffectsBy = data["decided_by"] if data.get("decided_by") in get_args(EffectsBy) else "estimate"
    left_out = None if data.get("left_out") is None else {int(k): float(fall) for k, fall in data["left_out"].items()}
    return Effects(label, words, phrases, sentences, data.get("prior"), by, data.get("error"), left_out)


def _read_evidence(
    data: dict[str, Any], phrases: list[dict[str, Any]], sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
) -> PhraseEvidence | None:
    if data.get("evidence") is None:
        return None
    bias = data["evidence"]["bias"]
    rows = [[phrase["evidence"][name] for name in bias] for phrase in phrases]
    return PhraseEvidence(
        classes=tuple(bias),
        phrases=np.array(rows, dtype=np.float64).reshape(len(phrases), len(bias)),
        bias=np.array(list(bias.values()), dtype=np.float64),
        sentence_offsets=sentence_offsets,
    )


def _labels_to_json(labels: Labels) -> str | list[str]:
    return labels if isinstance(labels, str) else list(labels)


def _labels_from_json(labels: str | list[str]) -> Labels:
    return labels if isinstance(labels, str) else tuple(labels)
