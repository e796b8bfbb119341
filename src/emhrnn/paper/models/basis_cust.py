r"""BiLSTM + basis customisation: the classifier's matrix depends on who wrote the document and about what (Kim et al.,
TACL 2019; docs/paper.md 5).

    x   x   x   x   x   x      word vectors
    h<->h<->h<->h<->h<->h      BiLSTM over the whole document
    \___________________/      attention: v
               v
    softmax(W(m) v + b)        m = [user vector; product vector]

    beta = softmax(K tanh(W_m m + b_m))      W(m) = B_0 + sum_k beta_k B_k      few bases, so that rare users share them

`customize` says which weights depend on m:
    linear      W(m), the classifier's matrix (the paper's best, linear-basis-cust)
    bias        logits = W v + b + b(m): each basis is a vector of class biases
    attention   the attention's matrix:  u_t = tanh(W(m) h_t + b)
    word        the word vectors:        x_t <- tanh(W(m) x_t + b)
    encoder     all matrices of the BiLSTM (`customized_lstm`); several times slower than the others
"""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.attention import attend
from emhrnn.layers.dropout import dropout
from emhrnn.layers.linear import dense
from emhrnn.layers.packing import Packing, pack
from emhrnn.layers.recurrent import LSTM, Bidirectional
from emhrnn.models.embedding import WordEmbedding
from emhrnn.models.identity import IdVectors
from emhrnn.models.model import DocumentModel
from emhrnn.models.output import Output
from emhrnn.paper.models.settings import BasisCustConfig


class BasisCust(DocumentModel):
    """The row `basis-cust`."""

    def __init__(
        self,
        config: BasisCustConfig,
        *,
        table: Float[Tensor, "vocabulary size"],
        classes: int,
        generator: torch.Generator,
        users: int,
        products: int,
    ) -> None:
        """`users` and `products` are how many there are."""
        super().__init__()
        word_size, attention_size, bases = config.word_size, config.attention_size, config.bases
        ids, id_size, customize = config.ids, config.id_size, config.customize
        self.dropout = config.dropout
        self.customize = customize
        self.embedding = WordEmbedding(table, tuned=config.tune_embedding)
        self.users = IdVectors("user", users, id_size, used=ids, generator=generator)
        self.products = IdVectors("product", products, id_size, used=ids, generator=generator)
        self.query = dense(2 * id_size, id_size, generator)  # W_m, b_m
        self.keys = nn.Parameter(torch.empty(bases, id_size).normal_(0, id_size**-0.5, generator=generator))  # K

        size = self.embedding.size
        self.word_layer = Bidirectional(
            LSTM(size, word_size, generator=generator), LSTM(size, word_size, generator=generator)
        )
        self.attention = dense(2 * word_size, attention_size, generator)
        self.context = nn.Parameter(torch.empty(attention_size).normal_(0, attention_size**-0.5, generator=generator))
        self.output = dense(2 * word_size, classes, generator)  # B_0 and b
        self.word_map = dense(size, size, generator) if customize == "word" else None
        shape = {
            "linear": (classes, 2 * word_size),
            "bias": (classes, 1),
            "attention": (attention_size, 2 * word_size),
            "word": (size, size),
            "encoder": (2 * 4 * word_size, size + word_size),  # both directions
        }[customize]
        bound = shape[1] ** -0.5
        self.bases = nn.Parameter(torch.empty(bases, *shape).uniform_(-bound, bound, generator=generator))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on. The attention runs over the whole document; it is given as gamma, a sentence's
        share of it, and alpha, a word's share of its sentence."""
        beta = self._weights(batch)  # (documents, bases)
        document = torch.from_numpy(batch.document_of_sentence[batch.sentence_of_word])  # (words,)
        x = self.embedding(torch.from_numpy(batch.words))  # (words, size)
        if self.word_map is not None:
            x = torch.tanh(self.word_map(x) + self._customized(x, beta, document))
        x = dropout(x, self.dropout, generator)
        h = dropout(self._states(x, batch, beta), self.dropout, generator)  # (words, 2 word_size)
        u = self.attention(h)  # (words, attention_size)
        if self.customize == "attention":
            u = u + self._customized(h, beta, document)
        v, weights = attend(h, torch.tanh(u) @ self.context, torch.from_numpy(batch.word_offsets))
        v = dropout(v, self.dropout, generator)  # (documents, 2 word_size)
        logits = self.output(v)
        if self.customize == "linear":
            logits = logits + self._customized(v, beta, torch.arange(len(v)))
        elif self.customize == "bias":
            logits = logits + beta @ self.bases.squeeze(2)
        alpha, gamma = _by_sentence(weights, batch)
        return Output(logits, v, alpha=alpha, gamma=gamma)

    def _states(
        self, x: Float[Tensor, "words size"], batch: Batch, beta: Float[Tensor, "documents bases"]
    ) -> Float[Tensor, "words both_directions"]:
        if self.customize != "encoder":
            h: Tensor = self.word_layer(x, batch.word_offsets)
            return h
        directions = zip(self.word_layer.children(), self.bases.chunk(2, dim=1), (False, True), strict=True)
        return torch.cat(
            [
                customized_lstm(layer, bases, beta, x, pack(batch.word_offsets, reverse=reverse))
                for layer, bases, reverse in directions
                if isinstance(layer, LSTM)
            ],
            dim=1,
        )

    def _weights(self, batch: Batch) -> Float[Tensor, "documents bases"]:
        m = torch.cat(
            [self.users(batch.users, batch.n_documents), self.products(batch.products, batch.n_documents)], dim=1
        )
        return torch.softmax(torch.tanh(self.query(m)) @ self.keys.t(), dim=1)

    def _customized(
        self, x: Float[Tensor, "n inputs"], beta: Float[Tensor, "documents bases"], document: Int64[Tensor, " n"]
    ) -> Float[Tensor, "n outputs"]:
        """sum_k beta_k B_k x: all bases in one product, so that no document needs a matrix of its own."""
        products = (x @ self.bases.flatten(0, 1).t()).view(len(x), *self.bases.shape[:2])  # (n, bases, outputs)
        return torch.einsum("nk,nko->no", beta.index_select(0, document), products)


