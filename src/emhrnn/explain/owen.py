"""Owen values: what each word adds to the log-odds of the predicted class, shared fairly over the hierarchy document >
sentence > phrase > word.

v(S) is the log-odds of the document that keeps only the words of S; phrases that stay keep their ends (removal.py).
Words join one by one, in an order that keeps the words of a phrase together and the phrases of a sentence together. All
such orders are equally likely. The value of a word is the mean of what it adds when it joins:

    words add up to phrases, phrases to sentences, sentences to v(all words) - v(no word)

Without the hierarchy these would be Shapley values. A document of few words is enumerated: what has joined before a
word is any set of other sentences, of other phrases of its sentence and of other words of its phrase, each with its
Shapley weight. Longer ones are sampled, in pairs of an order and its reverse.

In the evidence model, v(S) is taken to be the prior and what the words of S add to the logits of the whole document.
That game is additive, so its Owen values are these numbers themselves, for every hierarchy: nothing has to be computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import comb

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.explain.build import BatchEffects
from emhrnn.explain.removal import logits_without, odds_of
from emhrnn.shapes import Bool, Float64, Int64
from emhrnn.training.run import Run

Game = Callable[[Bool[np.ndarray, "sets words"]], Float64[np.ndarray, " sets"]]  # v of each set of words

ORDERS = 16  # that are drawn, in pairs
MOST_WORDS = 2_000  # of a document whose orders are drawn: time grows with their square
MOST_SETS = 4096  # that are enumerated; with more, orders are drawn


@dataclass(frozen=True, eq=False)
class OwenValues:
    """Of one document. `error` is the largest standard error of the value of a phrase, 0 if all orders are counted;
    `passes` counts the sets of words that were run through the model."""

    words: Float64[np.ndarray, " words"]
    error: float
    passes: int


def owen_effects(
    run: Run, batch: Batch, z: Bool[np.ndarray, " words"], chosen: Int64[np.ndarray, " documents"]
) -> BatchEffects:
    """Owen values of the words, phrases and sentences of a batch, on the log-odds of the chosen classes.

    Raises:
        DataError: a document has more than `MOST_WORDS` words.
    """
    longest = int(batch.document_lengths.max())
    if longest > MOST_WORDS:
        raise DataError(
            f"a text of {longest:,} words; Owen values of {run.config.model.name} are sampled with predictions for "
            f"every word, for texts of at most {MOST_WORDS:,}; shorten it, or explain it by effects"
        )
    found, priors = list[OwenValues](), list[float]()
    for d, (first, last) in enumerate(pairwise(batch.word_offsets)):
        one, ends = batch.part(d, d + 1), z[first:last]
        game = partial(_odds_of_sets, run, one, ends, int(chosen[d]))
        found.append(owen_values(game, np.cumsum(ends) - ends, one.sentence_of_word))
        priors.append(float(game(np.zeros((1, one.n_words), dtype=bool))[0]))
    words = np.concatenate([one.words for one in found])
    return BatchEffects(
        chosen,
        words,
        phrases=np.add.reduceat(words, np.concatenate([[0], np.flatnonzero(z)[:-1] + 1])),
        sentences=np.add.reduceat(words, batch.sentence_offsets[:-1]),
        by="owen",
        priors=np.array(priors),
        errors=np.array([one.error for one in found]),
    )


def _odds_of_sets(
    run: Run, one: Batch, z: Bool[np.ndarray, " words"], chosen: int, keep: Bool[np.ndarray, "sets words"]
) -> Float64[np.ndarray, " sets"]:
    return odds_of(run, logits_without(run, one, z, keep), np.full(len(keep), chosen))


def owen_values(
    game: Game,
    phrase_of_word: Int64[np.ndarray, " words"],
    sentence_of_word: Int64[np.ndarray, " words"],
    *,
    orders: int = ORDERS,
    seed: int = 0,
) -> OwenValues:
    """Exact where at most `MOST_SETS` sets decide; else from so many `orders` (an even number) drawn with the seed."""
    parts = _parts(phrase_of_word, sentence_of_word)
    sets = sum(2 ** (len(parts) - 1 + len(phrases) - 1 + len(words)) for phrases in parts for words in phrases)
    if sets <= MOST_SETS:
        return OwenValues(_enumerated(game, parts, len(phrase_of_word)), 0.0, sets)
    return _sampled(game, phrase_of_word, sentence_of_word, orders, np.random.default_rng(seed))


Parts = list[list[Int64[np.ndarray, " _"]]]  # the words of each phrase of each sentence


def _parts(phrase_of_word: Int64[np.ndarray, " words"], sentence_of_word: Int64[np.ndarray, " words"]) -> Parts:
    places = np.arange(len(phrase_of_word))
    parts: Parts = []
    for sentence in range(int(sentence_of_word[-1]) + 1):
        phrases = np.unique(phrase_of_word[sentence_of_word == sentence])
        parts.append([places[phrase_of_word == phrase] for phrase in phrases])
    return parts


def _enumerated(game: Game, parts: Parts, words: int) -> Float64[np.ndarray, " words"]:
    values = np.zeros(words)
    of_sentence = [np.isin(np.arange(words), np.concatenate(phrases)) for phrases in parts]
    for i, phrases in enumerate(parts):
        others = _unions(of_sentence[:i] + of_sentence[i + 1 :], words)
        for k, phrase in enumerate(phrases):
            siblings = _unions([np.isin(np.arange(words), one) for j, one in enumerate(phrases) if j != k], words)
            inside = _unions([np.arange(words) == t for t in phrase], words)
            keep = others[:, None, None] | siblings[None, :, None] | inside[None, None]  # (sets, sets, sets, words)
            v = game(keep.reshape(-1, words)).reshape(keep.shape[:3])
            v = _shapley(len(parts)) @ v.reshape(len(others), -1)
            v = _shapley(len(phrases)) @ v.reshape(len(siblings), -1)  # (sets of the words of the phrase)
            values[phrase] = _shares(v, len(phrase))
    return values


def _unions(members: list[Bool[np.ndarray, " words"]], words: int) -> Bool[np.ndarray, "sets words"]:
    """Of every set of members: number s has member j where bit j of s is set."""
    sets = np.zeros((1, words), dtype=bool)
    for member in members:
        sets = np.concatenate([sets, sets | member])
    return sets


def _shapley(players: int) -> Float64[np.ndarray, " sets"]:
    """The chance of each set of the other players to be the one that joined before."""
    sizes = np.bitwise_count(np.arange(2 ** (players - 1)))
    return np.array([1 / (players * comb(players - 1, int(size))) for size in sizes])


def _shares(v: Float64[np.ndarray, " sets"], players: int) -> Float64[np.ndarray, " players"]:
    """Shapley values of a game of few players."""
    sets, chances = np.arange(len(v)), _shapley(players)
    values = []
    for player in range(players):
        without = sets[sets & (1 << player) == 0]  # in the order of the sets of the others
        values.append(float(chances @ (v[without | (1 << player)] - v[without])))
    return np.array(values)


def _sampled(
    game: Game,
    phrase_of_word: Int64[np.ndarray, " words"],
    sentence_of_word: Int64[np.ndarray, " words"],
    orders: int,
    generator: np.random.Generator,
) -> OwenValues:
    words, phrases = len(phrase_of_word), int(phrase_of_word[-1]) + 1
    ends = game(np.array([np.zeros(words, dtype=bool), np.ones(words, dtype=bool)]))  # v of nothing, and of all
    pairs = []
    for _ in range(orders // 2):
        of_sentence = generator.random(int(sentence_of_word[-1]) + 1)[sentence_of_word]
        of_phrase = generator.random(phrases)[phrase_of_word]
        order = np.lexsort((generator.random(words), of_phrase, of_sentence))
        pairs.append((_added(game, order, ends) + _added(game, order[::-1], ends)) / 2)
    drawn = np.stack(pairs)  # (pairs, words)
    of_phrases = np.add.reduceat(drawn, np.flatnonzero(np.diff(phrase_of_word, prepend=-1)), axis=1)
    error = float(of_phrases.std(axis=0, ddof=1).max() / np.sqrt(len(pairs))) if len(pairs) > 1 else np.inf
    return OwenValues(drawn.mean(axis=0), error, len(pairs) * 2 * (words - 1) + 2)


def _added(
    game: Game, order: Int64[np.ndarray, " words"], ends: Float64[np.ndarray, " 2"]
) -> Float64[np.ndarray, " words"]:
    """What each word adds when the words join in this order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    v = np.concatenate([ends[:1], game(place < np.arange(1, len(order))[:, None]), ends[1:]])
    added: np.ndarray = np.diff(v)[place]
    return added
