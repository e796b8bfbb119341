"""Networks that also read who wrote a document, and about what: CMA and basis customisation."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM, Bidirectional
from emhrnn.models.model import Output, check_count, id_rows
from emhrnn.paper.models.layers import Table, WordNetwork, attend
from emhrnn.paper.models.rows import BasisCustConfig, CMAConfig, IdsConfig
from emhrnn.shapes import Float, Int64


class IdVectors(nn.Module):
    """The vector of each id. An unknown id reads the mean of all vectors: the average user, or product. With
    `used=False` every document reads the same learned vector, which turns a model into its twin without ids."""

    def __init__(self, kind: str, count: int, size: int, *, used: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.kind = kind
        self.used = used
        if used:
            check_count(kind, count)
        rows = count if used else 1
        self.table = nn.Parameter(torch.empty(rows, size).normal_(0, size**-0.5, generator=generator))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None, documents: int) -> Float[Tensor, "documents size"]:
        if not self.used:
            return self.table.expand(documents, -1)
        vectors, known = id_rows(self.kind, self.table, ids)
        if known.all():
            return vectors
        # No gradient through the mean: one unknown author must not move all the others.
        return torch.where(known, vectors, self.table.detach().mean(0))


class IdNetwork(WordNetwork):
    """A network that also reads a vector of each user and product."""

    def __init__(
        self, config: IdsConfig, table: Table, *, users: int, products: int, generator: torch.Generator
    ) -> None:
        """`users` and `products` are how many there are."""
        super().__init__(config, table)
        self.users = IdVectors("user", users, config.id_size, used=config.ids, generator=generator)
        self.products = IdVectors("product", products, config.id_size, used=config.ids, generator=generator)

    def ids(self, batch: Batch) -> tuple[Float[Tensor, "documents size"], Float[Tensor, "documents size"]]:
        """The vectors of the user and the product of each document."""
        return self.users(batch.users, batch.n_documents), self.products(batch.products, batch.n_documents)


WAYS = 3  # user, product, both


class CMA(IdNetwork):
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

        e_t^m = w_m . tanh(W_h h_t + W_m m + b)    alpha^m = softmax of e^m over the sentence    s^m = sum alpha_t^m h_t

    and the same over the sentences of a document with weights of their own. The paper's equations are not at hand; this
    is our reading: W_h and b serve all three ways, and so does the sentence LSTM.

    The row `cma`.
    """

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


class BasisCust(IdNetwork):
    r"""BiLSTM + basis customisation: the classifier's matrix depends on who wrote the document and about what (Kim et
    al., TACL 2019; docs/paper.md 5).

        x   x   x   x   x   x      word vectors
        h<->h<->h<->h<->h<->h      BiLSTM over the whole document
        \___________________/      attention: v
                   v
        softmax(W(m) v + b)        m = [user vector; product vector]

        beta = softmax(K tanh(W_m m + b_m))    W(m) = B_0 + sum_k beta_k B_k    few bases, so that rare users share them

    This is linear-basis-cust, the variant that the paper's table has.

    The row `basis-cust`.
    """

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
