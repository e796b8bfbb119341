"""The model `evidence` from nested lists of words: every phrase, every segmentation, one after the other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn.functional import softplus

from emhrnn.corpus.batch import Batch
from emhrnn.layers.phrases import phrase_keys
from emhrnn.models.evidence import Evidence
from emhrnn.models.evidence_reader import BUCKETS, READING_LENGTH, READING_PAUSES, READING_UNKNOWN
from tests.models.examples import sentences_of
from tests.oracles import phrase_evidence as parts
from tests.oracles.recurrent import layer_states
from tests.oracles.segmentations import Enumeration, phrases

Sentences = list[list[int]]


def phrases_in(document: Sentences, K: int) -> Counter[parts.Phrase]:
    """How often each phrase without an unknown word is in a document."""
    found: Counter[parts.Phrase] = Counter()
    for sentence in document:
        for word in parts.candidates(sentence, [0, len(sentence)], K):
            found.update(phrase for phrase in word if phrase is not None)
    return found


@dataclass
class Counted:
    """Which phrases training has seen, and the weight of the documents of each class that have them."""

    classes: int
    by_class: dict[parts.Phrase, np.ndarray] = field(default_factory=dict)
    documents: dict[parts.Phrase, float] = field(default_factory=dict)
    class_documents: np.ndarray = field(default_factory=lambda: np.zeros(0))
    total: float = 0.0

    @classmethod
    def of(cls, documents: Sequence[Sentences], labels: np.ndarray, weights: np.ndarray, K: int, least: int, most: int):
        """`labels` (documents, classes) of 0 and 1. Phrases of `least` documents or more, but for whole levels of
        equally many documents where these are more than `most`."""
        seen = [set(phrases_in(document, K)) for document in documents]
        counts = Counter(phrase for there, w in zip(seen, weights, strict=True) if w > 0 for phrase in there)
        while sum(count >= least for count in counts.values()) > most:
            least += 1
        self = cls(labels.shape[1])
        self.by_class = {phrase: np.zeros(labels.shape[1]) for phrase, count in counts.items() if count >= least}
        self.documents = dict.fromkeys(self.by_class, 0.0)
        for there, label, weight in zip(seen, labels, weights, strict=True):
            for phrase in there & self.by_class.keys():
                self.by_class[phrase] += weight * label
                self.documents[phrase] += float(weight)
        self.class_documents, self.total = (labels * weights[:, None]).sum(axis=0), float(weights.sum())
        return self

    def shares(self, own: tuple[np.ndarray, float] | None = None) -> list[float]:
        """Of the classes; without a document that has this label and weight."""
        documents, total = self.class_documents, self.total
        if own is not None:
            documents, total = documents - own[0] * own[1], total - own[1]
        return [(c + 1e-3) / (total + 2e-3) for c in documents.tolist()]


def row_of(model: Evidence, phrase: parts.Phrase) -> int:
    key = phrase_keys(Batch.from_lists([[list(phrase)]]), model.longest)[-1, len(phrase) - 1]
    return int(np.searchsorted(model.ngrams.keys.numpy(), key))


def values(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def evidence(
    model: Evidence, counted: Counted, document: Sentences, own: tuple[np.ndarray, float] | None = None
) -> list[np.ndarray]:
    """e (words, K, classes) of each sentence; `own` are label and weight of a training document, to be left out."""
    K, C, times = model.longest, model.classes, phrases_in(document, model.longest)
    m, table, scale, result = model.ngrams.smoothing * C, values(model.ngrams.table), values(model.scale), []
    for sentence in document:
        scores = np.zeros((len(sentence), K, C))
        for t, word in enumerate(parts.candidates(sentence, [0, len(sentence)], K)):
            for k, phrase in enumerate(word):
                if phrase is None or not parts.found(phrase, counted.by_class):
                    continue
                count, number = counted.by_class[phrase], counted.documents[phrase]
                if own is not None:
                    count, number = count - own[0] * own[1], number - own[1]
                shares = counted.shares(own)
                ratios = parts.log_ratios(count.tolist(), number, shares, m, several=model.several)
                r = np.array(parts.mixed(ratios, None if model.mixing is None else values(model.mixing)))
                said = scale[k, parts.bucket(number, BUCKETS)] * r * model.counted
                if model.tables:
                    said = said + table[row_of(model, phrase)]
                scores[t, k] += times[phrase] ** -model.presence * said
        if model.encoder is not None:
            projection = np.einsum("ns,skh->nkh", values(model.vectors)[sentence], values(model.encoder.projection))
            scores += parts.encoder_scores(
                projection, values(model.encoder.bias), values(model.encoder.output), range(len(sentence)),
                [0, len(sentence)],
            )  # fmt: skip
        result.append(scores)
    return result


def cohesion(model: Evidence, sentence: list[int]) -> np.ndarray:
    """g (words, K)."""
    g = np.tile(values(model.length_prior), (len(sentence), 1))
    if model.pauses is not None:
        odds = values(model.pause_strength) * values(model.pauses.odds)
        for t, (word, following) in enumerate(pairwise(sentence)):
            g[t] += odds[0, word] + odds[1, following]
    return g


def sentence_weights(weigher: nn.Module | None, vectors: np.ndarray, document: Sentences) -> np.ndarray:
    if weigher is None:
        return np.ones(len(document))
    x = torch.from_numpy(np.stack([vectors[sentence].mean(axis=0) for sentence in document]))
    layers = [layer.double() for layer in (weigher.layer.forward_layer, weigher.layer.backward_layer)]
    states = [layer_states(layer, x, [0, len(x)], reverse=bool(i)) for i, layer in enumerate(layers)]
    raw = values(softplus(torch.cat(states, dim=1) @ weigher.score.double()))
    for layer in layers:
        layer.float()
    return raw * len(raw) / raw.sum()


def lambdas(model: Evidence, document: Sentences) -> np.ndarray:
    """What the evidence of each sentence is multiplied with; without a known word, nothing is said."""
    words = sum(map(len, document))
    known = any(word for sentence in document for word in sentence)
    of_document = known * np.exp(values(model.strength)) * (words / 200) ** -values(model.power)
    return of_document * sentence_weights(model.weigher, values(model.vectors), document)


def logits(
    model: Evidence, counted: Counted, document: Sentences, own: tuple[np.ndarray, float] | None = None
) -> np.ndarray:
    """Single labels: less the mean of what the sentences say, as the model has it."""
    total = values(model.bias).copy()
    said = evidence(model, counted, document, own)
    for sentence, e, weight in zip(document, said, lambdas(model, document), strict=True):
        g = cohesion(model, sentence)
        alpha = np.array([Enumeration.of(e[:, :, y] + g).log_partition for y in range(model.classes)])
        total += weight * (alpha - Enumeration.of(g).log_partition if model.several else alpha - alpha.mean())
    return total


def compared(model: Evidence, said: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(words, classes) and, without evidence, (words)."""
    return said - (free[:, None] if model.several else said.mean(axis=1, keepdims=True))


