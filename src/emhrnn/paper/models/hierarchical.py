"""Networks that go from words to sentences, and from sentences to the document: HN-ATT, HN-AVE and HN-MAX, Conv-GRNN
and LSTM-GRNN."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import GRU, LSTM, Bidirectional
from emhrnn.models.model import Output
from emhrnn.paper.models.layers import AttentionPool, Table, WordNetwork, mean, weighted_sums
from emhrnn.paper.models.rows import AttentionConfig, HierarchyConfig
from emhrnn.shapes import Float, Int64

Pooling = Literal["attention", "mean", "max"]
Pool = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]  # rows and offsets of segments -> vectors, weights


class HAN(WordNetwork):
    r"""HAN, the hierarchical attention network: HN-ATT, HN-AVE and HN-MAX (Yang et al., NAACL 2016; docs/paper.md 4).

        x   x   x   x     x   x   x      word vectors
        |   |   |   |     |   |   |
        h1<>h1<>h1<>h1    h1<>h1<>h1     word BiGRU, restarted at each sentence
        \___________/     \_______/      pooling: attention alpha, mean or maximum
              s<-------------->s         sentence BiGRU: h3
              \________________/         pooling: attention gamma, mean or maximum
                       v
               softmax(W_c v + b_c)

        u_t = tanh(W_w h1_t + b_w)       alpha = softmax over the sentence of u_t . u_w        s = sum_t alpha_t h1_t
        u_i = tanh(W_s h3_i + b_s)       gamma = softmax over the document of u_i . u_s        v = sum_i gamma_i h3_i

    HN-AVE puts the mean and HN-MAX the maximum of each feature in place of both sums.

    Words and sentences by BiGRU, pooled by attention, mean or maximum.
    """

    def __init__(
        self,
        config: HierarchyConfig,
        *,
        table: Table,
        classes: int,
        generator: torch.Generator,
        pooling: Pooling = "attention",
    ) -> None:
        super().__init__(config, table)
        words, sentences = 2 * config.word_size, 2 * config.sentence_size
        self.word_layer = _bigru(self.embedding.size, config.word_size, generator)
        self.word_pool = _pool(config, pooling, words, generator)
        self.sentence_layer = _bigru(words, config.sentence_size, generator)
        self.sentence_pool = _pool(config, pooling, sentences, generator)
        self.output = dense(sentences, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        s, alpha = self.sentence_vectors(batch, generator)
        logits, v, gamma = self.classify(batch.document_offsets, s, generator)
        return Output(logits, v, alpha=alpha, gamma=gamma)

    def sentence_vectors(
        self, batch: Batch, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "sentences features"], Float[Tensor, " words"] | None]:
        """s of each sentence, which does not depend on the other sentences, and the weights of its words."""
        x = self.inputs(batch, generator)  # (words, size)
        h1 = self.dropped(self.word_layer(x, batch.sentence_offsets), generator)  # (words, 2 word_size)
        s, alpha = self.word_pool(h1, torch.from_numpy(batch.sentence_offsets))  # (sentences, 2 word_size)
        return s, alpha

    def classify(
        self,
        documents: Int64[np.ndarray, " documents_plus_1"],
        s: Float[Tensor, "sentences features"],
        generator: torch.Generator | None = None,
    ) -> tuple[
        Float[Tensor, "documents classes"], Float[Tensor, "documents v_features"], Float[Tensor, " sentences"] | None
    ]:
        """From the sentence vectors of documents, by their offsets, to logits, v and the weights gamma."""
        h3 = self.sentence_layer(s, documents)  # (sentences, 2 sentence_size)
        v, gamma = self.sentence_pool(h3, torch.from_numpy(documents))  # (documents, 2 sentence_size)
        v = self.dropped(v, generator)
        return self.output(v), v, gamma


def _pool(config: HierarchyConfig, pooling: Pooling, size: int, generator: torch.Generator) -> Pool:
    """Mean and maximum of each feature over each segment have no weights to show."""
    if pooling == "mean":
        return lambda h, offsets: (mean(h, offsets), None)
    if pooling == "max":
        return lambda h, offsets: (torch.segment_reduce(h, "max", offsets=offsets, axis=0), None)
    assert isinstance(config, AttentionConfig)
    return AttentionPool(size, config.attention_size, generator=generator)


def _bigru(inputs: int, size: int, generator: torch.Generator) -> Bidirectional:
    return Bidirectional(GRU(inputs, size, generator=generator), GRU(inputs, size, generator=generator))


class GRNN(WordNetwork):
    r"""Conv-GRNN and LSTM-GRNN: sentences by convolution or LSTM, documents by a gated RNN (Tang, Qin and Liu, EMNLP
    2015; docs/paper.md 5).

        x   x   x   x     x   x   x
        \___________/     \_______/      three convolutions of 1, 2 and 3 words, or the last state of an LSTM
              s<-------------->s         gated RNN, both directions: h3
              \________________/         mean
                       v
               softmax(W_c v + b_c)

        convolution:  s = 1/3 sum over w = 1, 2, 3 of tanh(mean over windows of W_w [x_t; ...; x_(t+w-1)] + b_w)
        gated RNN:   i, f = sigmoid(W [h_prev; s] + b)   g = tanh(W_r [h_prev; s] + b_r)    h = tanh(i * g + f * h_prev)

    A convolution without a non-linearity before its mean is the matrix applied to the mean window, so it costs one
    small product per sentence instead of one per word. A sentence shorter than a window is followed by zeros.

    The rows `conv-grnn` and `lstm-grnn`.
    """

    def __init__(
        self,
        config: HierarchyConfig,
        *,
        table: Table,
        classes: int,
        generator: torch.Generator,
        sentences: Literal["convolution", "lstm"],
    ) -> None:
        super().__init__(config, table)
        layer = WindowMeans if sentences == "convolution" else LastState
        self.word_layer = layer(self.embedding.size, config.word_size, generator=generator)
        self.sentence_forward = GatedRNN(config.word_size, config.sentence_size, generator=generator)
        self.sentence_backward = GatedRNN(config.word_size, config.sentence_size, generator=generator)
        self.output = dense(2 * config.sentence_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        x = self.inputs(batch, generator)  # (words, size)
        s = self.dropped(self.word_layer(x, batch.sentence_offsets), generator)  # (sentences, word_size)
        h3 = torch.cat(
            [
                self.sentence_forward(s, Order(batch.document_offsets)),
                self.sentence_backward(s, Order(batch.document_offsets, reverse=True)),
            ],
            dim=1,
        )  # (sentences, 2 sentence_size)
        v = self.dropped(mean(h3, torch.from_numpy(batch.document_offsets)), generator)
        return Output(self.output(v), v)


class WindowMeans(nn.Module):
    """Three linear convolutions, averaged over their windows, then tanh, then averaged."""

    def __init__(self, input_size: int, size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.filters = nn.ModuleList(dense(width * input_size, size, generator) for width in (1, 2, 3))

    def forward(
        self, x: Float[Tensor, "words size"], offsets: Int64[np.ndarray, " sentences_plus_1"]
    ) -> Float[Tensor, "sentences features"]:
        s = [
            torch.tanh(layer(_mean_window(x, offsets, width)))  # (sentences, features)
            for width, layer in enumerate(self.filters, start=1)
        ]
        return torch.stack(s).mean(0)


def _mean_window(
    x: Float[Tensor, "words size"], offsets: Int64[np.ndarray, " sentences_plus_1"], width: int
) -> Float[Tensor, "sentences wide"]:
    """The mean over a sentence's windows of the words at their 1st, 2nd, ... place, side by side."""
    lengths = np.diff(offsets)
    windows = np.repeat(np.maximum(lengths - width + 1, 1), lengths)  # (words,) how many its sentence has
    t = np.arange(len(x)) - np.repeat(offsets[:-1], lengths)  # (words,) position in the sentence
    rows, starts = torch.arange(len(x)), torch.from_numpy(offsets)
    places = [
        # the word at t stands at this place of the window that begins at t - place
        weighted_sums(x, torch.from_numpy(((place <= t) & (t < place + windows)) / windows).to(x.dtype), starts, rows)
        for place in range(width)
    ]
    return torch.cat(places, dim=1)


