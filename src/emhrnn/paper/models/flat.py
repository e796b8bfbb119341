"""Networks that read a document as one sequence of words, and take no notice of where sentences end: LSTM and
CNN-word."""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM
from emhrnn.models.output import Output
from emhrnn.paper.models.layers import Table, WordNetwork, mean
from emhrnn.paper.models.rows import CNNWordConfig, FlatConfig
from emhrnn.shapes import Float, Int64


class MeanLSTM(WordNetwork):
    r"""LSTM: one long LSTM over the document, and the mean of its states (Zhang et al., NIPS 2015; docs/paper.md 5).

        x   x   x   x   x   x   x     word vectors
        |   |   |   |   |   |   |
        h---h---h---h---h---h---h     LSTM over the whole document, sentences unseen
        \_______________________/     mean
                    v
           softmax(W_c v + b_c)

        i, f, o = sigmoid(W x_t + U h_(t-1) + b)      g = tanh(W_g x_t + U_g h_(t-1) + b_g)
        c_t = f c_(t-1) + i g      h_t = o tanh(c_t)      v = 1/T sum_t h_t

    The plainest recurrent model: words far back reach v by the mean, not through many steps.

    The row `lstm`.
    """

    def __init__(self, config: FlatConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, table)
        self.word_layer = LSTM(self.embedding.size, config.word_size, generator=generator)
        self.output = dense(config.word_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        x = self.inputs(batch, generator)  # (words, size)
        h = self.word_layer(x, Order(batch.word_offsets))  # (words, word_size)
        v = self.dropped(mean(h, torch.from_numpy(batch.word_offsets)), generator)  # (documents, word_size)
        return Output(self.output(v), v)


WIDTHS = (7, 7, 3, 3, 3, 3)
POOLED = (True, True, False, False, False, True)
POOL = 3


class CNNWord(WordNetwork):
    """CNN-word: a deep convolution over the first words of a document (Zhang et al., NIPS 2015; docs/paper.md 5).

        x x x x ... x 0 0       the first `length` words, zeros behind the end
        conv 7  pool 3
        conv 7  pool 3
        conv 3
        conv 3
        conv 3
        conv 3  pool 3          (length - 96) / 27 frames of `features` features
        dense - dropout - dense - dropout
        softmax(W_c v + b_c)

        convolution:  h_t = ReLU(sum over j < width of W_j x_(t+j) + b)      pooling: the maximum of three neighbours

    ReLU after every dense layer, too. Zhang's small network has 256 features and dense layers of 1,024, his large one
    1,024 and 2,048, for millions of documents; ours has 64 and 256, as the other rows' layers have 50 where their
    papers have hundreds. A fixed length is part of this model: words behind it are not read. 231 words make five frames
    and hold most reviews.

    It starts without regard to place: the taps of a filter are equal, and so are the frames that the first dense layer
    reads. With random taps a word at another place reaches the output with another sign, its gradients do not add up,
    and the network memorises its documents and learns nothing else (Zhang had hundreds of thousands; we may have
    hundreds).

    The row `cnn-word`.
    """

    def __init__(self, config: CNNWordConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, table)
        features, dense_size, length = config.features, config.dense_size, config.length
        self.length = length
        sizes = [self.embedding.size] + [features] * len(WIDTHS)
        self.convolutions = nn.ModuleList(
            _convolution(inputs, features, width, generator) for inputs, width in zip(sizes, WIDTHS, strict=False)
        )
        self.first = dense(_frames(length) * features, dense_size, generator)
        self.second = dense(dense_size, dense_size, generator)
        with torch.no_grad():
            frames = self.first.weight.view(dense_size, features, -1)
            frames.copy_(_without_place(frames, generator))
        self.output = dense(dense_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        x = self.embedding(torch.from_numpy(batch.words))  # (words, size)
        h = torch.cat([x.new_zeros(1, x.shape[1]), x])[_padded(batch.word_offsets, self.length)]
        h = h.transpose(1, 2)  # (documents, size, length)
        for convolution, pooled in zip(self.convolutions, POOLED, strict=True):
            h = torch.relu(convolution(h))
            if pooled:
                h = nn.functional.max_pool1d(h, POOL)
        v = self.dropped(torch.relu(self.first(h.flatten(1))), generator)  # (documents, dense_size)
        v = self.dropped(torch.relu(self.second(v)), generator)
        return Output(self.output(v), v)


def _padded(offsets: Int64[np.ndarray, " documents_plus_1"], length: int) -> Int64[Tensor, "documents length"]:
    """Which row each place of the rectangle reads: 0 behind a document's end, else 1 + the word's row."""
    place = np.arange(length)
    rows = offsets[:-1, None] + place
    return torch.from_numpy(np.where(rows < offsets[1:, None], rows + 1, 0))


def _frames(length: int) -> int:
    """Frames that leave the last pooling."""
    frames = length
    for width, pooled in zip(WIDTHS, POOLED, strict=True):
        frames -= width - 1
        if pooled:
            frames //= POOL
    return frames


def _convolution(inputs: int, outputs: int, width: int, generator: torch.Generator) -> nn.Conv1d:
    layer: nn.Conv1d = nn.utils.skip_init(nn.Conv1d, inputs, outputs, width)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        layer.weight.copy_(_without_place(layer.weight, generator))
        layer.bias.zero_()  # type: ignore[union-attr]
    return layer


def _without_place(
    weight: Float[Tensor, "outputs inputs width"], generator: torch.Generator
) -> Float[Tensor, "outputs inputs width"]:
    """First values, equal over the width. The weights of an output sum to zero: inputs behind a ReLU have a positive
    mean, which six layers would raise until all documents looked alike."""
    outputs, inputs, width = weight.shape
    taps = torch.empty(outputs, inputs, 1).normal_(0, (inputs * width) ** -0.5, generator=generator)
    return (taps - taps.mean(1, keepdim=True)).expand(-1, -1, width)