def word_shares(model: Evidence, counted: Counted, document: Sentences) -> np.ndarray:
    """(words, classes): the mean of what each word adds from the left and from the right, over all segmentations."""
    result = []
    for sentence, e, weight in zip(document, evidence(model, counted, document), lambdas(model, document), strict=True):
        g, T = cohesion(model, sentence), len(sentence)
        columns = [e[:, :, y] + g for y in range(model.classes)]

        def shares(scores: np.ndarray, T: int = T) -> np.ndarray:
            alpha = [Enumeration.of(scores[:t]).log_partition if t else 0.0 for t in range(T + 1)]
            beta = [Enumeration.of(scores[t:]).log_partition if t < T else 0.0 for t in range(T + 1)]
            return (np.diff(alpha) - np.diff(beta)) / 2

        result.append(weight * compared(model, np.stack([shares(x) for x in columns], axis=1), shares(g)))
    return np.concatenate(result)


def even_shares(model: Evidence, counted: Counted, document: Sentences, z: Sequence[Sequence[bool]]) -> np.ndarray:
    """(words, classes): of one segmentation, lambda * e of each phrase, shared evenly by its words."""
    result = []
    for e, weight, cut in zip(evidence(model, counted, document), lambdas(model, document), z, strict=True):
        said = np.concatenate([np.tile(e[end, width - 1] / width, (width, 1)) for end, width in phrases(cut)])
        result.append(weight * compared(model, said, np.zeros(len(said))))
    return np.concatenate(result)


def readable(model: Evidence, sentence: list[int]) -> np.ndarray:
    """What an end at each word adds in the segmentation that is shown: (words)."""
    added = np.zeros(len(sentence))
    if model.pauses is not None:
        odds = values(model.pauses.odds)
        added -= READING_LENGTH
        for t, (word, following) in enumerate(pairwise(sentence)):
            unknown = (word == 0) + (following == 0)
            added[t] += READING_PAUSES * (odds[0, word] + odds[1, following] - READING_UNKNOWN * unknown)
    return added


def best_cuts(model: Evidence, counted: Counted, document: Sentences, y: int) -> list[list[list[bool]]]:
    """Of each sentence, the segmentations of a class to show: all that are level with the best one."""
    result = []
    for sentence, e in zip(document, evidence(model, counted, document), strict=True):
        enumeration = Enumeration.of(e[:, :, y] + cohesion(model, sentence) + readable(model, sentence)[:, None])
        level = enumeration.values > enumeration.values.max() - 1e-4
        result.append([z.tolist() for z in enumeration.z[level]])
    return result


def documents_of(batch: Batch) -> list[Sentences]:
    return [sentences_of(batch, d) for d in range(batch.n_documents)]
