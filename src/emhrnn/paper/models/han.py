r"""HAN, the hierarchical attention network: HN-ATT, HN-AVE and HN-MAX (Yang et al., NAACL 2016; docs/paper.md 4).

    x   x   x   x     x   x   x      word vectors
    |   |   |   |     |   |   |
    h1<>h1<>h1<>h1    h1<>h1<>h1     word BiGRU, restarted at each sentence
    \___________/     \_______/      pooling: attention alpha, mean or maximum
          s<-------------->s         sentence BiGRU: h3
          \________________/         pooling: attention gamma, mean or maximum
                   v
           softmax(W_c v + b_c)

    u_t = tanh(W_w h1_t + b_w)       alpha = softmax over the sentence of u_t . u_w        s = sum_t alpha_t h1_t
    u_i = tanh(W_s h3_i + b_s)       gamma = softmax over the document of u_i . u_s        v = sum_i gamma_i h3_i

HN-AVE puts the mean and HN-MAX the maximum of each feature in place of both sums.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.recurrent import GRU, Bidirectional
from emhrnn.models.output import Output
from emhrnn.paper.models.attention import AttentionPool, mean
from emhrnn.paper.models.embedding import Table, WordNetwork
from emhrnn.paper.models.settings import HANConfig, HNAttConfig
from emhrnn.shapes import Float, Int64

Pooling = Literal["attention", "mean", "max"]
Pool = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]  # rows and offsets of segments -> vectors, weights


class HAN(WordNetwork):
    """Words and sentences by BiGRU, pooled by attention, mean or maximum."""

    def __init__(
        self,
        config: HANConfig,
        *,
        table: Table,
        classes: int,
        generator: torch.Generator,
        pooling: Pooling = "attention",
    ) -> None:
        super().__init__(config, table)
        words, sentences = 2 * config.word_size, 2 * config.sentence_size
        self.word_layer = _bigru(self.embedding.size, config.word_size, generator)
        self.word_pool = _pool(config, pooling, words, generator)
        self.sentence_layer = _bigru(words, config.sentence_size, generator)
        self.sentence_pool = _pool(config, pooling, sentences, generator)
        self.output = dense(sentences, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        s, alpha = self.sentence_vectors(batch, generator)
        logits, v, gamma = self.classify(batch.document_offsets, s, generator)
        return Output(logits, v, alpha=alpha, gamma=gamma)

    def sentence_vectors(
        self, batch: Batch, generator: torch.Generator | None = None
    ) -> tuple[Float[Tensor, "sentences features"], Float[Tensor, " words"] | None]:
        """s of each sentence, which does not depend on the other sentences, and the weights of its words."""
        x = self.inputs(batch, generator)  # (words, size)
        h1 = self.dropped(self.word_layer(x, batch.sentence_offsets), generator)  # (words, 2 word_size)
        s, alpha = self.word_pool(h1, torch.from_numpy(batch.sentence_offsets))  # (sentences, 2 word_size)
        return s, alpha

    def classify(
        self,
        documents: Int64[np.ndarray, " documents_plus_1"],
        s: Float[Tensor, "sentences features"],
        generator: torch.Generator | None = None,
    ) -> tuple[
        Float[Tensor, "documents classes"], Float[Tensor, "documents v_features"], Float[Tensor, " sentences"] | None
    ]:
        """From the sentence vectors of documents, by their offsets, to logits, v and the weights gamma."""
        h3 = self.sentence_layer(s, documents)  # (sentences, 2 sentence_size)
        v, gamma = self.sentence_pool(h3, torch.from_numpy(documents))  # (documents, 2 sentence_size)
        v = self.dropped(v, generator)
        return self.output(v), v, gamma


def _pool(config: HANConfig, pooling: Pooling, size: int, generator: torch.Generator) -> Pool:
    """Mean and maximum of each feature over each segment have no weights to show."""
    if pooling == "mean":
        return lambda h, offsets: (mean(h, offsets), None)
    if pooling == "max":
        return lambda h, offsets: (torch.segment_reduce(h, "max", offsets=offsets, axis=0), None)
    assert isinstance(config, HNAttConfig)
    return AttentionPool(size, config.attention_size, generator=generator)


def _bigru(inputs: int, size: int, generator: torch.Generator) -> Bidirectional:
    return Bidirectional(GRU(inputs, size, generator=generator), GRU(inputs, size, generator=generator))
