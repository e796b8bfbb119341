r"""Bag-of-means: a document as counts of word clusters (Zhang et al., NIPS 2015; docs/paper.md 5).

    word vectors of the training words -> k-means (5,000 means)
    document -> how often each mean is nearest to one of its words -> length 1 -> multinomial logistic regression

Counts are brought to length 1, so that long documents do not outweigh short ones.
"""

from collections.abc import Iterable

import numpy as np
import torch
from scipy import sparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.preprocessing import normalize
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.models.fitting import fit_linear, labels_of, weights_of
from emhrnn.models.model import DocumentModel
from emhrnn.models.output import Output
from emhrnn.paper.models.settings import BagOfMeansConfig
from emhrnn.shapes import Float


class BagOfMeans(DocumentModel):
    """The row `bag-of-means`; fitted at once."""

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
        document = batch.document_of_sentence[batch.sentence_of_word]
        ones = np.ones(batch.n_words, dtype=np.float32)
        counts = sparse.csr_matrix(
            (ones, (document, self.nearest.numpy()[batch.words])), shape=(batch.n_documents, self.means)
        )
        return normalize(counts)
