"""EM-HRNN as a program of `torch.export`: the same inputs and outputs as the ONNX graph, by torch's own operators only.

The forward pass of models/em_hrnn.py lays words out with numpy and computes in compiled kernels, which a program cannot
hold. Here the layout is tensors, too: a level is flat rows with the lengths of its segments, and a recurrence is a loop
over time in which the segments that have ended rest. The number of phrases is only known when they are cut, so arrays
of phrases have a row for every word; what lies behind the last phrase belongs to no sentence, and is cut off at the
end.
"""

from typing import no_type_check

import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

from emhrnn.layers.attention import AttentionPool
from emhrnn.layers.recurrent import Recurrent
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.ngrams import MIX, NGrams
from emhrnn.training.run import Run

Size = int | torch.SymInt  # while torch traces, sizes have names


class Program(nn.Module):
    """A run's model with learned boundaries, and its temperature."""

    def __init__(self, run: Run, model: EMHRNN) -> None:
        super().__init__()
        self.model, self.temperature, self.multi_label = model, run.temperature, run.multi_label

    def forward(self, words: Tensor, sentence_lengths: Tensor, document_lengths: Tensor) -> dict[str, Tensor]:
        model = self.model
        n, sentences, documents = words.shape[0], sentence_lengths.shape[0], document_lengths.shape[0]
        x = model.embedding(words)  # (words, size)
        h1 = _states(x, sentence_lengths, model.word_directions())  # (words, word_features)

        a = model.indicator(h1).squeeze(1)
        if model.pauses is not None:
            a = a + model.pauses.odds[0, words] + model.pauses.odds[1, nn.functional.pad(words, (-1, 1))]
        final = torch.zeros_like(words, dtype=torch.bool).index_fill(0, sentence_lengths.cumsum(0) - 1, True)
        z = (a > model.threshold) | final
        phrase = z.cumsum(0) - z.long()  # of each word
        if model.restart:
            phrase_lengths = torch.zeros_like(words).index_add(0, phrase, torch.ones_like(words))
            h1 = _states(x, phrase_lengths, model.word_directions())
        q, alpha = _pool(h1, phrase, n, model.word_attention)  # a row for every word
        in_sentence = _segment_of(sentence_lengths, n)
        phrase_counts = torch.zeros_like(sentence_lengths).index_add(0, in_sentence, z.long())
        h2 = _states(q, phrase_counts, [model.phrase_layer])
        p = model.phrase_features(h2, q)
        s, beta = _pool(p, _segment_of(phrase_counts, n), sentences + 1, model.phrase_attention)
        h3 = _states(s[:-1], document_lengths, [model.sentence_forward, model.sentence_backward])
        v, gamma = _pool(h3, _segment_of(document_lengths, sentences), documents, model.sentence_attention)

        logits = model.output(v)
        if model.ngrams is not None:
            logits = logits + _said(words, in_sentence, document_lengths, model.ngrams)
        logits = logits / self.temperature
        phrases = z.sum().item()  # a number that torch knows by name only
        torch._check(phrases >= 0)  # type: ignore[no-untyped-call]
        torch._check(phrases <= n)  # type: ignore[no-untyped-call]
        return {
            "probabilities": torch.sigmoid(logits) if self.multi_label else torch.softmax(logits, dim=1),
            "z": z, "pi": torch.sigmoid(a), "alpha": alpha, "beta": beta[:phrases], "gamma": gamma,
        }  # fmt: skip


def _segment_of(lengths: Tensor, rows: Size) -> Tensor:
    """The segment of each row; the number of segments for rows behind the last one."""
    return torch.searchsorted(lengths.cumsum(0), torch.arange(rows), right=True)  # type: ignore[arg-type]


def _pool(h: Tensor, segment: Tensor, count: Size, layer: AttentionPool) -> tuple[Tensor, Tensor]:
    """Attention within each segment: sums (count, features), and the weights of the rows."""
    scores = torch.tanh(nn.functional.linear(h, layer.weight, layer.bias)) @ layer.context
    highest = scores.new_full((count,), -torch.inf).scatter_reduce(0, segment, scores, "amax")
    weights = torch.exp(scores - highest[segment])
    weights = weights / scores.new_zeros(count).index_add(0, segment, weights)[segment]
    return h.new_zeros(count, h.shape[1]).index_add(0, segment, h * weights[:, None]), weights


def _said(words: Tensor, in_sentence: Tensor, document_lengths: Tensor, layer: NGrams) -> Tensor:
    """What words and pairs say by themselves: (documents, classes)."""
    documents = document_lengths.shape[0]
    document = torch.searchsorted(document_lengths.cumsum(0), in_sentence, right=True)  # of each word
    second = in_sentence == nn.functional.pad(in_sentence, (1, -1), value=-1)  # in the sentence of the word before
    mixed = nn.functional.pad(words, (1, -1)) * MIX[0] + words * MIX[1]
    pairs = layer.table[layer.vocabulary + mixed % layer.buckets] * second[:, None]
    scores = layer.table[words] + pairs
    lengths = torch.zeros_like(document_lengths).index_add(0, document, torch.ones_like(words))
    sums = scores.new_zeros(documents, scores.shape[1]).index_add(0, document, scores)
    return sums * lengths.to(scores.dtype).rsqrt()[:, None]


def _states(x: Tensor, lengths: Tensor, directions: list[Recurrent]) -> Tensor:
    """A recurrent layer over each segment, or a forward and a backward one: (rows, directions * hidden)."""
    return torch.cat([_scan(x, lengths, layer, backward=k == 1) for k, layer in enumerate(directions)], dim=1)


@no_type_check  # torch follows the loop's functions into whatever wraps them, type checkers too
def _scan(x: Tensor, lengths: Tensor, layer: Recurrent, *, backward: bool) -> Tensor:
    rows = x.shape[0]
    projection = nn.functional.linear(x, layer.input_weight, layer.bias)  # (rows, gates)
    projection = nn.functional.pad(projection, (0, 0, 0, 1))  # a last row, where segments that have ended rest
    starts = lengths.cumsum(0) - lengths
    longest = lengths.max()

    def goes_on(t, states, *state):
        return t < longest

    def step(t, states, *state):
        place = lengths - 1 - t if backward else t
        row = torch.where(t < lengths, starts + place, rows)
        state = layer.step(projection[row], state)
        return t + 1, states.index_copy(0, row, state[0]), *state

    zeros = [x.new_zeros(lengths.shape[0], layer.hidden_size) for _ in range(layer.cell.states)]
    first = (torch.zeros((), dtype=torch.int64), x.new_zeros(rows + 1, layer.hidden_size), *zeros)
    states: Tensor = while_loop(goes_on, step, first)[1]
    return states[:-1]
