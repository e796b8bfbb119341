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
"""

import torch

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM
from emhrnn.models.output import Output
from emhrnn.paper.models.attention import mean
from emhrnn.paper.models.embedding import Table, WordNetwork
from emhrnn.paper.models.settings import LSTMConfig


class MeanLSTM(WordNetwork):
    """The row `lstm`."""

    def __init__(self, config: LSTMConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, table)
        self.word_layer = LSTM(self.embedding.size, config.word_size, generator=generator)
        self.output = dense(config.word_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        x = self.inputs(batch, generator)  # (words, size)
        h = self.word_layer(x, Order(batch.word_offsets))  # (words, word_size)
        v = self.dropped(mean(h, torch.from_numpy(batch.word_offsets)), generator)  # (documents, word_size)
        return Output(self.output(v), v)
