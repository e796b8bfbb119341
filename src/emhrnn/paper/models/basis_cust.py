r"""BiLSTM + basis customisation: the classifier's matrix depends on who wrote the document and about what (Kim et al.,
TACL 2019; docs/paper.md 5).

    x   x   x   x   x   x      word vectors
    h<->h<->h<->h<->h<->h      BiLSTM over the whole document
    \___________________/      attention: v
               v
    softmax(W(m) v + b)        m = [user vector; product vector]

    beta = softmax(K tanh(W_m m + b_m))      W(m) = B_0 + sum_k beta_k B_k      few bases, so that rare users share them

This is linear-basis-cust, the variant that the paper's table has.
"""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.recurrent import LSTM, Bidirectional
from emhrnn.models.output import Output
from emhrnn.paper.models.attention import attend
from emhrnn.paper.models.embedding import IdNetwork, Table
from emhrnn.paper.models.settings import BasisCustConfig
from emhrnn.shapes import Float


class BasisCust(IdNetwork):
    """The row `basis-cust`."""

    def __init__(
        self,
        config: BasisCustConfig,
        *,
        table: Table,
        classes: int,
        generator: torch.Generator,
        users: int,
        products: int,
    ) -> None:
        """`users` and `products` are how many there are."""
        super().__init__(config, table, users=users, products=products, generator=generator)
        word_size, attention_size = config.word_size, config.attention_size
        bases, id_size = config.bases, config.id_size
        self.query = dense(2 * id_size, id_size, generator)  # W_m, b_m
        self.keys = nn.Parameter(torch.empty(bases, id_size).normal_(0, id_size**-0.5, generator=generator))  # K

        size = self.embedding.size
        self.word_layer = Bidirectional(
            LSTM(size, word_size, generator=generator), LSTM(size, word_size, generator=generator)
        )
        self.attention = dense(2 * word_size, attention_size, generator)
        self.context = nn.Parameter(torch.empty(attention_size).normal_(0, attention_size**-0.5, generator=generator))
        self.output = dense(2 * word_size, classes, generator)  # B_0 and b
        bound = (2 * word_size) ** -0.5
        shape = (bases, classes, 2 * word_size)
        self.bases = nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on. The attention runs over the whole document; it is given as gamma, a sentence's
        share of it, and alpha, a word's share of its sentence."""
        m = torch.cat(self.ids(batch), dim=1)  # (documents, 2 id_size)
        beta = torch.softmax(torch.tanh(self.query(m)) @ self.keys.t(), dim=1)  # (documents, bases)
        x = self.inputs(batch, generator)  # (words, size)
        h = self.dropped(self.word_layer(x, batch.word_offsets), generator)  # (words, 2 word_size)
        u = torch.tanh(self.attention(h))  # (words, attention_size)
        v, weights = attend(h, u @ self.context, torch.from_numpy(batch.word_offsets))
        v = self.dropped(v, generator)  # (documents, 2 word_size)
        said = (v @ self.bases.flatten(0, 1).t()).view(len(v), *self.bases.shape[:2])  # (documents, bases, classes)
        logits = self.output(v) + torch.einsum("nk,nko->no", beta, said)
        alpha, gamma = _by_sentence(weights, batch)
        return Output(logits, v, alpha=alpha, gamma=gamma)


def _by_sentence(
    weights: Float[Tensor, " words"], batch: Batch
) -> tuple[Float[Tensor, " words"], Float[Tensor, " sentences"]]:
    """Weights over a document as weights of words in sentences and of sentences in the document."""
    sentence = torch.from_numpy(batch.sentence_of_word)
    gamma = weights.new_zeros(batch.n_sentences).index_add(0, sentence, weights)
    tiny = float(np.finfo(np.float32).tiny)  # a sentence without any weight: its words have none either
    return weights / gamma.index_select(0, sentence).clamp_min(tiny), gamma
