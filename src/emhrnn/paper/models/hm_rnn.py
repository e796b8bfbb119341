r"""HM-RNN, and the layers that it is made of, which MHS-RNN shares: LSTM layers that decide when the next runs, the
HM-LSTM of Chung, Ahn and Bengio (ICLR 2017; docs/paper.md 3), step by step over the words and all sequences of a batch
at once.

    h3  ------------------ h3 ------     top: COPY until the layer below ends a unit, then UPDATE
             z2 = 0       z2 = 1
    h2  ----- h2 --------- h2 ------     UPDATE at an end below, COPY elsewhere, FLUSH after its own end
       z1 = 1    z1 = 0   z1 = 1
    h1 -- h1 -- h1 -- h1 -- h1 -----     bottom: UPDATE at every word, FLUSH after its own end

With a = z^l_(t-1), the layer's own end before, and b = z^(l-1)_t, the end below now (bottom: b = 1; top: a = 0):

    gates i f g o and x_z = state_weight h^l_(t-1) + a above_weight h^(l+1)_(t-1) + b below_weight h^(l-1)_t + bias
    c = (1-a)(1-b) c_prev  +  (1-a) b (f c_prev)  +  (1 - (1-a)(1-b)) i g         COPY + UPDATE + both UPDATE and FLUSH
    h = (1-a)(1-b) h_prev  +  (1 - (1-a)(1-b)) o tanh(c)
    z = 1[x_z > 0]                                                               straight-through, see below

The terms with a and b are products, so the formulas are differentiable in them; these are the gradients that the
detectors get. The native kernels (multiscale.h) go back by hand; without a compiler autograd follows the steps.

The detector: pi = hardsigm(x) = max(0, min(1, (slope x + 1) / 2)), z = 1[pi > 0.5], which is 1[x > 0]. Backward, the
step is taken for the identity: dz/dx = slope / 2 while 0 < pi < 1, else 0. The slope grows with the epochs, so that pi
comes closer to z and the gradient to the truth.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.native.library import Kernels
from emhrnn.layers.native.torch_kernels import check_gates, kernels_for
from emhrnn.layers.order import Order
from emhrnn.models.model import Output
from emhrnn.paper.models.layers import Table, WordNetwork, mean
from emhrnn.paper.models.rows import HMRNNConfig
from emhrnn.shapes import Bool, Float

FIRST_SLOPE, LAST_SLOPE, PER_EPOCH = 1.0, 5.0, 0.04
# Gradients of gates before activation are clipped, as Graves (arXiv 1308.0850) does: they may grow from word to word
# beyond all numbers. The loss is a mean over documents, so that sound gradients are far smaller.
LIMIT = 1.0


def annealed_slope(epoch: int) -> float:
    """1 at first, 5 after a hundred epochs."""
    return min(LAST_SLOPE, FIRST_SLOPE + PER_EPOCH * epoch)


def hard_sigmoid(x: Float[Tensor, "*shape"], slope: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
    """pi of the detector."""
    return ((slope * x + 1) / 2).clamp(0, 1)


@dataclass(frozen=True)
class Wiring:
    """How the layers are connected. `flush_own` keeps a layer's own state, too, out of the gates after its own end
    (MHS-RNN); HM-RNN lets it in."""

    layers: int
    size: int
    flush_own: bool = False

    def sources(self, layer: int) -> tuple[str, ...]:
        """What the gates of a layer read, in the order of the columns of its weight."""
        above = ("above",) if layer < self.layers - 1 else ()
        below = ("below",) if layer > 0 else ()
        return ("own", *above, *below)

    def has_detector(self, layer: int) -> bool:
        """All layers but the top have one."""
        return layer < self.layers - 1

    def columns(self, layer: int, source: str) -> slice:
        """The columns of the layer's weight that read this source."""
        at = self.sources(layer).index(source)
        return slice(at * self.size, (at + 1) * self.size)


def multiscale_states(
    projection: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    order: Order,
    wiring: Wiring,
    forced: Bool[Tensor, " n"] | None = None,
) -> tuple[Float[Tensor, "n layers H"], Float[Tensor, "n detectors"]]:
    """States h of every layer and detector inputs x_z of every layer but the top, in flat order; x_z has no gradient.

    `projection` is the bottom layer's input term with its bias; weights[l] (gates, sources * H) reads the sources of
    layer l; biases are those of the layers above the bottom. Where `forced`, z of the bottom layer is 1 whatever its
    detector says, and the detector gets no gradient.
    """
    if kernels := kernels_for(projection, *weights, slope):
        return _native_states(kernels, projection, weights, biases, slope, order, wiring, forced)
    H, sizes = wiring.size, order.batch_sizes.tolist()
    must = torch.zeros(len(projection), dtype=torch.bool) if forced is None else forced
    rows = zip(*(torch.split(x[order.rows], sizes) for x in (projection, must)), strict=True)
    h = c = [projection.new_zeros(sizes[0], H)] * wiring.layers
    z = [projection.new_zeros(sizes[0], 1)] * wiring.layers  # the top layer's stays 0
    all_h, all_x = [], []
    for projected, ends in rows:
        h, c, z = ([state[: len(projected)] for state in states] for states in (h, c, z))
        h, c, z, x_z = _step(wiring, projected, weights, biases, slope, ends.unsqueeze(1), h, c, z)
        all_h.append(torch.stack(h, dim=1))
        all_x.append(torch.cat(x_z, dim=1).detach())
    return torch.cat(all_h)[order.inverse], torch.cat(all_x)[order.inverse]


