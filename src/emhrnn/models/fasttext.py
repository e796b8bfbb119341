r"""fastText: the mean of word and word-pair vectors, and a linear classifier (Joulin et al., EACL 2017). The library
trains it; its matrices are kept as tensors, so that prediction needs neither the library nor its file format.

    the  room  was  great  </s>      each word and each pair of neighbours has a vector; pairs share hashed buckets
    \_________________________/      mean
                 v
             softmax(W v)

The library reads a text file. We write word ids into it, so a word is its decimal number; the hash of a pair is the
library's own (FNV-1a of both words, 32 bits and signed), which makes the buckets meet.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.extras import need
from emhrnn.models.fitting import labels_of, weights_of
from emhrnn.models.model import DocumentModel, Output
from emhrnn.models.settings import FastTextConfig
from emhrnn.shapes import Int64

END = "</s>"  # the library puts it behind every line
LABEL = "__label__"
SHOWN = 500_000  # documents that it is shown, counted at each pass: few documents need many passes to be learned at all
PASSES = 5, 25  # over the data, at least and at most, unless a number is given


class FastText(DocumentModel):
    """Mean of word and bigram vectors, then a linear classifier; trained by the fastText library."""

    rows: Tensor
    seen: Tensor
    weight: Tensor

    fits_at_once = True

    def __init__(self, config: FastTextConfig, *, vocabulary: int, classes: int, learning_rate: float = 0.5) -> None:
        super().__init__()
        size, buckets = config.word_size, config.buckets
        self.buckets = buckets
        self.epochs = config.fit_epochs
        self.learning_rate = learning_rate
        self.end = vocabulary  # the row of END, behind the words
        self.hashes = _hashes(vocabulary)
        self.register_buffer("rows", torch.zeros(vocabulary + 1 + buckets, size))  # words, END, buckets of pairs
        self.register_buffer("seen", torch.zeros(vocabulary + 1, dtype=torch.bool))  # words of the training data
        self.register_buffer("weight", torch.zeros(classes, size))

    @torch.no_grad()
    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        index, offsets = self._features(batch)
        v = nn.functional.embedding_bag(index, self.rows, offsets, mode="mean", include_last_offset=True)
        return Output(v @ self.weight.t(), v)

    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        """Train with the library, then keep its matrices.

        Raises:
            ExtraError, ConfigError: the library is missing, or documents have weights, which it does not support.
            TrainingError: the library gave up, for example because a loss became NaN.
        """
        need("fasttext", "the model fasttext", "fasttext")
        if weights_of(batches) is not None:
            raise ConfigError(
                "the fastText library knows no weights of documents; leave the weight column and "
                "training.class_weight out, or take another model"
            )
        labels = labels_of(batches)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with (folder / "train.txt").open("w", encoding="ascii") as file:
                file.writelines(line for batch in batches for line in _lines(batch))
            import fasttext

            try:
                model = fasttext.train_supervised(
                    input=str(folder / "train.txt"),
                    dim=self.rows.shape[1],
                    wordNgrams=2,
                    bucket=self.buckets,
                    minCount=1,
                    epoch=passes_over(len(labels)) if self.epochs is None else self.epochs,
                    lr=self.learning_rate,
                    loss="ova" if labels.ndim == 2 else "softmax",
                    thread=1,  # with more, the result depends on who comes first
                    seed=seed,
                    verbose=0,
                )
            except (RuntimeError, ValueError) as error:
                raise TrainingError(f"fastText failed: {error}") from None
        self._take(model)

    def _take(self, model: Any) -> None:
        """The library's matrices in our order of words and classes."""
        rows = torch.from_numpy(model.get_input_matrix())
        ids = torch.tensor([self.end if word == END else int(word) for word in model.get_words()])
        classes = torch.tensor([int(label.removeprefix(LABEL)) for label in model.get_labels()])
        self.rows.zero_()[ids] = rows[: len(ids)]
        self.rows[self.end + 1 :] = rows[len(ids) :]
        self.seen.zero_()[ids] = True
        self.weight.zero_()[classes] = torch.from_numpy(model.get_output_matrix())

    def _features(self, batch: Batch) -> tuple[Int64[Tensor, " k"], Int64[Tensor, " documents_plus_1"]]:
        """Rows of the words and pairs of each document."""
        words = np.insert(batch.words, batch.word_offsets[1:], self.end)  # END behind every document
        document = np.repeat(np.arange(batch.n_documents), batch.document_lengths + 1)
        pair = words[:-1] != self.end  # a word and its right neighbour
        hashes = self.hashes[words]
        mixed = hashes[:-1] * np.uint64(116049371) + hashes[1:]
        rows_of_pairs = self.end + 1 + (mixed % np.uint64(self.buckets)).astype(np.int64)
        known = self.seen.numpy()[words]
        index = np.concatenate([words[known], rows_of_pairs[pair]])
        owner = np.concatenate([document[known], document[:-1][pair]])
        order = np.argsort(owner, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=batch.n_documents))])
        return torch.from_numpy(index[order]), torch.from_numpy(offsets)


def passes_over(documents: int) -> int:
    """Epochs for a training set of this size: more for fewer documents."""
    fewest, most = PASSES
    return min(max(SHOWN // documents, fewest), most)


def _lines(batch: Batch) -> Iterator[str]:
    labels = np.asarray(batch.labels)
    for d in range(batch.n_documents):
        classes = np.flatnonzero(labels[d]) if labels.ndim == 2 else [labels[d]]
        words = batch.words[batch.word_offsets[d] : batch.word_offsets[d + 1]]
        yield " ".join([*(f"{LABEL}{c}" for c in classes), *map(str, words.tolist())]) + "\n"


def _hashes(vocabulary: int) -> np.ndarray:
    """FNV-1a of each word's number and, last, of END: 32 bits, taken for signed, in 64 bits that wrap around."""
    spelled = np.array([*map(str, range(vocabulary)), END], dtype=np.bytes_)
    letters = spelled.view(np.uint8).reshape(len(spelled), -1)
    value = np.full(len(spelled), 2166136261, dtype=np.uint32)
    for column in letters.T:
        mixed = (value ^ column) * np.uint32(16777619)
        value = np.where(column > 0, mixed, value)  # zeros fill up shorter words
    return value.view(np.int32).astype(np.int64).view(np.uint64)
