"""The paper's descent and attention beside chance, by plain loops over nested lists.

A document is a list of sentences, a sentence a list of phrases, a phrase a list of words; each with its weight:
    word      (weight in its phrase, weight among the words and phrases of its sentence or None)
    phrase    (weight in its sentence, words)
    sentence  (weight in its document, phrases)
"""

Word = tuple[float, float | None]
Phrase = tuple[float, list[Word]]
Sentence = tuple[float, list[Phrase]]


def descent(document: list[Sentence]) -> int:
    """The number of the word that the descent ends at."""
    number = best = 0
    heaviest = max(weight for weight, _ in document)
    for weight, phrases in document:
        words = [word for _, some in phrases for word in some]
        if weight == heaviest:
            if words[0][1] is not None:
                values = [direct or 0.0 for _, direct in words]
                return number + values.index(max(values))
            weights = [phrase_weight for phrase_weight, _ in phrases]
            chosen = weights.index(max(weights))
            before = sum(len(some) for _, some in phrases[:chosen])
            values = [own for own, _ in phrases[chosen][1]]
            return number + before + values.index(max(values))
        number += len(words)
    return best


def beside_chance(document: list[Sentence]) -> list[tuple[float, int, float]]:
    """Of each word: its weight, the items of its softmax, and its share of the sentence times the words of it."""
    rows = []
    for _, phrases in document:
        length = sum(len(words) for _, words in phrases)
        for phrase_weight, words in phrases:
            for own, direct in words:
                share = phrase_weight * own * length
                if direct is None:
                    rows.append((own, len(words), share))
                else:
                    rows.append((direct, length + len(phrases), share))
    return rows