class LastState(nn.Module):
    """The last state of an LSTM over each sentence."""

    def __init__(self, input_size: int, size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.lstm = LSTM(input_size, size, generator=generator)

    def forward(
        self, x: Float[Tensor, "words size"], offsets: Int64[np.ndarray, " sentences_plus_1"]
    ) -> Float[Tensor, "sentences features"]:
        h: Tensor = self.lstm(x, Order(offsets))
        return h[torch.from_numpy(offsets[1:] - 1)]


class GatedRNN(nn.Module):
    """The gated RNN above, gates in the order i f r. Documents have few sentences, so autograd follows its steps."""

    def __init__(self, input_size: int, size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.input = dense(input_size, 3 * size, generator)
        bound = 1 / math.sqrt(size)
        self.state_weight = nn.Parameter(torch.empty(3 * size, size).uniform_(-bound, bound, generator=generator))

    def forward(self, s: Float[Tensor, "n D"], order: Order) -> Float[Tensor, "n H"]:
        gates = self.input(s)[order.rows]  # (n, 3H)
        size = self.state_weight.shape[1]
        h_prev: Tensor | None = None
        states = []
        for gates_t in torch.split(gates, order.batch_sizes.tolist()):
            if h_prev is not None:
                h_prev = h_prev[: len(gates_t)]
                gates_t = torch.addmm(gates_t, h_prev, self.state_weight.t())
            i, f = torch.sigmoid(gates_t[:, : 2 * size]).chunk(2, dim=1)
            mixed = i * torch.tanh(gates_t[:, 2 * size :])
            h_prev = torch.tanh(mixed if h_prev is None else mixed + f * h_prev)
            states.append(h_prev)
        return torch.cat(states)[order.inverse]
