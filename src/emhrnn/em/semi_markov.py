"""Every gamma_t of the document in one pass, without blocks: an additive surrogate and forward-backward (SPEC E5).

log p(y | Z) is not a sum over phrases, but near the current Z it nearly is: log p(y | Z') ~ log p(y | Z) + the sum of
phi(a, b) over the phrases a..b of Z'. Then p(Z' | y, w) is a semi-Markov chain over each sentence, and forward-backward
gives all marginals, samples and the evidence in O(words x longest).

phi(a, b), for a phrase of words a..b in sentence i, is what its vector and its state change to first order:

    phi(a, b) = e^(score_ab) / B_i  < g_i, p_ab - s_i >  +  < lambda_b, state_ab - C_(b+1) >

    g_i        d log p / d s_i                        B_i   sum of e^score over the phrases of Z in the sentence
    C_a        the state that a phrase starting at a would continue: Z cut after word a - 1
    state_ab   the phrase layer's step from C_a on the phrase vector q_ab
    p_ab       what attention pools of it, h2 or [h2; q_ab] of a model with skip; score_ab its attention score
    lambda_b   d log p / d state as it enters the phrase of Z that holds word b + 1; 0 at sentence ends

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
from emhrnn.layers.packing import pack
from emhrnn.layers.recurrent import Recurrent
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
    entering: Float[Tensor, "phrases state"]  # that each phrase of Z continues: h2, and c2 of an LSTM beside it
    slope: Float[Tensor, "phrases state"]  # d log p / d entering


def expand(model: EMHRNN, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"]) -> Expansion:
    """One forward and one backward pass over the layers above the words."""
    assert states.inputs is None  # a phrase that grows by a word is read anew by a model that restarts
    phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentence_phrases = np.concatenate([[0], np.cumsum(z)])[batch.sentence_offsets]
    with torch.enable_grad():
        q = attend(states.h1.detach(), states.scores.detach(), torch.from_numpy(phrase_offsets))[0]
        layer = model.phrase_layer
        nudge = q.new_zeros(len(q), layer.cell.states * layer.hidden_size, requires_grad=True)
        h2, entering = _nudged(layer, q, nudge, sentence_phrases)
        p = model.phrase_features(h2, q)
        scores = model.phrase_attention.scores(p)
        s, beta = attend(p, scores, torch.from_numpy(sentence_phrases))
        log_p = log_likelihood(model.classify(batch, s, states.detach().d)[0], batch_labels(batch))
        slope, g = torch.autograd.grad(log_p.sum(), (nudge, s))
    # beta = e^score / B. Where it is highest it tells B best, and no score is too high or too low for that.
    highest, share = (
        torch.segment_reduce(values.detach(), "max", offsets=torch.from_numpy(sentence_phrases))
        for values in (scores, beta)
    )
    return Expansion(log_p.detach(), s.detach(), highest - share.log(), g, entering.detach(), slope)


def _nudged(
    layer: Recurrent,
    x: Float[Tensor, "phrases features"],
    nudge: Float[Tensor, "phrases state"],
    offsets: Int64[np.ndarray, " sequences_plus_1"],
) -> tuple[Float[Tensor, "phrases hidden"], Float[Tensor, "phrases state"]]:
    """The layer in plain steps, with `nudge` added to the state that enters each step: its gradient is that of the
    state. Returns h, and the states that entered."""
    packing = pack(offsets)
    projection = layer.project(x)[packing.order]
    nudge = nudge[packing.order]
    state = nudge.new_zeros(len(offsets) - 1, nudge.shape[1])
    outputs, entered, start = [], [], 0
    for size in packing.batch_sizes.tolist():
        state = state[:size] + nudge[start : start + size]
        entered.append(state)
        state = _step(layer, projection[start : start + size], state)
        outputs.append(state[:, : layer.hidden_size])
        start += size
    return torch.cat(outputs)[packing.inverse], torch.cat(entered)[packing.inverse]


def _step(
    layer: Recurrent, projection: Float[Tensor, "n gates"], state: Float[Tensor, "n state"]
) -> Float[Tensor, "n state"]:
    return torch.cat(layer.step(projection, torch.split(state, layer.hidden_size, dim=1)), dim=1)


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
    layer = model.phrase_layer
    cell, H = layer.cell, layer.hidden_size
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
    weighted = h1 @ layer.input_weight.t() * weight  # (words, gates)
    phrases = _GrowingPhrases(model, h1, g, weight)

    # C: from the start of Z's phrase to the word before. One step from the state that enters the phrase.
    begin = words[starts_phrase][phrase]
    context = expansion.entering[phrase].clone()
    inside = torch.nonzero(~starts_phrase).squeeze(1)
    q_part = _partial_means(weighted, weight, begin, inside - 1)
    entering = expansion.entering[phrase[inside]]
    context[inside] = _step(layer, q_part + layer.bias, entering)

    # what depends on a or on b alone
    before = tuple(state.contiguous() for state in torch.split(context, H, dim=1))
    gates_of_context = cell.opened(layer.bias.expand(batch.n_words, -1).clone())
    cell.of_state(gates_of_context).addmm_(before[0], cell.to_gates(layer.state_weight).t())
    log_mass = expansion.log_mass[sentence]
    g_s = (expansion.g * expansion.s).sum(1)[sentence]
    slope = torch.where((left > 1)[:, None], expansion.slope[phrase.roll(-1)], 0)  # of the phrase that holds b + 1
    slopes = torch.split(slope, H, dim=1)
    slope_context = (slope * context.roll(-1, 0)).sum(1)

    phi = states.h1.new_full((batch.n_words, longest), -torch.inf)
    total, mass = torch.zeros_like(weighted), torch.zeros_like(weight)
    now = tuple(torch.empty_like(state) for state in before)
    for l in range(min(longest, int(batch.sentence_lengths.max()))):
        # a runs over all words but the last l, and b = a + l; phrases that leave their sentence are masked at the end
        a, b = slice(0, batch.n_words - l), slice(l, batch.n_words)
        total[a] += weighted[b]
        mass[a] += weight[b]
        gates = cell.opened(total[a] / mass[a]).add_(gates_of_context[a])
        state = tuple(part[a] for part in now)
        cell.activate_(gates, tuple(part[a] for part in before), state)
        scores, value = phrases.grow(state[0], a, b, mass[a])
        share = (scores - log_mass[a]).exp_()
        own = share * (value - g_s[a])
        later = -slope_context[b]
        for part, of_part in zip(state, slopes, strict=True):
            later += torch.linalg.vecdot(part, of_part[b])
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
) -> Float[Tensor, "k n"]:
    """Weighted mean over words begin[last] .. last."""
    length = last - begin[last] + 1
    offsets = torch.cat([length.new_zeros(1), length.cumsum(0)])
    index = torch.repeat_interleave(begin[last] - offsets[:-1], length) + torch.arange(int(offsets[-1]))

    def sums(values: Tensor) -> Tensor:
        return torch.nn.functional.embedding_bag(index, values, offsets, mode="sum", include_last_offset=True)

    return sums(weighted) / sums(weight)
