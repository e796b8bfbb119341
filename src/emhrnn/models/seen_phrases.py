"""The phrases that training has seen, how many documents of each class have them, and what else they have learned."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.layers.evidence import Counts, Own
from emhrnn.layers.phrases import PhraseIndex, first_in_document, phrase_keys
from emhrnn.models.fitting import labels_of
from emhrnn.models.tfidf import merged_counts
from emhrnn.shapes import Float, Int64

HEADER = 20_000  # bytes of a model file that are names, sizes and a note
HELD = 40_000_000  # different phrases to count at a time: 640 MB


class SeenPhrases(nn.Module):
    """Rows for the phrases of at most `longest` words that are in `least` documents or more. Where there are more than
    `most`, those of fewest documents are left out, all of them with the same number."""

    keys: Int64[Tensor, " rows"]  # sorted
    counts: Float[Tensor, "rows classes"]
    documents: Float[Tensor, " rows"]
    class_documents: Float[Tensor, " classes"]
    total: Float[Tensor, ""]  # weight of all documents

    def __init__(self, classes: int, *, longest: int, least: int, most: int, smoothing: float, several: bool) -> None:
        """`smoothing` is m / classes: with balanced classes, the documents that are added to each count."""
        super().__init__()
        self.classes, self.longest, self.least, self.most = classes, longest, least, most
        self.smoothing, self.several = smoothing, several
        self.register_buffer("class_documents", torch.zeros(classes))
        self.register_buffer("total", torch.zeros(()))
        self.table: Float[Tensor, "rows classes"]
        self._resize(0)

    @property
    def empty(self) -> bool:
        return not bool(self.total)

    def take_sizes(self, rows: int) -> None:
        """Make room for so many rows, which are about to be loaded. Where they are as many, the table stays the one
        that an optimiser may hold."""
        if rows != len(self.keys):
            self._resize(rows)

    def add(self, batches: Iterable[Batch]) -> None:
        """Choose the phrases, if there are none yet, and count the documents of each class that have them. Later calls
        add documents to the counts of the phrases that are there.

        Raises:
            DataError: no phrase is in enough documents.
        """
        if self.empty:
            self.keys = torch.from_numpy(self._chosen(batches))
            self._resize(len(self.keys), keep_keys=True)
        index = PhraseIndex(self.keys.numpy())
        for batch in batches:
            rows = index.rows(batch, self.longest)
            once = first_in_document(batch, rows)
            own = own_labels(batch, self.classes)
            document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
            found, of = torch.from_numpy(rows[once]), torch.from_numpy(document[once.nonzero()[0]])
            for label, weight in _one_by_one(own):
                self.counts.view(-1).index_add_(0, found * self.classes + label[of], weight[of])
            self.documents.index_add_(0, found, own.weights[of])
            self.class_documents += own.labels.sum(dim=0)
            self.total += own.weights.sum()

    def statistics(self, own: Own | None = None) -> Counts:
        """As layers/evidence.py takes them; with `own`, shares of the classes without each of these documents."""
        m, documents, total = self.smoothing * self.classes, self.class_documents, self.total
        if own is not None:
            documents, total = (documents - own.labels).clamp_min(0), (total - own.weights).clamp_min(0)[:, None]
        share = ((documents + 1e-3) / (total + 2e-3)).clamp(1e-6, 1 - 1e-6)
        shift = -torch.logit(share) if self.several else -torch.log(share)
        return Counts(self.counts, self.documents, m * share, shift, self.several)

    def grow(self, batches: Iterable[Batch]) -> None:
        """Add rows for phrases that are in enough of these documents, as far as there is room, those of most documents
        first; all rows keep what they have. `add` counts the documents."""
        keys, counts = self._counted(batches)
        new = (counts >= self.least) & ~np.isin(keys, self.keys.numpy())
        room = max(self.most - len(self.keys), 0)
        keys, counts = keys[new], counts[new]
        keys = keys[counts >= _least_documents(counts, room)]
        before, tensors = self.keys.numpy().copy(), (self.counts, self.documents, self.table)
        kept = [tensor.detach().clone() for tensor in tensors]
        self.keys = torch.from_numpy(np.union1d(before, keys))
        self._resize(len(self.keys), keep_keys=True)
        rows = torch.from_numpy(np.searchsorted(self.keys.numpy(), before))
        with torch.no_grad():
            for tensor, values in zip((self.counts, self.documents, self.table), kept, strict=True):
                tensor[rows] = values

    def _counted(self, batches: Iterable[Batch]) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
        """Sorted keys, and how many documents have each. Where a corpus has more than HELD different phrases, those
        that were seen once so far are forgotten now and then, so that a phrase of few documents may be missed."""
        keys, counts, fresh, held = np.zeros(0, np.int64), np.zeros(0, np.int64), [], 0
        for batch in batches:
            candidates = phrase_keys(batch, self.longest)
            once = first_in_document(batch, candidates)
            if batch.weights is not None:
                once &= np.repeat(batch.weights > 0, batch.document_lengths)[:, None]
            fresh.append(candidates[once])
            held += len(fresh[-1])
            if held > HELD:
                keys, counts = _merged(keys, counts, fresh)
                if len(keys) > HELD // 2:
                    keys, counts = keys[counts > 1], counts[counts > 1]
                fresh, held = [], 0
        return _merged(keys, counts, fresh)

    def _chosen(self, batches: Iterable[Batch]) -> Int64[np.ndarray, " rows"]:
        """Sorted keys of the phrases that are in enough documents."""
        keys, counts = self._counted(batches)
        if not len(keys):
            raise DataError(
                "no word of the training documents is in the vocabulary, so there is nothing to learn from; lower "
                "data.min_count, or raise data.max_vocabulary"
            )
        if counts.max() < self.least:
            raise DataError(
                f"no phrase is in {self.least} training documents or more, so there is nothing to learn from; "
                "give more documents, or lower model.least_documents"
            )
        least = max(self.least, _least_documents(counts, self.most))
        if counts.max() < least:
            raise DataError(
                f"{(counts == counts.max()).sum():,} phrases are in {counts.max():,} documents each, and there is room "
                f"for {self.most:,}; raise model.megabytes, or lower model.longest"
            )
        return keys[counts >= least]

    def _resize(self, rows: int, *, keep_keys: bool = False) -> None:
        if not keep_keys:
            self.register_buffer("keys", torch.zeros(rows, dtype=torch.int64))
        self.register_buffer("counts", torch.zeros(rows, self.classes))
        self.register_buffer("documents", torch.zeros(rows))
        self.table = nn.Parameter(torch.zeros(rows, self.classes))


def own_labels(batch: Batch, classes: int) -> Own:
    """The weight of each document, and where its classes are."""
    labels = torch.from_numpy(labels_of([batch]))
    weights = torch.ones(batch.n_documents) if batch.weights is None else torch.from_numpy(batch.weights)
    if labels.ndim == 2:
        return Own(labels * weights[:, None], weights)
    return Own(weights.new_zeros(len(weights), classes).scatter_(1, labels[:, None], weights[:, None]), weights)


def _one_by_one(own: Own) -> Iterator[tuple[Int64[Tensor, " documents"], Float[Tensor, " documents"]]]:
    """The first class of each document and its weight there, then the second, ...: 0 where it has no more. A number for
    each class and phrase would be gigabytes with 1,000 classes."""
    document, label = own.labels.nonzero(as_tuple=True)  # sorted by document
    number = torch.bincount(document, minlength=len(own.labels))  # of classes
    place = torch.arange(len(document)) - (number.cumsum(0) - number)[document]
    for i in range(int(number.max())):
        these = place == i
        classes, weights = torch.zeros_like(number), torch.zeros_like(own.weights)
        classes[document[these]] = label[these]
        weights[document[these]] = own.weights[document[these]]
        yield classes, weights


def _merged(
    keys: Int64[np.ndarray, " n"], counts: Int64[np.ndarray, " n"], fresh: list[np.ndarray]
) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Sorted keys and their counts, with fresh ones that count 1 each."""
    new, times = np.unique(np.concatenate([np.zeros(0, np.int64), *fresh]), return_counts=True)
    return merged_counts([keys, new], [counts, times])


def _least_documents(counts: Int64[np.ndarray, " n"], most: int) -> int:
    """The smallest number of documents that at most `most` phrases have."""
    if len(counts) <= most:
        return 1
    return int(np.partition(counts, len(counts) - most - 1)[len(counts) - most - 1]) + 1


def rows_that_fit(megabytes: float, classes: int, besides: int) -> int:
    """Phrases that a model file of this size has room for, with `besides` other numbers of 4 bytes. A phrase has a key
    of 8 bytes, its number of documents, and for each class a count and an entry of the table."""
    return max(int((megabytes * 1_000_000 - HEADER - 4 * (besides + classes)) // (8 + 4 + 8 * classes)), 0)


def saved_rows(tensors: Mapping[str, Tensor], name: str) -> int:
    """How many entries a saved tensor has, 0 where it is missing."""
    return tensors[name].numel() if name in tensors else 0
