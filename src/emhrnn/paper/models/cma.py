r"""CMA: cascading multiway attentions (Ma et al., IJCNLP 2017; docs/paper.md 5). The user, the product and both
together each look at the words in their own way, and then at the sentences.

    x    x    x    x      x    x    x      word vectors
    h1---h1---h1---h1     h1---h1---h1     word LSTM, restarted at each sentence
    \_______________/     \_________/      alpha^m for m in u (user), p (product), up (both)
       s^u s^p s^up       s^u s^p s^up     three vectors of each sentence
        |   |   |<--------->|   |   |      sentence LSTM over each of the three sequences: h3^m
        \___|___|___________/   |   |      gamma^m
         v = [v^u; v^p; v^up]
        softmax(W_c v + b_c)

    e_t^m = w_m . tanh(W_h h_t + W_m m + b)     alpha^m = softmax of e^m over the sentence     s^m = sum alpha_t^m h_t

and the same over the sentences of a document with weights of their own. The paper's equations are not at hand; this is
our reading: W_h and b serve all three ways, and so does the sentence LSTM.
"""

import math

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM
from emhrnn.models.output import Output
from emhrnn.paper.models.attention import attend
from emhrnn.paper.models.embedding import IdNetwork, Table
from emhrnn.paper.models.settings import CMAConfig
from emhrnn.shapes import Float, Int64

WAYS = 3  # user, product, both


class CMA(IdNetwork):
    """The row `cma`."""

    def __init__(
        self, config: CMAConfig, *, table: Table, classes: int, generator: torch.Generator, users: int, products: int
    ) -> None:
        """`users` and `products` are how many there are."""
        super().__init__(config, table, users=users, products=products, generator=generator)
        word_size, sentence_size, attention_size = config.word_size, config.sentence_size, config.attention_size
        id_size = config.id_size
        self.word_layer = LSTM(self.embedding.size, word_size, generator=generator)
        self.word_attention = WayAttention(word_size, id_size, attention_size, generator=generator)
        self.sentence_layer = LSTM(word_size, sentence_size, generator=generator)
        self.sentence_attention = WayAttention(sentence_size, id_size, attention_size, generator=generator)
        self.output = dense(WAYS * sentence_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on. alpha and gamma are the means of the three ways."""
        u, p = self.ids(batch)  # (documents, id_size) each
        x = self.inputs(batch, generator)  # (words, size)
        h1 = self.dropped(self.word_layer(x, Order(batch.sentence_offsets)), generator)  # (words, word_size)

        of_sentence = torch.from_numpy(batch.document_of_sentence)
        of_word = of_sentence[torch.from_numpy(batch.sentence_of_word)]
        word_scores = self.word_attention(h1, u, p, of_word)  # (ways, words)
        pooled = [attend(h1, e, torch.from_numpy(batch.sentence_offsets)) for e in word_scores]
        s = torch.cat([s_m for s_m, _ in pooled])  # (ways * sentences, word_size), way by way

        offsets = batch.document_offsets
        copies = np.concatenate([[0], *(offsets[1:] + way * offsets[-1] for way in range(WAYS))])  # one after the other
        h3 = self.sentence_layer(s, Order(copies)).view(WAYS, batch.n_sentences, -1)
        documents = torch.from_numpy(offsets)
        scores = [self.sentence_attention(h3_m, u, p, of_sentence)[m] for m, h3_m in enumerate(h3)]
        attended = [attend(h3_m, e, documents) for h3_m, e in zip(h3, scores, strict=True)]
        v = self.dropped(torch.cat([v_m for v_m, _ in attended], dim=1), generator)
        alpha = torch.stack([weights for _, weights in pooled]).mean(0)
        gamma = torch.stack([weights for _, weights in attended]).mean(0)
        return Output(self.output(v), v, alpha=alpha, gamma=gamma)


class WayAttention(nn.Module):
    """The scores e^m of states as the user, the product and both see them."""

    def __init__(self, input_size: int, id_size: int, attention_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.state = dense(input_size, attention_size, generator)  # W_h and b
        self.user = _matrix(attention_size, id_size, generator)
        self.product = _matrix(attention_size, id_size, generator)
        self.both = _matrix(attention_size, 2 * id_size, generator)
        self.context = _matrix(WAYS, attention_size, generator)  # w_m

    def forward(
        self,
        h: Float[Tensor, "n H"],
        u: Float[Tensor, "documents size"],
        p: Float[Tensor, "documents size"],
        document: Int64[Tensor, " n"],
    ) -> Float[Tensor, "3 n"]:
        seen = self.state(h)  # (n, attention_size)
        ways = (u @ self.user.t(), p @ self.product.t(), torch.cat([u, p], dim=1) @ self.both.t())
        return torch.stack(
            [
                torch.tanh(seen + way.index_select(0, document)) @ context
                for way, context in zip(ways, self.context, strict=True)
            ]
        )


def _matrix(rows: int, columns: int, generator: torch.Generator) -> nn.Parameter:
    bound = 1 / math.sqrt(columns)
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound, generator=generator))
