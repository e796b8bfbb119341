"""The tree of an explanation, node by node from its arrays."""

from emhrnn.explain.explanation import Explanation, Phrase, Sentence, Word


def sentences(e: Explanation) -> tuple[Sentence, ...]:
    return tuple(sentence(e, i) for i in range(len(e.weights.gamma)))


def sentence(e: Explanation, i: int) -> Sentence:
    first, last = int(e.sentence_offsets[i]), int(e.sentence_offsets[i + 1])
    phrases = tuple(phrase(e, i, k) for k in range(first, last))
    weight, (start, end) = float(e.weights.gamma[i]), (phrases[0].start, phrases[-1].end)
    effect = None if e.effects is None else float(e.effects.sentences[i])
    return Sentence(e.text[start:end], start, end, i, weight, weight, weight * len(e.weights.gamma), effect, phrases)


def phrase(e: Explanation, i: int, k: int) -> Phrase:
    words = tuple(word(e, i, k, t) for t in range(int(e.phrase_offsets[k]), int(e.phrase_offsets[k + 1])))
    weight, (start, end) = float(e.weights.beta[k]), (words[0].start, words[-1].end)
    siblings = int(e.sentence_offsets[i + 1] - e.sentence_offsets[i])
    effect = None if e.effects is None else float(e.effects.phrases[k])
    share = float(e.weights.gamma[i]) * weight
    number = k - int(e.sentence_offsets[i])
    return Phrase(e.text[start:end], start, end, number, weight, share, weight * siblings, effect, words)


def word(e: Explanation, i: int, k: int, t: int) -> Word:
    start, end, weight = int(e.starts[t]), int(e.ends[t]), float(e.weights.alpha[t])
    first, last = int(e.phrase_offsets[k]), int(e.phrase_offsets[k + 1])
    return Word(
        text=e.text[start:end],
        start=start,
        end=end,
        index=t - first,
        weight=weight,
        share=float(e.weights.gamma[i]) * float(e.weights.beta[k]) * weight,
        lift=weight * (last - first),
        effect=None if e.effects is None else float(e.effects.words[t]),
        known=bool(e.known[t]),
        boundary=None if e.pi is None else float(e.pi[t]),
    )