def _step(
    wiring: Wiring,
    projected: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    forced: Bool[Tensor, "n 1"],
    before_h: list[Tensor],
    before_c: list[Tensor],
    before_z: list[Tensor],
) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
    """h, c, z and x_z of all layers at one word of each sequence."""
    H = wiring.size
    h, c, z, inputs = list[Tensor](), list[Tensor](), list[Tensor](), list[Tensor]()
    for l, (h_prev, c_prev, a) in enumerate(zip(before_h, before_c, before_z, strict=True)):
        b = z[l - 1] if l > 0 else torch.ones_like(a)
        read = {"own": (1 - a) * h_prev if wiring.flush_own else h_prev}
        if wiring.has_detector(l):
            read["above"] = a * before_h[l + 1]
        if l > 0:
            read["below"] = b * h[l - 1]
        s = (projected if l == 0 else biases[l - 1]) + torch.cat(list(read.values()), dim=1) @ weights[l].t()
        if s.requires_grad:
            s.register_hook(lambda gradient: gradient.clamp(-LIMIT, LIMIT))  # type: ignore[no-untyped-call]
        i, f, g, o = s[:, : 4 * H].chunk(4, dim=1)
        copy = (1 - a) * (1 - b)
        c.append(
            copy * c_prev + (1 - a) * b * torch.sigmoid(f) * c_prev + (1 - copy) * torch.sigmoid(i) * torch.tanh(g)
        )
        h.append(copy * h_prev + (1 - copy) * torch.sigmoid(o) * torch.tanh(c[l]))
        if wiring.has_detector(l):
            inputs.append(s[:, 4 * H :])
            pi = hard_sigmoid(inputs[l], slope)
            end = (inputs[l] > 0).to(pi.dtype) + pi - pi.detach()  # straight-through
            z.append(torch.where(forced, torch.ones_like(end), end) if l == 0 else end)
        else:
            z.append(torch.zeros_like(a))
    return h, c, z, inputs


def _native_states(
    kernels: Kernels,
    projection: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    order: Order,
    wiring: Wiring,
    forced: Bool[Tensor, " n"] | None,
) -> tuple[Float[Tensor, "n layers H"], Float[Tensor, "n detectors"]]:
    if len(projection) != order.n_rows or (forced is not None and len(forced) != order.n_rows):
        raise IndexError(f"{len(projection)} input rows for offsets that end at {order.n_rows}")
    check_gates(projection, weights[0])
    forced = None if forced is None else forced.contiguous()
    h, x_z = _Multiscale.apply(  # type: ignore[no-untyped-call]
        kernels, order, wiring, forced, slope, projection.contiguous(), *weights, *biases
    )
    return h, x_z


class _Multiscale(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        order: Order,
        wiring: Wiring,
        forced: Tensor | None,
        slope: Tensor,
        projection: Tensor,
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor]:
        n, layers, H, flush_own = len(projection), wiring.layers, wiring.size, wiring.flush_own
        weights = torch.cat([weight.flatten() for weight in parameters[:layers]])
        gates, c, h = (projection.new_empty(n, layers, columns) for columns in (4 * H + 1, H, H))
        kernels.call(
            "multiscale_forward", *order.native[:3], layers, H, int(flush_own), projection, weights,
            torch.cat(parameters[layers:]), forced, gates, c, h, torch.get_num_threads(),
        )  # fmt: skip
        ctx.kernels, ctx.order, ctx.sizes = kernels, order, (layers, H, int(flush_own))
        ctx.shapes = [weight.shape for weight in parameters[:layers]]
        ctx.save_for_backward(slope, weights, forced, gates, c, h)
        x_z = gates[:, :-1, 4 * H].clone()
        ctx.mark_non_differentiable(x_z)
        return h, x_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        slope, weights, forced, gates, c, h = ctx.saved_tensors
        padded = [(rows, ctx.kernels.padded_columns(columns + 1)) for rows, columns in ctx.shapes]
        d_projection = h.new_empty(len(h), ctx.shapes[0][0])
        d_weights = h.new_empty(sum(rows * columns for rows, columns in padded))
        ctx.kernels.call(
            "multiscale_backward", *ctx.order.native[:3], *ctx.sizes, weights, forced, gates, c, h, slope,
            dh.contiguous(), d_projection, d_weights, torch.get_num_threads(),
        )  # fmt: skip
        by_layer = d_weights.split([rows * columns for rows, columns in padded])
        by_layer = [part.view(shape) for part, shape in zip(by_layer, padded, strict=True)]
        d_w = [part[:, :columns] for part, (_, columns) in zip(by_layer, ctx.shapes, strict=True)]
        d_b = [part[:, columns] for part, (_, columns) in zip(by_layer[1:], ctx.shapes[1:], strict=True)]
        return *[None] * 5, d_projection, *d_w, *d_b


class HMRNN(WordNetwork):
    r"""HM-RNN: a hierarchical multiscale LSTM reads the document and finds its units by itself (Chung, Ahn and Bengio,
    ICLR 2017; docs/paper.md 3). Sentence ends are not given to it.

        x   x   x   x   x   x   x     word vectors
        |   |   |   |   |   |   |
        three layers as above; z1 and z2 say where a unit of layer 1 and 2 ends
        |   |   |   |   |   |   |
        e   e   e   e   e   e   e     output module
        \_______________________/     mean
                    v
           softmax(W_c v + b_c)

        g^l = sigmoid(w^l . [h^1; h^2; h^3])        e = ReLU(sum_l g^l W_l h^l)

    The paper models language; reading documents with the mean of e is our use of it.

    The row `hm-rnn`.
    """

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