def _by_sentence(
    weights: Float[Tensor, " words"], batch: Batch
) -> tuple[Float[Tensor, " words"], Float[Tensor, " sentences"]]:
    """Weights over a document as weights of words in sentences and of sentences in the document."""
    sentence = torch.from_numpy(batch.sentence_of_word)
    gamma = weights.new_zeros(batch.n_sentences).index_add(0, sentence, weights)
    tiny = float(np.finfo(np.float32).tiny)  # a sentence without any weight: its words have none either
    return weights / gamma.index_select(0, sentence).clamp_min(tiny), gamma


def customized_lstm(
    layer: LSTM,
    bases: Float[Tensor, "bases four_H D_plus_H"],
    beta: Float[Tensor, "documents bases"],
    x: Float[Tensor, "n D"],
    packing: Packing,
) -> Float[Tensor, "n H"]:
    """One sequence per document."""
    D, H = x.shape[1], layer.hidden_size
    shares = torch.cat([torch.ones_like(beta[:, :1]), beta], dim=1)  # 1 for W and U themselves
    of_row = shares.repeat_interleave(packing.lengths, dim=0).index_select(0, packing.order)  # (n, 1 + bases) packed
    inputs = _stacked(layer.input_weight, bases[:, :, :D])  # (D, (1 + bases) 4H)
    states = _stacked(layer.state_weight, bases[:, :, D:])  # (H, (1 + bases) 4H)
    projected = _mixed(x.index_select(0, packing.order) @ inputs, of_row) + layer.bias  # (n, 4H)
    sizes = packing.batch_sizes.tolist()
    h = c = x.new_zeros(sizes[0], H)
    steps = []
    for gates, share in zip(torch.split(projected, sizes), torch.split(of_row, sizes), strict=True):
        h, c = h[: len(gates)], c[: len(gates)]
        i, f, g, o = (gates + _mixed(h @ states, share)).chunk(4, dim=1)
        c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
        h = torch.sigmoid(o) * torch.tanh(c)
        steps.append(h)
    return torch.cat(steps).index_select(0, packing.inverse)


def _stacked(
    weight: Float[Tensor, "four_H inputs"], bases: Float[Tensor, "bases four_H inputs"]
) -> Float[Tensor, "inputs all_rows"]:
    return torch.cat([weight[None], bases]).flatten(0, 1).t()


def _mixed(
    products: Float[Tensor, "n all_rows"], shares: Float[Tensor, "n one_plus_bases"]
) -> Float[Tensor, "n four_H"]:
    return torch.bmm(shares[:, None], products.view(len(shares), shares.shape[1], -1)).squeeze(1)
