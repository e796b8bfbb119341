"""The usual public HM-LSTM in PyTorch: a cell of matrix products and element-wise operations, called for every word and
layer in a Python loop over a padded batch, with autograd through all of it."""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch


class Bound(torch.autograd.Function):
    """1 where the hard sigmoid exceeds one half; straight-through."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        return (x > 0.5).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        return gradient


class HMLSTMCell(nn.Module):
    def __init__(self, below: int, size: int, above: int, *, last: bool) -> None:
        super().__init__()
        self.size, self.last = size, last
        rows = 4 * size + (not last)
        self.own = nn.Parameter(torch.randn(size, rows) / size**0.5)
        self.below = nn.Parameter(torch.randn(below, rows) / below**0.5)
        if not last:
            self.above = nn.Parameter(torch.randn(above, rows) / above**0.5)
        self.bias = nn.Parameter(torch.zeros(rows))

    def forward(
        self, c: Tensor, below: Tensor, h: Tensor, above: Tensor | None, z: Tensor, z_below: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        s = torch.mm(h, self.own) + z_below * torch.mm(below, self.below) + self.bias
        if not self.last:
            s = s + z * torch.mm(above, self.above)
        H = self.size
        f, i, o = (torch.sigmoid(s[:, k * H : (k + 1) * H]) for k in range(3))
        g = torch.tanh(s[:, 3 * H : 4 * H])
        ones = torch.ones_like(c)
        c_new = z * (i * g) + (ones - z) * (ones - z_below) * c + (ones - z) * z_below * (f * c + i * g)
        tanh_c = torch.tanh(c_new)
        h_new = z * o * tanh_c + (ones - z) * (ones - z_below) * h + (ones - z) * z_below * o * tanh_c
        if self.last:
            return h_new, c_new, torch.zeros_like(z)
        return h_new, c_new, Bound.apply(torch.clamp((s[:, 4 * H :] + 1) / 2, 0, 1))


class PublicHMLSTM(nn.Module):
    """Three layers and the gated output module, averaged over the words of the padded batch."""

    def __init__(self, table: Tensor, classes: int, hidden: int = 50, layers: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(table)
        self.cells = nn.ModuleList(
            HMLSTMCell(hidden if l else table.shape[1], hidden, hidden, last=l == layers - 1) for l in range(layers)
        )
        self.gate = nn.Linear(layers * hidden, layers)
        self.emit = nn.Linear(layers * hidden, hidden)
        self.output = nn.Linear(hidden, classes)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)  # (documents, words, size)
        layers, H = len(self.cells), self.gate.in_features // len(self.cells)
        h, c = ([x.new_zeros(len(x), H) for _ in range(layers)] for _ in range(2))
        z = [x.new_zeros(len(x), 1) for _ in range(layers)]
        one, emitted = x.new_ones(len(x), 1), []
        for t in range(x.shape[1]):
            for l, cell in enumerate(self.cells):
                below, z_below = (h[l - 1], z[l - 1]) if l else (x[:, t], one)
                above = None if cell.last else h[l + 1]
                h[l], c[l], z[l] = cell(c[l], below, h[l], above, z[l], z_below)
            states = torch.cat(h, dim=1)
            gates = torch.sigmoid(self.gate(states)).repeat_interleave(H, dim=1)
            emitted.append(torch.relu(self.emit(gates * states)))
        return self.output(torch.stack(emitted).mean(0))


def padded(batch: Batch) -> Tensor:
    """Word ids of every document, padded with 0 to the longest."""
    lengths = np.diff(batch.word_offsets)
    ids = np.zeros((batch.n_documents, lengths.max()), dtype=np.int64)
    ids[np.arange(lengths.max()) < lengths[:, None]] = batch.words
    return torch.from_numpy(ids)
