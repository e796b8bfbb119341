"""Models that read a document as one sequence or bag of words, and take no notice of where sentences end: LSTM and
CNN-word; bag-of-means and SVM+SSWE, pooled word vectors under a linear classifier that is fitted in one go.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.layers.linear import dense
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM
from emhrnn.models.fitting import fit_linear, fit_standardised, labels_of, weights_of
from emhrnn.models.model import DocumentModel, Output
from emhrnn.paper.models.layers import UNKNOWN, Table, WordNetwork, mean
from emhrnn.paper.models.rows import BagOfMeansConfig, CNNWordConfig, FlatConfig, SSWEConfig
from emhrnn.shapes import Float, Int64


class MeanLSTM(WordNetwork):
    r"""LSTM: one long LSTM over the document, and the mean of its states (Zhang et al., NIPS 2015; docs/paper.md 5).

        x   x   x   x   x   x   x     word vectors
        |   |   |   |   |   |   |
        h---h---h---h---h---h---h     LSTM over the whole document, sentences unseen
        \_______________________/     mean
                    v
           softmax(W_c v + b_c)

        i, f, o = sigmoid(W x_t + U h_(t-1) + b)      g = tanh(W_g x_t + U_g h_(t-1) + b_g)
        c_t = f c_(t-1) + i g      h_t = o tanh(c_t)      v = 1/T sum_t h_t

    The plainest recurrent model: words far back reach v by the mean, not through many steps.

    The row `lstm`.
    """

    def __init__(self, config: FlatConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, table)
        self.word_layer = LSTM(self.embedding.size, config.word_size, generator=generator)
        self.output = dense(config.word_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        x = self.inputs(batch, generator)  # (words, size)
        h = self.word_layer(x, Order(batch.word_offsets))  # (words, word_size)
        v = self.dropped(mean(h, torch.from_numpy(batch.word_offsets)), generator)  # (documents, word_size)
        return Output(self.output(v), v)


WIDTHS = (7, 7, 3, 3, 3, 3)
POOLED = (True, True, False, False, False, True)
POOL = 3


class CNNWord(WordNetwork):
    """CNN-word: a deep convolution over the first words of a document (Zhang et al., NIPS 2015; docs/paper.md 5).

        x x x x ... x 0 0       the first `length` words, zeros behind the end
        conv 7  pool 3
        conv 7  pool 3
        conv 3
        conv 3
        conv 3
        conv 3  pool 3          (length - 96) / 27 frames of `features` features
        dense - dropout - dense - dropout
        softmax(W_c v + b_c)

        convolution:  h_t = ReLU(sum over j < width of W_j x_(t+j) + b)      pooling: the maximum of three neighbours

    ReLU after every dense layer, too. Zhang's small network has 256 features and dense layers of 1,024, his large one
    1,024 and 2,048, for millions of documents; ours has 64 and 256, as the other rows' layers have 50 where their
    papers have hundreds. A fixed length is part of this model: words behind it are not read. 231 words make five frames
    and hold most reviews.

    It starts without regard to place: the taps of a filter are equal, and so are the frames that the first dense layer
    reads. With random taps a word at another place reaches the output with another sign, its gradients do not add up,
    and the network memorises its documents and learns nothing else (Zhang had hundreds of thousands; we may have
    hundreds).

    The row `cnn-word`.
    """

    def __init__(self, config: CNNWordConfig, *, table: Table, classes: int, generator: torch.Generator) -> None:
        super().__init__(config, table)
        features, dense_size, length = config.features, config.dense_size, config.length
        self.length = length
        sizes = [self.embedding.size] + [features] * len(WIDTHS)
        self.convolutions = nn.ModuleList(
            _convolution(inputs, features, width, generator) for inputs, width in zip(sizes, WIDTHS, strict=False)
        )
        self.first = dense(_frames(length) * features, dense_size, generator)
        self.second = dense(dense_size, dense_size, generator)
        with torch.no_grad():
            frames = self.first.weight.view(dense_size, features, -1)
            frames.copy_(_without_place(frames, generator))
        self.output = dense(dense_size, classes, generator)

    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        """A generator turns dropout on."""
        x = self.embedding(torch.from_numpy(batch.words))  # (words, size)
        h = torch.cat([x.new_zeros(1, x.shape[1]), x])[_padded(batch.word_offsets, self.length)]
        h = h.transpose(1, 2)  # (documents, size, length)
        for convolution, pooled in zip(self.convolutions, POOLED, strict=True):
            h = torch.relu(convolution(h))
            if pooled:
                h = nn.functional.max_pool1d(h, POOL)
        v = self.dropped(torch.relu(self.first(h.flatten(1))), generator)  # (documents, dense_size)
        v = self.dropped(torch.relu(self.second(v)), generator)
        return Output(self.output(v), v)


def _padded(offsets: Int64[np.ndarray, " documents_plus_1"], length: int) -> Int64[Tensor, "documents length"]:
    """Which row each place of the rectangle reads: 0 behind a document's end, else 1 + the word's row."""
    place = np.arange(length)
    rows = offsets[:-1, None] + place
    return torch.from_numpy(np.where(rows < offsets[1:, None], rows + 1, 0))


def _frames(length: int) -> int:
    """Frames that leave the last pooling."""
    frames = length
    for width, pooled in zip(WIDTHS, POOLED, strict=True):
        frames -= width - 1
        if pooled:
            frames //= POOL
    return frames


def _convolution(inputs: int, outputs: int, width: int, generator: torch.Generator) -> nn.Conv1d:
    layer: nn.Conv1d = nn.utils.skip_init(nn.Conv1d, inputs, outputs, width)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        layer.weight.copy_(_without_place(layer.weight, generator))
        layer.bias.zero_()  # type: ignore[union-attr]
    return layer


def _without_place(
    weight: Float[Tensor, "outputs inputs width"], generator: torch.Generator
) -> Float[Tensor, "outputs inputs width"]:
    """First values, equal over the width. The weights of an output sum to zero: inputs behind a ReLU have a positive
    mean, which six layers would raise until all documents looked alike."""
    outputs, inputs, width = weight.shape
    taps = torch.empty(outputs, inputs, 1).normal_(0, (inputs * width) ** -0.5, generator=generator)
    return (taps - taps.mean(1, keepdim=True)).expand(-1, -1, width)


class BagOfMeans(DocumentModel):
    """Bag-of-means: a document as counts of word clusters (Zhang et al., NIPS 2015; docs/paper.md 5).

        word vectors of the training words -> k-means (5,000 means)
        document -> how often each mean is nearest to one of its words -> length 1 -> multinomial logistic regression

    Counts are brought to length 1, so that long documents do not outweigh short ones.

    The row `bag-of-means`; fitted at once.
    """

    nearest: Tensor
    weight: Tensor
    bias: Tensor

    fits_at_once = True

    def __init__(self, config: BagOfMeansConfig, *, table: Float[Tensor, "vocabulary size"], classes: int) -> None:
        super().__init__()
        self.table = table  # only to fit: a word's nearest mean is all that is kept
        self.means = min(config.means, len(table))
        self.C = config.C
        self.register_buffer("nearest", torch.zeros(len(table), dtype=torch.int64))  # mean of each word
        self.register_buffer("weight", torch.zeros(classes, self.means))
        self.register_buffer("bias", torch.zeros(classes))

    @torch.no_grad()
    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        v = torch.from_numpy(self.features(batch).toarray())
        return Output(v @ self.weight.t() + self.bias, v)

    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        present = [np.unique(batch.words) for batch in batches]
        if not present:
            raise DataError("no documents to fit; give at least one of each class")
        words = np.unique(np.concatenate(present))
        vectors = self.table.numpy()
        clusters = min(self.means, len(words))
        kmeans = MiniBatchKMeans(clusters, random_state=seed, n_init=1, batch_size=4096, compute_labels=False)
        kmeans.fit(vectors[words])
        self.nearest.copy_(torch.from_numpy(kmeans.predict(vectors).astype(np.int64)))
        features = sparse.vstack([self.features(batch) for batch in batches], format="csr")
        labels, weights = labels_of(batches), weights_of(batches)
        weight, bias = fit_linear(features, labels, len(self.bias), "logistic", self.C, seed, weights)
        self.weight.copy_(weight)
        self.bias.copy_(bias)

    def features(self, batch: Batch) -> sparse.csr_matrix:
        """(documents, means), float32, rows of length 1."""
        document = batch.document_of_word
        ones = np.ones(batch.n_words, dtype=np.float32)
        counts = sparse.csr_matrix(
            (ones, (document, self.nearest.numpy()[batch.words])), shape=(batch.n_documents, self.means)
        )
        return normalize(counts)


HIDDEN = 20
STEP = 4096  # windows per step of AdaGrad


class SSWE(DocumentModel):
    """SSWE + SVM: word vectors that know sentiment, pooled, and a linear support vector machine (Tang et al., ACL 2014
    and EMNLP 2015; docs/paper.md 5).

        t  = [x_(t-1); x_t; x_(t+1)]         a window of three words of a text with polarity delta (+1 or -1)
        t' = the same with another word in the middle
        f  = W2 hardtanh(W1 t + b1) + b2     two scores: f0 of being a text, f1 of being positive

        loss = 1/2 max(0, 1 - f0(t) + f0(t'))  +  1/2 max(0, 1 - delta f1(t) + delta f1(t'))

        document = [min; max; mean] of its word vectors -> linear SVM

    The classes are taken for ordered, as stars are: those above the middle are positive, those below negative, and a
    class in the middle only teaches f0. With epochs = 0 the given vectors are used as they are.

    The row `sswe-svm`; fitted at once.
    """

    vectors: Tensor
    weight: Tensor
    bias: Tensor

    fits_at_once = True

    def __init__(
        self,
        config: SSWEConfig,
        *,
        table: Float[Tensor, "vocabulary size"],
        classes: int,
        learning_rate: float = 0.1,
    ) -> None:
        """The vectors start from `table`."""
        super().__init__()
        self.epochs = config.fit_epochs
        self.learning_rate = learning_rate
        self.C = config.C
        self.register_buffer("vectors", table.clone())
        self.register_buffer("weight", torch.zeros(classes, 3 * table.shape[1]))
        self.register_buffer("bias", torch.zeros(classes))

    @torch.no_grad()
    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        v = self.features(batch)
        return Output(v @ self.weight.t() + self.bias, v)

    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        labels = labels_of(batches)
        if self.epochs:
            if labels.ndim == 2:
                raise ConfigError(
                    "sswe-svm learns from ordered classes, the data are multi-label; set model.fit_epochs=0"
                )
            self._learn_vectors(batches, torch.Generator().manual_seed(seed))
        features = torch.cat([self.features(batch) for batch in batches])
        weights = weights_of(batches)
        weight, bias = fit_standardised(features, labels, len(self.bias), "svm", self.C, seed, weights)
        self.weight.copy_(weight)
        self.bias.copy_(bias)

    def features(self, batch: Batch) -> Float[Tensor, "documents features"]:
        x = self.vectors[torch.from_numpy(batch.words)]
        offsets = torch.from_numpy(batch.word_offsets)
        pooled = [torch.segment_reduce(x, how, offsets=offsets, axis=0) for how in ("min", "max", "mean")]
        return torch.cat(pooled, dim=1)

    def _learn_vectors(self, batches: Iterable[Batch], generator: torch.Generator) -> None:
        vocabulary, size = self.vectors.shape
        if vocabulary < 2:  # the one there is stands for all unknown words
            raise DataError(
                "the vocabulary is empty, so sswe-svm has no word to learn; give more documents, or lower "
                "data.min_count"
            )
        squares = torch.zeros_like(self.vectors)  # AdaGrad's sums
        scorer = WindowScorer(size, generator=generator)
        optimizer = torch.optim.Adagrad(scorer.parameters(), lr=self.learning_rate)
        for _ in range(self.epochs):
            for window, delta, weight in self._windows(batches):
                corrupted = window.clone()
                corrupted[:, 1] = torch.randint(1, vocabulary, (len(window),), generator=generator)
                # Only the words at hand are read and moved: a step costs the same however large the vocabulary.
                words, place = torch.unique(torch.cat([window, corrupted]), return_inverse=True)
                x = self.vectors[words].requires_grad_()
                f, f_corrupted = scorer(x, place).chunk(2)  # (n, 2) each
                optimizer.zero_grad()
                hybrid_loss(f - f_corrupted, delta, weight).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                if x.grad is not None:
                    squares[words] += x.grad.square()
                    self.vectors[words] -= self.learning_rate * x.grad / (squares[words].sqrt() + 1e-10)

    def _windows(
        self, batches: Iterable[Batch]
    ) -> Iterator[tuple[Int64[Tensor, "n 3"], Float[Tensor, " n"], Float[Tensor, " n"]]]:
        """Windows of words, and the polarity and weight of their documents."""
        for batch in batches:
            delta = polarity(np.asarray(batch.labels), len(self.bias))
            windows = torch.from_numpy(_neighbours(batch))
            weights = np.ones_like(delta) if batch.weights is None else batch.weights
            parts = [windows, *(torch.from_numpy(np.repeat(x, batch.document_lengths)) for x in (delta, weights))]
            yield from zip(*(torch.split(part, STEP) for part in parts), strict=True)


class WindowScorer(nn.Module):
    """f of windows. W1 [x_1; x_2; x_3] is a sum of three products, so each distinct word is multiplied once."""

    def __init__(self, size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.hidden = dense(3 * size, HIDDEN, generator)
        self.score = dense(HIDDEN, 2, generator)

    def forward(self, x: Float[Tensor, "words size"], window: Int64[Tensor, "n 3"]) -> Float[Tensor, "n 2"]:
        """`window` holds rows of x."""
        parts = [x @ W.t() for W in self.hidden.weight.chunk(3, dim=1)]  # (words, HIDDEN) each
        summed = sum(
            (nn.functional.embedding(window[:, k], part) for k, part in enumerate(parts)), start=self.hidden.bias
        )
        f: Tensor = self.score(nn.functional.hardtanh(summed))
        return f


def hybrid_loss(
    difference: Float[Tensor, "n 2"], delta: Float[Tensor, " n"], weight: Float[Tensor, " n"]
) -> Float[Tensor, ""]:
    """The loss above from f(t) - f(t'), averaged; a text without polarity has no second term."""
    text = (1 - difference[:, 0]).clamp_min(0)
    sentiment = (1 - delta * difference[:, 1]).clamp_min(0) * (delta != 0)
    return (weight * (text + sentiment)).sum() / weight.sum().clamp_min(1e-30) / 2


def polarity(labels: Int64[np.ndarray, " documents"], classes: int) -> np.ndarray:
    """+1 above the middle class, -1 below, 0 in it."""
    sign: np.ndarray = np.sign(2 * labels - (classes - 1)).astype(np.float32)
    return sign


def _neighbours(batch: Batch) -> Int64[np.ndarray, "words 3"]:
    """Each word between its neighbours of the same sentence; unknown words stand beyond its ends."""
    left, right = np.roll(batch.words, 1), np.roll(batch.words, -1)
    left[batch.sentence_offsets[:-1]] = UNKNOWN
    right[batch.sentence_final] = UNKNOWN
    return np.stack([left, batch.words, right], axis=1)
