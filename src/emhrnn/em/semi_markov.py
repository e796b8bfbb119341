"""Every gamma_t of the document in one pass, without blocks: an additive surrogate and forward-backward (SPEC E5).

log p(y | Z) is not a sum over phrases, but near the current Z it nearly is: log p(y | Z') ~ log p(y | Z) + the sum of
phi(a, b) over the phrases a..b of Z'. Then p(Z' | y, w) is a semi-Markov chain over each sentence, and forward-backward
gives all marginals, samples and the evidence in O(words x longest).

phi(a, b), for a phrase of words a..b in sentence i, is what its vector and its state change to first order:

    phi(a, b) = e^(score_ab) / B_i  < g_i, p_ab - s_i >  +  < lambda_b, state_ab - C_(b+1) >

    g_i        d log p / d s_i                        B_i   sum of e^score over the phrases of Z in the sentence
    C_a        (h2, c2) that a phrase starting at a would continue: Z cut after word a - 1
    state_ab   the phrase LSTM's step from C_a on the phrase vector q_ab
    p_ab       what attention pools of it, h2 or [h2; q_ab] of a model with skip; score_ab its attention score
    lambda_b   d log p / d (h2, c2) as it enters the phrase of Z that holds word b + 1; 0 at sentence ends

At Z' = Z all terms cancel, so the surrogate is exact there.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.em.likelihood import batch_labels
from emhrnn.layers.attention import attend
from emhrnn.layers.cell import cell_
from emhrnn.layers.lstm import LSTM
from emhrnn.layers.packing import pack
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.models.output import log_likelihood

LONGEST = 11  # the longest phrase that the paper found (SPEC A36)


@dataclass(frozen=True, eq=False)
class Expansion:
    """The model at the current Z, and its slopes."""

    log_p: Float[Tensor, " documents"]
    s: Float[Tensor, "sentences phrase_features"]
    log_mass: Float[Tensor, " sentences"]  # log B
    g: Float[Tensor, "sentences phrase_features"]
    entering: Float[Tensor, "phrases two_phrase_size"]  # (h2, c2) that each phrase of Z continues
    slope: Float[Tensor, "phrases two_phrase_size"]  # d log p / d entering


def expand(model: EMHRNN, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"]) -> Expansion:
    """One forward and one backward pass over the layers above the words."""
    phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentence_phrases = np.concatenate([[0], np.cumsum(z)])[batch.sentence_offsets]
    with torch.enable_grad():
        q = attend(states.h1.detach(), states.scores.detach(), torch.from_numpy(phrase_offsets))[0]
        nudge = q.new_zeros(len(q), 2 * model.phrase_layer.hidden_size, requires_grad=True)
        h2, entering = _nudged_lstm(model.phrase_layer, q, nudge, sentence_phrases)
        p = model.phrase_features(h2, q)
        scores = model.phrase_attention.scores(p)
        s, _ = attend(p, scores, torch.from_numpy(sentence_phrases))
        log_p = log_likelihood(model.classify(batch, s)[0], batch_labels(batch))
        slope, g = torch.autograd.grad(log_p.sum(), (nudge, s))
    log_mass = torch.segment_reduce(scores.detach().exp(), "sum", offsets=torch.from_numpy(sentence_phrases)).log()
    return Expansion(log_p.detach(), s.detach(), log_mass, g, entering.detach(), slope)


def _nudged_lstm(
    layer: LSTM,
    x: Float[Tensor, "phrases features"],
    nudge: Float[Tensor, "phrases two_hidden"],
    offsets: Int64[np.ndarray, " sequences_plus_1"],
) -> tuple[Float[Tensor, "phrases hidden"], Float[Tensor, "phrases two_hidden"]]:
    """The LSTM in plain steps, with `nudge` added to the state that enters each step: its gradient is that of the
    state. Returns h, and the states that entered."""
    packing = pack(offsets)
    H = layer.hidden_size
    projection = layer.project(x)[packing.order]
    nudge = nudge[packing.order]
    state = nudge.new_zeros(len(offsets) - 1, 2 * H)
    outputs, entered, start = [], [], 0
    for size in packing.batch_sizes.tolist():
        state = state[:size] + nudge[start : start + size]
        entered.append(state)
        gates = projection[start : start + size] + state[:, :H] @ layer.state_weight.t()
        state = torch.cat(_cell(gates, state[:, H:]), dim=1)
        outputs.append(state[:, :H])
        start += size
    return torch.cat(outputs)[packing.inverse], torch.cat(entered)[packing.inverse]


def _cell(
    gates: Float[Tensor, "n four_H"], c: Float[Tensor, "n H"]
) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n H"]]:
    i, f, g, o = gates.chunk(4, dim=1)
    c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
    return torch.sigmoid(o) * torch.tanh(c), c


@torch.no_grad()
def segment_scores(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    expansion: Expansion,
    longest: int = LONGEST,
) -> Float[Tensor, "words longest"]:
    """phi(a, a + l) at [a, l]; -inf where the phrase would leave its sentence."""
    layer, H = model.phrase_layer, model.phrase_layer.hidden_size
    phrase = torch.from_numpy(np.cumsum(z) - z)  # the phrase of Z that each word is in
    sentence = torch.from_numpy(batch.sentence_of_word)
    words = torch.arange(batch.n_words)
    left = torch.from_numpy(batch.sentence_offsets[1:])[sentence] - words  # words to the sentence's end, this included
    starts_phrase = torch.from_numpy(np.concatenate([[True], z[:-1]]))

    # exp of scores below the sentence's highest; the floor keeps sums of far lower scores from vanishing (SPEC 1.3 b)
    highest = torch.segment_reduce(states.scores.detach(), "max", offsets=torch.from_numpy(batch.sentence_offsets))
    weight = (states.scores.detach() - highest[sentence]).clamp(min=-30).exp()[:, None]
    # q is a weighted mean of word states, and what is linear in q the same mean of theirs: project words, not phrases
    h1, g = states.h1.detach(), expansion.g[sentence]
    weighted = h1 @ layer.input_weight.t() * weight  # (words, 4H)
    phrases = _GrowingPhrases(model, h1, g, weight)

    # C: from the start of Z's phrase to the word before. One step from the state that enters the phrase.
    begin = words[starts_phrase][phrase]
    context = expansion.entering[phrase].clone()
    inside = torch.nonzero(~starts_phrase).squeeze(1)
    q_part, _ = _partial_means(weighted, weight, begin, inside - 1)
    entering = expansion.entering[phrase[inside]]
    gates = q_part + layer.bias + entering[:, :H] @ layer.state_weight.t()
    context[inside] = torch.cat(_cell(gates, entering[:, H:]), dim=1)

    # what depends on a or on b alone
    gates_of_context = context[:, :H] @ layer.state_weight.t() + layer.bias
    c_of_context = context[:, H:].contiguous()
    log_mass = expansion.log_mass[sentence]
    g_s = (expansion.g * expansion.s).sum(1)[sentence]
    slope = torch.where((left > 1)[:, None], expansion.slope[phrase.roll(-1)], 0)  # of the phrase that holds b + 1
    slope_h, slope_c = slope[:, :H], slope[:, H:]
    slope_context = (slope * context.roll(-1, 0)).sum(1)

    phi = states.h1.new_full((batch.n_words, longest), -torch.inf)
    total, mass = torch.zeros_like(weighted), torch.zeros_like(weight)
    h, c = torch.empty_like(c_of_context), torch.empty_like(c_of_context)
    for l in range(min(longest, int(batch.sentence_lengths.max()))):
        # a runs over all words but the last l, and b = a + l; phrases that leave their sentence are masked at the end
        a, b = slice(0, batch.n_words - l), slice(l, batch.n_words)
        total[a] += weighted[b]
        mass[a] += weight[b]
        gates = (total[a] / mass[a]).add_(gates_of_context[a])
        cell_(gates, c_of_context[a], c[a], h[a])
        scores, value = phrases.grow(h[a], a, b, mass[a])
        share = (scores - log_mass[a]).exp_()
        own = share * (value - g_s[a])
        later = torch.linalg.vecdot(h[a], slope_h[b]) + torch.linalg.vecdot(c[a], slope_c[b]) - slope_context[b]
        phi[a, l] = torch.where(left[a] > l, own + later, -torch.inf)
    return phi


class _GrowingPhrases:
    """Attention score and < g, p > of phrases that grow by a word at a time. With skip q is in both; linear in q, its
    part is a weighted mean over the phrase's words."""

    def __init__(
        self,
        model: EMHRNN,
        h1: Float[Tensor, "words word_features"],
        g: Float[Tensor, "words phrase_features"],
        weight: Float[Tensor, "words 1"],
    ) -> None:
        H = model.phrase_layer.hidden_size
        attention = model.phrase_attention
        self._attention, self._state_weight, self._g = attention, attention.weight[:, :H], g[:, :H]
        self._weighted: Tensor | None = None
        if model.skip:
            of_words = [h1 @ attention.weight[:, H:].t(), torch.linalg.vecdot(h1, g[:, H:])[:, None]]
            self._weighted = torch.cat(of_words, dim=1) * weight  # (words, A + 1)
            self._total = torch.zeros_like(self._weighted)

    def grow(
        self, h: Float[Tensor, "n H"], a: slice, b: slice, mass: Float[Tensor, "n 1"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Words b join the phrases that begin at words a, whose states are now h."""
        value = torch.linalg.vecdot(h, self._g[a])
        if self._weighted is None:
            return self._attention.scores(h), value
        self._total[a] += self._weighted[b]
        of_q = self._total[a] / mass
        u = torch.tanh(nn.functional.linear(h, self._state_weight, self._attention.bias) + of_q[:, :-1])
        return u @ self._attention.context, value + of_q[:, -1]


def _partial_means(
    weighted: Float[Tensor, "words n"],
    weight: Float[Tensor, "words 1"],
    begin: Int64[Tensor, " words"],
    last: Int64[Tensor, " k"],
) -> tuple[Float[Tensor, "k n"], Float[Tensor, "k 1"]]:
    """Weighted mean over words begin[last] .. last."""
    length = last - begin[last] + 1
    offsets = torch.cat([length.new_zeros(1), length.cumsum(0)])
    index = torch.repeat_interleave(begin[last] - offsets[:-1], length) + torch.arange(int(offsets[-1]))

    def sums(values: Tensor) -> Tensor:
        return torch.nn.functional.embedding_bag(index, values, offsets, mode="sum", include_last_offset=True)

    mass = sums(weight)
    return sums(weighted) / mass, mass
