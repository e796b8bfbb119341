r"""EM-HRNN: words form phrases, phrases form sentences, sentences form the document (docs/paper.md 1.2).

    x   x   x   x   x   x   x   x      word vectors
    |   |   |   |   |   |   |   |
    h1--h1--h1--h1  h1--h1--h1--h1     word layer, an LSTM, restarted at each sentence
    |   |   |   |   |   |   |   |
    0   1   0   1   1   0   0   1      z ~ Bernoulli(pi), pi = sigmoid(W_pi h1 + b_pi [+ o]); 1 = the phrase ends here
    \___/   \___/   |   \_______/      word attention alpha in each phrase
      q-------q     q-------q          phrase LSTM: h2
      \_______/     \_______/          phrase attention beta in each sentence, over h2, or over [h2; q] with `skip`
          s<------------>s             sentence BiLSTM: h3
          \_____________/              sentence attention gamma in the document
                 v
          softmax(W_c v + b_c)         p(y | Z, w)

    u_t = tanh(W h1_t + b)    alpha = softmax in the phrase of u_t . u_w    q = sum_t alpha_t h1_t; beta, gamma likewise

Three settings go beyond the paper. `skip`: a phrase's own vector reaches its sentence beside its state, past one
recurrent layer. `pauses`: o, where a reader would pause (pauses.py). `cell`: GRUs in the place of all LSTMs.

The word layer does not depend on z, so it is a step of its own: `words`. `encode` does the rest for one z.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import Bidirectional, Recurrent, recurrent_layer
from emhrnn.models.model import Output
from emhrnn.models.pauses import Pauses
from emhrnn.models.segmentation import PAPER_RATE, rule
from emhrnn.paper.models.layers import AttentionPool, Table, WordNetwork, attend
from emhrnn.paper.models.rows import EMHRNNConfig
from emhrnn.shapes import Bool, Float, Int64

if TYPE_CHECKING:  # training imports the table of models
    from emhrnn.training.config import Config
    from emhrnn.training.distributed import Processes
    from emhrnn.training.loop import LabelLoss, Objective

REPEATED = 2  # how often a word of a batch comes, at least, for a table of the batch's words to pay


@dataclass(frozen=True, eq=False)
class WordStates:
    """All that the words say before they are cut into phrases; the same for every z."""

    h1: Float[Tensor, "words word_features"]
    scores: Float[Tensor, " words"]  # u_t . u_q, the word attention before its softmax
    a: Float[Tensor, " words"]  # logit of pi

    def detach(self) -> "WordStates":
        return WordStates(self.h1.detach(), self.scores.detach(), self.a.detach())

    def part(self, words: slice) -> "WordStates":
        """Those of some words."""
        return WordStates(self.h1[words], self.scores[words], self.a[words])


class EMHRNN(WordNetwork):
    """The model of the paper: a batch, and phrase ends z, to the probabilities of the classes."""

    threshold: Float[Tensor, ""]  # on the logit of pi, for `segment`

    def __init__(
        self,
        config: EMHRNNConfig,
        *,
        table: Table,
        classes: int,
        generator: torch.Generator,
        vocabulary: Sequence[str] = (),
        rate: float = PAPER_RATE,
    ) -> None:
        """`vocabulary` are the words, for pauses and segmentations that read them. At first, `rate` of them end
        a phrase."""
        super().__init__(config, table)
        cell, phrase_size, sentence_size = config.cell, config.phrase_size, config.sentence_size
        attention_size = config.attention_size
        self.skip = config.skip
        self.rule: Callable[[Batch], Bool[np.ndarray, " words"]] | None = None  # in the place of learned phrases
        if config.segmentation != "learned":
            self.rule = rule(config.segmentation, vocabulary, rate)
        size, both = self.embedding.size, config.bidirectional_words
        directions = [recurrent_layer(cell, size, config.word_size, generator) for _ in range(1 + both)]
        self.word_layer: Recurrent | Bidirectional = Bidirectional(*directions) if both else directions[0]
        h1_size = config.word_size * (1 + both)
        self.indicator = dense(h1_size, 1, generator)
        self.word_attention = AttentionPool(h1_size, attention_size, generator=generator)
        self.phrase_layer = recurrent_layer(cell, h1_size, phrase_size, generator)
        p_size = phrase_size + (h1_size if self.skip else 0)
        self.phrase_attention = AttentionPool(p_size, attention_size, generator=generator)
        self.sentence_forward = recurrent_layer(cell, p_size, sentence_size, generator)
        self.sentence_backward = recurrent_layer(cell, p_size, sentence_size, generator)
        self.sentence_attention = AttentionPool(2 * sentence_size, attention_size, generator=generator)
        self.output = dense(2 * sentence_size, classes, generator)
        self.pauses = Pauses(vocabulary) if config.pauses else None
        # Prior: phrases of the usual length. The threshold on the logit of pi is moved by training so that the share
        # of boundaries stays where it should be; 0 is the paper's rule pi > 0.5.
        nn.init.constant_(self.indicator.bias, float(np.log(rate / (1 - rate))))
        self.register_buffer("threshold", torch.zeros(()))

    # ------------------------------------------------------------------ the word layer, once

    def words(self, batch: Batch, generator: torch.Generator | None = None) -> WordStates:
        """h1, attention scores and indicator logits of every word. A generator turns dropout on."""
        h1 = self._read_once(batch) if generator is None and not torch.is_grad_enabled() else None
        if h1 is None:
            h1 = self._h1(torch.from_numpy(batch.words), batch, generator)
        h1 = self.dropped(h1, generator)  # (words, word_features)
        return self.word_states(batch, h1)

    def word_states(self, batch: Batch, h1: Float[Tensor, "words word_features"]) -> WordStates:
        """What follows from the states of the words."""
        return WordStates(h1, self.word_attention.scores(h1), self.indicate(batch, h1))

    def indicate(self, batch: Batch, h1: Float[Tensor, "words word_features"]) -> Float[Tensor, " words"]:
        """The logit of pi."""
        a: Tensor = self.indicator(h1).squeeze(1)
        return a if self.pauses is None else a + self.pauses(batch)

    def _read_once(self, batch: Batch) -> Float[Tensor, "words word_features"] | None:
        """h1 with each distinct word projected once; None where words seldom come again."""
        distinct, rows = np.unique(batch.words, return_inverse=True)
        if len(distinct) * REPEATED > batch.n_words:
            return None
        tables = self.project(self.embedding(torch.from_numpy(distinct)))
        return self.read(tables, batch.sentence_offsets, torch.from_numpy(rows))

    def _h1(
        self, words: Int64[Tensor, " words"], batch: Batch, generator: torch.Generator | None
    ) -> Float[Tensor, "words word_features"]:
        learned = None
        if self.embedding.tuned or self.dropout or generator is None:
            x = self.dropped(self.embedding(words), generator)  # (words, size)
        else:
            x, learned = self.embedding.frozen(words)
        h1: Tensor
        if isinstance(self.word_layer, Bidirectional):
            h1 = self.word_layer(x, batch.sentence_offsets, learned)
        else:
            h1 = self.word_layer(x, Order(batch.sentence_offsets), learned)
        return h1

    def project(self, x: Float[Tensor, "words size"]) -> tuple[Float[Tensor, "words gates"], ...]:
        """What enters the word layer, W x + b, for each of its directions."""
        return tuple(layer.project(x) for layer in self.word_directions())

    def read(
        self,
        tables: Sequence[Float[Tensor, "some gates"]],
        offsets: Int64[np.ndarray, " sentences_plus_1"],
        rows: Int64[Tensor, " words"] | None = None,
    ) -> Float[Tensor, "words word_features"]:
        """h1 from projections that are there already; `rows` are those of the words in the tables."""
        states = [
            layer.forward_projected(table, Order(offsets, reverse=reverse), rows)
            for layer, table, reverse in zip(self.word_directions(), tables, (False, True), strict=False)
        ]
        return torch.cat(states, dim=1) if len(states) > 1 else states[0]

    def word_directions(self) -> list[Recurrent]:
        layer = self.word_layer
        return [layer.forward_layer, layer.backward_layer] if isinstance(layer, Bidirectional) else [layer]

    # ------------------------------------------------------------------ the rest, for one z

    @property
    def segments(self) -> bool:
        return self.rule is None

    @property
    def boundary_threshold(self) -> float:
        return 1 / (1 + math.exp(-float(self.threshold)))

    def segment(self, batch: Batch, states: WordStates) -> Bool[np.ndarray, " words"]:
        """z as predicted: pi over the threshold, and every sentence end."""
        if self.rule is not None:
            return self.rule(batch)
        z: np.ndarray = (states.a.detach() > self.threshold).numpy() | batch.sentence_final
        return z

    def encode(
        self,
        batch: Batch,
        states: WordStates,
        z: Bool[np.ndarray, " words"],
        generator: torch.Generator | None = None,
    ) -> Output:
        """p(y | z, w) and the weights of words, phrases and sentences. z must be true at every sentence end."""
        s, alpha, beta = self.sentence_vectors(batch, states, z)
        logits, v, gamma = self.classify(batch.document_offsets, s, generator)
        return Output(logits, v, z=z, alpha=alpha, beta=beta, gamma=gamma, pi=torch.sigmoid(states.a))

    def sentence_vectors(
        self, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"]
    ) -> tuple[Float[Tensor, "sentences phrase_features"], Float[Tensor, " words"], Float[Tensor, " phrases"]]:
        """s of each sentence, which does not depend on the other sentences, and the weights alpha and beta."""
        phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1])  # (phrases + 1,)
        phrases_before = np.concatenate([[0], np.cumsum(z)])[batch.sentence_offsets]  # (sentences + 1,)
        q, alpha = attend(states.h1, states.scores, torch.from_numpy(phrase_offsets))  # (phrases, word_features)
        h2 = self.phrase_layer(q, Order(phrases_before))  # (phrases, phrase_size)
        p = torch.cat([h2, q], dim=1) if self.skip else h2  # (phrases, phrase_features)
        s, beta = self.phrase_attention(p, torch.from_numpy(phrases_before))  # (sentences, phrase_features)
        return s, alpha, beta

    def classify(
        self,
        documents: Int64[np.ndarray, " documents_plus_1"],
        s: Float[Tensor, "sentences phrase_features"],
        generator: torch.Generator | None = None,
    ) -> tuple[Float[Tensor, "documents classes"], Float[Tensor, "documents features"], Float[Tensor, " sentences"]]:
        """From the sentence vectors of documents, by their offsets, to logits, v and the weights gamma."""
        forward = self.sentence_forward(s, Order(documents))
        backward = self.sentence_backward(s, Order(documents, reverse=True))
        h3 = torch.cat([forward, backward], dim=1)  # (sentences, 2 sentence_size)
        v, gamma = self.sentence_attention(h3, torch.from_numpy(documents))
        v = self.dropped(v, generator)
        return self.output(v), v, gamma

    def encode_phrases(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> Output:
        return self.encode(batch, self.words(batch), z)

    def forward(self, batch: Batch) -> Output:
        """Predict: segment, then encode."""
        states = self.words(batch)
        return self.encode(batch, states, self.segment(batch, states))

    def make_objective(
        self, config: "Config", label_loss: "LabelLoss", corpus: Corpus, job: "Processes", *, known: int
    ) -> "Objective":
        """It learns by EM."""
        from emhrnn.paper.em.objective import make_em_objective

        return make_em_objective(self, config, label_loss, corpus, job, known=known)
