"""An `Explanation` as plain JSON values: one nested object per node, every number in full precision."""

from typing import Any

from emhrnn.explain.arrays import PhraseEvidence
from emhrnn.explain.explanation import Explanation, Labels, Node, as_tuple
from emhrnn.explain.headline import headline_text

FORMAT = "emhrnn.explanation/1"
SPAN = ("text", "start", "end", "weight", "share", "lift", "effect")  # of a node
MOST_CLASSES, LIKELIEST = 20, 5  # with more classes than the first, evidence for so many of them is kept


def explanation_to_dict(explanation: Explanation) -> dict[str, Any]:
    """`decided` is what decided most, null where nothing supports the prediction; `decided_by` is `Effects.by`.
    Weights, shares and lifts are attention. `direct`, a number for each word, is there only where the model has such
    weights; `nearby`, the support around each word, where effects are known; `evidence`, a number for each class, only
    where phrases add up."""
    direct = {} if explanation.weights.direct is None else {"direct": explanation.weights.direct.tolist()}
    nearby = {} if explanation.nearby is None else {"nearby": explanation.nearby.tolist()}
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
        "decided": None if path is None else {level: _span_to_dict(node) for level, node in path._asdict().items()},
        "text": explanation.text,
        **_evidence_to_dict(explanation),
        "sentences": _sentences_to_dict(explanation),
        **nearby,
        **direct,
    }


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
    sentences = [
        {**_span_to_dict(sentence), "phrases": [
            {**_span_to_dict(phrase), "words": [
                {**_span_to_dict(word), "known": word.known, "boundary": word.boundary} for word in phrase.words
            ]} for phrase in sentence.phrases
        ]} for sentence in explanation.sentences
    ]  # fmt: skip
    evidence = _kept_evidence(explanation)
    if evidence is not None:
        phrases = [phrase for sentence in sentences for phrase in sentence["phrases"]]
        for nodes, table in ((sentences, evidence.sentences()), (phrases, evidence.phrases)):
            for node, values in zip(nodes, table.tolist(), strict=True):
                node["evidence"] = dict(zip(evidence.classes, values, strict=True))
    return sentences


def _span_to_dict(node: Node) -> dict[str, Any]:
    return {name: getattr(node, name) for name in SPAN}


def _labels_to_json(labels: Labels) -> str | list[str]:
    return labels if isinstance(labels, str) else list(labels)
