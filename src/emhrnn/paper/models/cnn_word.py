r"""CNN-word: a deep convolution over the first words of a document (Zhang et al., NIPS 2015; docs/paper.md 5).

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

ReLU after every dense layer, too. Zhang's small network has 256 features and dense layers of 1,024, his large one 1,024
and 2,048, for millions of documents; ours has 64 and 256, as the other rows' layers have 50 where their papers have
hundreds. A fixed length is part of this model: words behind it are not read. 231 words
make five frames and hold most reviews.

It starts without regard to place: the taps of a filter are equal, and so are the frames that the first dense layer
reads. With random taps a word at another place reaches the output with another sign, its gradients do not add up, and
the network memorises its documents and learns nothing else (Zhang had hundreds of thousands; we may have hundreds).
"""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.models.output import Output
from emhrnn.paper.models.embedding import Table, WordNetwork
from emhrnn.paper.models.settings import CNNWordConfig
from emhrnn.shapes import Float, Int64

WIDTHS = (7, 7, 3, 3, 3, 3)
POOLED = (True, True, False, False, False, True)
POOL = 3


class CNNWord(WordNetwork):
    """The row `cnn-word`."""

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
