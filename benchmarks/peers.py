"""What people write: EM-HRNN on torch's packed nn.LSTM, and the usual public HAN."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from emhrnn.corpus.batch import Batch
from emhrnn.layers.recurrent import LSTM
from emhrnn.paper.models.em_hrnn import EMHRNN


class PackedEMHRNN(nn.Module):
    """The same model with nn.LSTM on packed sequences and softmax by scatter: no padding, no kernel of ours."""

    def __init__(self, model: EMHRNN) -> None:
        super().__init__()
        self.model = model  # attention, indicator and output layers are shared
        self.word = packed_lstm(model.word_layer)
        self.phrase = packed_lstm(model.phrase_layer)
        self.forward_sentences = packed_lstm(model.sentence_forward)
        self.backward_sentences = packed_lstm(model.sentence_backward)

    def forward(self, batch: Batch, z: np.ndarray) -> Tensor:
        """Logits, from the words up."""
        model = self.model
        h1 = run(self.word, model.embedding(torch.from_numpy(batch.words)), batch.sentence_lengths)
        phrase = np.cumsum(z) - z
        q = pool(model.word_attention, h1, phrase)
        phrases = np.add.reduceat(z.astype(np.int64), batch.sentence_offsets[:-1])
        h2 = run(self.phrase, q, phrases)
        s = pool(model.phrase_attention, h2, np.repeat(np.arange(batch.n_sentences), phrases))
        sentences = np.diff(batch.document_offsets)
        h3 = torch.cat(
            [run(self.forward_sentences, s, sentences), run(self.backward_sentences, s, sentences, reverse=True)], dim=1
        )
        return model.output(pool(model.sentence_attention, h3, batch.document_of_sentence))


def packed_lstm(layer: LSTM) -> nn.LSTM:
    lstm = nn.LSTM(layer.input_weight.shape[1], layer.hidden_size)
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(layer.input_weight)
        lstm.weight_hh_l0.copy_(layer.state_weight)
        lstm.bias_ih_l0.copy_(layer.bias)
        lstm.bias_hh_l0.zero_()
    return lstm


def run(lstm: nn.LSTM, x: Tensor, lengths: np.ndarray, *, reverse: bool = False) -> Tensor:
    """Through a PackedSequence whose indices are computed without a loop, and back."""
    order = np.argsort(-lengths, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    t = np.arange(len(sequence)) - (np.cumsum(lengths) - lengths)[sequence]
    if reverse:
        t = lengths[sequence] - 1 - t
    sizes = np.bincount(t)
    place = (np.cumsum(sizes) - sizes)[t] + rank[sequence]
    packed = np.empty_like(place)
    packed[place] = np.arange(len(place))
    h = lstm(PackedSequence(x[torch.from_numpy(packed)], torch.from_numpy(sizes)))[0].data
    return h[torch.from_numpy(place)]


def pool(attention: nn.Module, h: Tensor, segment: np.ndarray) -> Tensor:
    scores = torch.tanh(nn.functional.linear(h, attention.weight, attention.bias)) @ attention.context
    index = torch.from_numpy(segment)
    n = int(segment[-1]) + 1
    highest = scores.new_full((n,), -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    weight = torch.exp(scores - highest[index])
    total = weight.new_zeros(n).index_add(0, index, weight)
    return h.new_zeros(n, h.shape[1]).index_add(0, index, h * weight[:, None]) / total[:, None]


class PublicHAN(nn.Module):
    """The usual public HAN: a padded cube of word ids (documents, sentences, words), cut at the 80 % quantiles of
    both lengths, and a Python loop over the sentences."""

    def __init__(self, table: Tensor, classes: int, hidden: int = 50) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(table)
        self.word_gru = nn.GRU(table.shape[1], hidden, bidirectional=True)
        self.word_linear = nn.Linear(2 * hidden, 2 * hidden)
        self.word_context = nn.Parameter(0.05 * torch.randn(2 * hidden, 1))
        self.sentence_gru = nn.GRU(2 * hidden, hidden, bidirectional=True)
        self.sentence_linear = nn.Linear(2 * hidden, 2 * hidden)
        self.sentence_context = nn.Parameter(0.05 * torch.randn(2 * hidden, 1))
        self.output = nn.Linear(2 * hidden, classes)

    def forward(self, cube: Tensor) -> Tensor:
        sentences = []
        for ids in cube.permute(1, 2, 0):  # (words, documents)
            h, _ = self.word_gru(self.embedding(ids))
            weights = torch.softmax(torch.tanh(self.word_linear(h)) @ self.word_context, dim=0)
            sentences.append((weights * h).sum(0, keepdim=True))
        h, _ = self.sentence_gru(torch.cat(sentences))
        weights = torch.softmax(torch.tanh(self.sentence_linear(h)) @ self.sentence_context, dim=0)
        return self.output((weights * h).sum(0))


def cube(batch: Batch, quantile: float = 0.8) -> Tensor:
    """Word ids padded with 0 and cut at the quantiles of sentence length and of sentences per document."""
    words = int(np.quantile(batch.sentence_lengths, quantile))
    sentences = int(np.quantile(np.diff(batch.document_offsets), quantile))
    padded = np.zeros((batch.n_documents, sentences, words), dtype=np.int64)
    sentence = batch.sentence_of_word
    document = batch.document_of_sentence[sentence]
    i, j = sentence - batch.document_offsets[document], np.arange(batch.n_words) - batch.sentence_offsets[sentence]
    fits = (i < sentences) & (j < words)
    padded[document[fits], i[fits], j[fits]] = batch.words[fits]
    return torch.from_numpy(padded)
