"""Effects as they are defined, one document at a time: every first-order term is the derivative of the log-odds as the
change is turned on by eps, by running the whole document again."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emhrnn.paper.models.em_hrnn import EMHRNN
from tests.oracles.em_hrnn import phrase_features, phrase_states, phrases, pool
from tests.oracles.recurrent import step, zero_state


@dataclass
class Change:
    """What is turned on by eps: phrase vectors and sentence vectors move, states are skipped."""

    eps: Tensor
    q: tuple[int, int, Tensor] | None = None  # sentence, phrase, direction
    s: tuple[int, Tensor] | None = None
    words: tuple[int, int, int] | None = None  # sentence, first and last word whose states are not handed on
    phrase: tuple[int, int] | None = None  # whose state is not handed on
    sentence: int | None = None


def skipping(layer, inputs: list[Tensor], first: int | None, last: int | None, eps: Tensor) -> list[Tensor]:
    """h; what row `last` hands on goes over to what row `first` was handed, as eps goes to 1."""
    state, states = zero_state(layer), []
    for t, x in enumerate(inputs):
        if t == first:
            before = state
        state = step(layer, x, *state)
        states.append(state[0])
        if t == last:
            state = tuple(after + eps * (was - after) for after, was in zip(state, before, strict=True))
    return states


def weights(attention, states: list[Tensor]) -> Tensor:
    scores = torch.stack([torch.tanh(attention.weight @ h + attention.bias) @ attention.context for h in states])
    return torch.softmax(scores, dim=0)


def log_odds(logits: Tensor, chosen: int, temperature: float) -> Tensor:
    log_p = torch.log_softmax(logits / temperature, dim=0)
    rest = torch.cat([log_p[:chosen], log_p[chosen + 1 :]])
    return log_p[chosen] - torch.logsumexp(rest, dim=0)


class Document:
    """One document's states, to be run again with changes."""

    def __init__(self, model: EMHRNN, sentences: list[list[int]], z: list[list[bool]], temperature: float) -> None:
        self.model, self.temperature = model, temperature
        self.words, self.z = sentences, z
        self.h1 = [phrase_states(model, words, ends) for words, ends in zip(sentences, z, strict=True)]
        self.q = [[pool(model.word_attention, words) for words in sentence] for sentence in self.h1]
        none = Change(torch.zeros((), dtype=torch.float64))
        self.p = [self.phrase_states(i, none) for i in range(len(self.q))]
        self.s = [pool(model.phrase_attention, states) for states in self.p]
        self.h3 = self.sentence_states(none)
        v = pool(model.sentence_attention, self.h3)
        self.chosen = int((model.output.weight @ v + model.output.bias).argmax())

    def phrase_states(self, i: int, change: Change) -> list[Tensor]:
        q = self.moved_phrases(change) if change.words is not None and change.words[0] == i else list(self.q[i])
        if change.q is not None and change.q[0] == i:
            q[change.q[1]] = q[change.q[1]] + change.eps * change.q[2]
        skipped = change.phrase[1] if change.phrase is not None and change.phrase[0] == i else None
        h2 = skipping(self.model.phrase_layer, q, skipped, skipped, change.eps)
        return [phrase_features(self.model, *pair) for pair in zip(h2, q, strict=True)]

    def moved_phrases(self, change: Change) -> list[Tensor]:
        """Phrase vectors when the words from `first` to `last`, all of one phrase, hand on what they were handed."""
        i, first, last = change.words
        h1 = self.moved_words(self.words[i], first, last, change.eps)
        return [pool(self.model.word_attention, words) for words in phrases(h1, self.z[i])]

    def moved_words(self, words: list[int], first: int | None, last: int | None, eps: Tensor) -> list[Tensor]:
        x = list(self.model.embedding.vectors()[words])
        layers, n = self.model.word_directions(), len(x)
        states = [skipping(layers[0], x, first, last, eps)]
        if len(layers) > 1:
            back = (None, None) if first is None else (n - 1 - last, n - 1 - first)
            states.append(skipping(layers[1], x[::-1], *back, eps)[::-1])
        return [torch.cat(pair) for pair in zip(*states, strict=True)]

    def sentence_states(self, change: Change) -> list[Tensor]:
        s = [pool(self.model.phrase_attention, self.phrase_states(i, change)) for i in range(len(self.q))]
        if change.s is not None:
            s[change.s[0]] = s[change.s[0]] + change.eps * change.s[1]
        i, n = change.sentence, len(s)
        forward = skipping(self.model.sentence_forward, s, i, i, change.eps)
        j = None if i is None else n - 1 - i
        backward = skipping(self.model.sentence_backward, s[::-1], j, j, change.eps)[::-1]
        return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]

    def f(self, v: Tensor) -> Tensor:
        return log_odds(self.model.output.weight @ v + self.model.output.bias, self.chosen, self.temperature)

    def fall(self, **change) -> Tensor:
        """- d f / d eps"""
        eps = torch.zeros((), dtype=torch.float64, requires_grad=True)
        f = self.f(pool(self.model.sentence_attention, self.sentence_states(Change(eps, **change))))
        return -torch.autograd.grad(f, eps, allow_unused=True, materialize_grads=True)[0]


def without(attention, states: list[Tensor], k: int) -> Tensor:
    """The pool of the others; zero where there are none."""
    others = states[:k] + states[k + 1 :]
    return pool(attention, others) if others else torch.zeros_like(states[0])


def effects(
    model: EMHRNN, sentences: list[list[int]], z: list[list[bool]], temperature: float, context: bool
) -> tuple[int, list[float], list[float], list[float]]:
    """The class, and the effects of its words, phrases and sentences; with context, of word states, too."""
    document = Document(model, sentences, z, temperature)
    v = pool(model.sentence_attention, document.h3)
    of_words, of_phrases, of_sentences = [], [], []
    for i, p in enumerate(document.p):
        place = 0
        rest = without(model.sentence_attention, document.h3, i)
        of_sentences.append(document.f(v) - document.f(rest) + document.fall(sentence=i))
        for k, q in enumerate(document.q[i]):
            rest = without(model.phrase_attention, p, k)
            skipped = document.fall(s=(i, rest - document.s[i])) + document.fall(phrase=(i, k))
            if len(p) == 1:
                skipped = of_sentences[i]
            of_phrases.append(skipped)
            alpha = weights(model.word_attention, document.h1[i][k])
            of_words += [
                weight * (of_phrases[-1] - document.fall(q=(i, k, h - q)))
                + context * document.fall(words=(i, place + t, place + t))
                for t, (weight, h) in enumerate(zip(alpha, document.h1[i][k], strict=True))
            ]
            if context and len(p) > 1:
                of_phrases[-1] = of_phrases[-1] + document.fall(words=(i, place, place + len(alpha) - 1))
            place += len(alpha)
    return document.chosen, *([float(x.detach()) for x in level] for level in (of_words, of_phrases, of_sentences))
