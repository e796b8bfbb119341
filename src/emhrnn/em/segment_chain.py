"""A semi-Markov chain over the words of each sentence: which phrases it is cut into, given a log-potential for every
possible phrase. Forward-backward in log space; sentences side by side, one step per word.

    alpha[t]   log of the sum over all ways to cut words 0 .. t - 1          beta[t]   the same for words t ..
    log Z = alpha[T]        P(a phrase ends at word t) = exp(alpha[t + 1] + beta[t + 1] - log Z)
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch


@dataclass(frozen=True, eq=False)
class SegmentChain:
    """Potentials by sentence: [i, a, l] is the phrase of words a .. a + l of sentence i; -inf where there is none."""

    batch: Batch
    potentials: Float[Tensor, "sentences longest_sentence longest"]
    alpha: Float[Tensor, "sentences longest_sentence_plus_1"]

    @classmethod
    def from_flat(cls, batch: Batch, potentials: Float[Tensor, "words longest"]) -> "SegmentChain":
        sentence, position = _places(batch)
        T = int(batch.sentence_lengths.max())
        padded = potentials.new_full((batch.n_sentences, T, potentials.shape[1]), -torch.inf)
        padded[sentence, position] = potentials
        return cls(batch, padded, _forward(padded))

    @property
    def log_partition(self) -> Float[Tensor, " sentences"]:
        return self.alpha.gather(1, torch.from_numpy(self.batch.sentence_lengths)[:, None]).squeeze(1)

    def boundaries(self) -> Float[Tensor, " words"]:
        """P(z_t = 1)."""
        sentence, position = _places(self.batch)
        beta = _backward(self.potentials, torch.from_numpy(self.batch.sentence_lengths))
        log_p = self.alpha[sentence, position + 1] + beta[sentence, position + 1] - self.log_partition[sentence]
        return log_p.exp().clamp(max=1)

    def boundary_logits(self) -> Float[Tensor, " words"]:
        """logit P(z_t = 1), kept finite; 0 at sentence ends, where it is certain."""
        final = torch.from_numpy(self.batch.sentence_final)
        return torch.where(final, 0, torch.logit(self.boundaries(), eps=1e-6))

    def sample(self, generator: np.random.Generator) -> Bool[np.ndarray, " words"]:
        """Segmentations of all sentences, drawn from the last phrase to the first."""
        z = np.zeros(self.batch.n_words, dtype=bool)
        end = self.batch.sentence_lengths.copy()  # words still to be cut
        alpha, potentials = self.alpha.double().numpy(), self.potentials.double().numpy()
        chance = generator.random(self.batch.n_words)  # one per word, so that it does not depend on the other sentences
        while (todo := np.flatnonzero(end > 0)).size:
            last = self.batch.sentence_offsets[todo] + end[todo] - 1
            z[last] = True
            log_p = _ending_at(alpha, potentials, todo, end[todo])  # (todo, longest)
            p = np.exp(log_p - log_p.max(axis=1, keepdims=True)).cumsum(axis=1)
            end[todo] -= 1 + (p <= chance[last, None] * p[:, -1:]).sum(axis=1)
        return z


def _ending_at(alpha: np.ndarray, potentials: np.ndarray, sentence: np.ndarray, end: np.ndarray) -> np.ndarray:
    """log weight of the last phrase having l + 1 words, for the first `end` words of each sentence."""
    l = np.arange(potentials.shape[2])
    begin = end[:, None] - 1 - l
    inside = np.maximum(begin, 0)
    value: np.ndarray = alpha[sentence[:, None], inside] + potentials[sentence[:, None], inside, l]
    return np.where(begin >= 0, value, -np.inf)


def _forward(potentials: Tensor) -> Tensor:
    S, T, L = potentials.shape
    alpha = [potentials.new_zeros(S)]
    for t in range(T):
        l = torch.arange(min(t + 1, L))  # phrases of l + 1 words that end at word t
        before = torch.stack(alpha[: -len(l) - 1 : -1], dim=1)
        alpha.append(torch.logsumexp(before + potentials[:, t - l, l], dim=1))
    return torch.stack(alpha, dim=1)


def _backward(potentials: Tensor, lengths: Int64[Tensor, " sentences"]) -> Tensor:
    S, T, L = potentials.shape
    beta = potentials.new_full((S, T + 1), -torch.inf)
    beta[torch.arange(S), lengths] = 0
    for t in reversed(range(T)):
        l = torch.arange(min(T - t, L))
        step = torch.logsumexp(potentials[:, t, l] + beta[:, t + 1 + l], dim=1)
        beta[:, t] = torch.where(t < lengths, step, beta[:, t])
    return beta


def _places(batch: Batch) -> tuple[Int64[Tensor, " words"], Int64[Tensor, " words"]]:
    """Sentence of every word, and its place in it."""
    sentence = batch.sentence_of_word
    return torch.from_numpy(sentence), torch.from_numpy(np.arange(batch.n_words) - batch.sentence_offsets[sentence])


def prior_potentials(
    log_pi: Float[Tensor, " words"], log_not_pi: Float[Tensor, " words"], batch: Batch, longest: int
) -> Float[Tensor, "words longest"]:
    """log p of "no boundary inside, one at the end" at [a, l]; the end of a sentence is given and costs nothing."""
    final = torch.from_numpy(batch.sentence_final)
    ends = torch.where(final, 0, log_pi)
    left = torch.from_numpy(batch.sentence_offsets[1:])[torch.from_numpy(batch.sentence_of_word)]
    left = left - torch.arange(batch.n_words)
    result = log_pi.new_full((batch.n_words, longest), -torch.inf)
    inside = torch.zeros_like(log_pi)
    for l in range(longest):
        a = torch.nonzero(left > l).squeeze(1)
        result[a, l] = inside[a] + ends[a + l]
        inside[a] += log_not_pi[a + l]
    return result
