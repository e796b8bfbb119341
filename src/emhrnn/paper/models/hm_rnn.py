r"""HM-RNN: a hierarchical multiscale LSTM reads the document and finds its units by itself (Chung, Ahn and Bengio, ICLR
2017; docs/paper.md 3). Sentence ends are not given to it.

    x   x   x   x   x   x   x     word vectors
    |   |   |   |   |   |   |
    three layers of multiscale_lstm.py; z1 and z2 say where a unit of layer 1 and 2 ends
    |   |   |   |   |   |   |
    e   e   e   e   e   e   e     output module
    \_______________________/     mean
                v
       softmax(W_c v + b_c)

    g^l = sigmoid(w^l . [h^1; h^2; h^3])        e = ReLU(sum_l g^l W_l h^l)

The paper models language; reading documents with the mean of e is our use of it.
"""

import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.models.output import Output
from emhrnn.paper.models.attention import mean
from emhrnn.paper.models.embedding import Table, WordNetwork
from emhrnn.paper.models.multiscale_lstm import Wiring, annealed_slope, hard_sigmoid, multiscale_states
from emhrnn.paper.models.settings import HMRNNConfig
from emhrnn.shapes import Float


class HMRNN(WordNetwork):
    """The row `hm-rnn`."""

    slope: Tensor

    def __init__(self, config: HMRNNConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, table)
        layers, word_size = config.layers, config.word_size
        self.wiring = Wiring(layers, word_size)
        gates = [4 * word_size + self.wiring.has_detector(l) for l in range(layers)]
        self.input = dense(self.embedding.size, gates[0], generator)
        self.weights = nn.ParameterList(_weight(self.wiring, l, gates[l], generator) for l in range(layers))
        self.biases = nn.ParameterList(torch.zeros(gates[l]) for l in range(1, layers))
        with torch.no_grad():
            for bias in (self.input.bias, *self.biases):
                bias[word_size : 2 * word_size] = 1  # forget gates start open
        self.gate = dense(layers * word_size, layers, generator)
        self.emit = dense(layers * word_size, word_size, generator)
        self.output = dense(word_size, classes, generator)
        self.register_buffer("slope", torch.ones(()))

    def set_epoch(self, epoch: int) -> None:
        """The detectors' slope grows with the epochs."""
        self.slope.fill_(annealed_slope(epoch))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on. `z` and `pi` are those of the lowest layer; as for every model, a sentence's
        last word ends a phrase, whatever the detector says."""
        x = self.inputs(batch, generator)  # (words, size)
        h, x_z = multiscale_states(
            self.input(x), list(self.weights), list(self.biases), self.slope, Order(batch.word_offsets), self.wiring
        )
        e = self._emit(h)  # (words, word_size)
        v = self.dropped(mean(e, torch.from_numpy(batch.word_offsets)), generator)
        z = (x_z[:, 0] > 0).numpy() | batch.sentence_final
        return Output(self.output(v), v, z=z, pi=hard_sigmoid(x_z[:, 0], self.slope))

    def _emit(self, h: Float[Tensor, "words layers H"]) -> Float[Tensor, "words H"]:
        g = torch.sigmoid(self.gate(h.flatten(1)))  # (words, layers)
        return torch.relu(self.emit((h * g.unsqueeze(2)).flatten(1)))


def _weight(wiring: Wiring, layer: int, gates: int, generator: torch.Generator) -> nn.Parameter:
    """Orthogonal for the layer's own state, Glorot for the layers above and below."""
    H = wiring.size
    weight = torch.empty(gates, H * len(wiring.sources(layer)))
    for source in wiring.sources(layer):
        block = weight[:, wiring.columns(layer, source)]
        if source == "own":
            for gate in torch.split(block, H):
                nn.init.orthogonal_(gate, generator=generator)
        else:
            nn.init.xavier_uniform_(block, generator=generator)
    return nn.Parameter(weight)
