r"""MHS-RNN, plain and with attention: mixed hierarchical structures (Luo and Zhu 2021, arXiv 2106.02562;
docs/paper.md 2). Sentence ends are given, phrase ends are found by a detector with a straight-through gradient.

    x   x   x   x   x   x   x     word vectors
    |   |   |   |   |   |   |
    h1--h1  h1--h1--h1  h1--h1    word layer; after an end it starts again from the phrase state
        |           |       |
        h2----------h2------h2    phrase layer: a step at every end, else it waits
        z=1         z=1     z=1   the end of a sentence is always one; there both layers start from zero
    \_________________________/
                 s                the last h2; with attention: over all h1 and the h2 at the ends of the sentence
                 s <----> s       sentence BiLSTM: h3
                 \________/       mean; with attention: gamma
                     v
            softmax(W_c v + b_c)

    m = (1 - z_(t-1)) h1_(t-1) + z_(t-1) h2_(t-1)
    gates and x_z = W m + U x_t + b          one matrix W for both states, as in the paper's detector
    c1 = (1 - z_(t-1)) f c1_(t-1) + i g      h1 = o tanh(c1)      z = 1[x_z > 0], 1 at the sentence end
    h2, c2 = LSTM(h1; h2, c2) where z = 1, else as before

This is the two-layer case of hm_rnn.py with sentences for sequences, the word layer's own state flushed and
its two matrices tied. No code of the paper exists; this is our reading.
"""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM, Bidirectional
from emhrnn.models.model import Output
from emhrnn.paper.models.hm_rnn import Wiring, annealed_slope, hard_sigmoid, multiscale_states
from emhrnn.paper.models.layers import AttentionPool, Table, WordNetwork, mean
from emhrnn.paper.models.rows import AttentionConfig, HierarchyConfig
from emhrnn.shapes import Bool, Float

# Gain of the phrase layer's first weights from the word layer, whose states begin at a tenth of their range: with the
# usual weights phrases would begin at a fifth of that, and what the labels say would reach the words after epochs. With
# attention words reach the sentence directly, and larger initial phrase states bring no gain.
HEARD = 4.0


class MHSRNN(WordNetwork):
    """The rows `mhs-rnn` and `mhs-rnn-att`."""

    slope: Tensor

    def __init__(self, config: HierarchyConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        """Settings of mhs-rnn-att make it pool by attention."""
        super().__init__(config, table)
        word_size, sentence_size = config.word_size, config.sentence_size
        attention_size = config.attention_size if isinstance(config, AttentionConfig) else 0
        self.wiring = Wiring(layers=2, size=word_size, flush_own=True)
        self.input = dense(self.embedding.size, 4 * word_size + 1, generator)
        self.word_weight = nn.Parameter(_uniform(4 * word_size + 1, word_size, generator))  # W, read by m
        self.phrase_weight = nn.Parameter(_uniform(4 * word_size, 2 * word_size, generator))  # h2 before, h1 now
        self.phrase_bias = nn.Parameter(torch.zeros(4 * word_size))
        with torch.no_grad():
            for bias in (self.input.bias, self.phrase_bias):
                bias[word_size : 2 * word_size] = 1  # forget gates start open
            if not attention_size:
                for gate in torch.split(self.phrase_weight[:, word_size:], word_size):
                    nn.init.orthogonal_(gate, gain=HEARD, generator=generator)
        self.sentence_layer = Bidirectional(
            LSTM(word_size, sentence_size, generator=generator), LSTM(word_size, sentence_size, generator=generator)
        )
        self.word_phrase_attention, self.sentence_attention = (
            AttentionPool(size, attention_size, generator=generator) if attention_size else None
            for size in (word_size, 2 * sentence_size)
        )
        self.output = dense(2 * sentence_size, classes, generator)
        self.register_buffer("slope", torch.ones(()))

    def set_epoch(self, epoch: int) -> None:
        """The detector's slope grows with the epochs."""
        self.slope.fill_(annealed_slope(epoch))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on. With attention, alpha and beta are the weights of words and phrases in the
        one softmax of their sentence: together they sum to 1."""
        x = self.inputs(batch, generator)  # (words, size)
        h, x_z = multiscale_states(
            self.input(x),
            [self.word_weight.repeat(1, 2), self.phrase_weight],
            [self.phrase_bias],
            self.slope,
            Order(batch.sentence_offsets),
            self.wiring,
            forced=torch.from_numpy(batch.sentence_final),
        )  # (words, 2, word_size)
        (h1, h2), x_z = h.unbind(1), x_z.squeeze(1)
        z = (x_z > 0).numpy() | batch.sentence_final
        alpha = beta = gamma = None
        if self.word_phrase_attention is None:
            s = h2[torch.from_numpy(batch.sentence_offsets[1:] - 1)]  # (sentences, word_size)
        else:
            s, alpha, beta = _attend_both(self.word_phrase_attention, h1, h2, z, batch)
        s = self.dropped(s, generator)
        h3 = self.sentence_layer(s, batch.document_offsets)  # (sentences, 2 sentence_size)
        documents = torch.from_numpy(batch.document_offsets)
        if self.sentence_attention is None:
            v = mean(h3, documents)
        else:
            v, gamma = self.sentence_attention(h3, documents)
        v = self.dropped(v, generator)
        pi = hard_sigmoid(x_z, self.slope)
        return Output(self.output(v), v, z=z, alpha=alpha, beta=beta, gamma=gamma, pi=pi, joint=True)


def _attend_both(
    attention: AttentionPool,
    h1: Float[Tensor, "words H"],
    h2: Float[Tensor, "words H"],
    z: Bool[np.ndarray, " words"],
    batch: Batch,
) -> tuple[Float[Tensor, "sentences H"], Float[Tensor, " words"], Float[Tensor, " phrases"]]:
    """One softmax over the words and the phrases of each sentence."""
    ends = np.flatnonzero(z)  # (phrases,)
    sentence = np.concatenate([batch.sentence_of_word, batch.sentence_of_word[ends]])
    order = np.argsort(sentence, kind="stable")  # a sentence's words, then its phrases
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sentence))])
    rows = torch.cat([h1, h2[torch.from_numpy(ends)]])[torch.from_numpy(order)]
    s, weights = attention(rows, torch.from_numpy(offsets))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    unsorted = weights[torch.from_numpy(place)]
    return s, unsorted[: len(h1)], unsorted[len(h1) :]


def _uniform(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    bound = columns**-0.5
    return torch.empty(rows, columns).uniform_(-bound, bound, generator=generator)
