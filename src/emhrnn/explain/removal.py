"""Documents with some of their words taken out: what a prediction would be without a word, a phrase or a sentence.

Phrases that stay keep their boundaries, so that the only thing that changes is what was taken out:

    words     a  b  c | d  e | f  g  h |          take out d e:    a  b  c | f  g  h |
    phrases   0  0  0   1  1   2  2  2

A sentence of which nothing is left is gone. A document of which nothing is left is one unknown word, as everywhere.
"""

import numpy as np
import torch
from jaxtyping import Bool

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.ragged import offsets_of
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output
from emhrnn.training.run import Run

UNKNOWN_WORD = 0


def without(
    batch: Batch, z: Bool[np.ndarray, " words"], keep: Bool[np.ndarray, " words"]
) -> tuple[Batch, Bool[np.ndarray, " left"]]:
    """The batch of the words to keep, and z among them. A phrase ends at the last of its words that is left."""
    words, keep = batch.words, keep.copy()
    document_of_word = batch.document_of_sentence[batch.sentence_of_word]
    empty = np.bincount(document_of_word, weights=keep, minlength=batch.n_documents) == 0
    if empty.any():
        first = batch.word_offsets[:-1][empty]
        words = words.copy()
        words[first], keep[first] = UNKNOWN_WORD, True
    phrase = (np.cumsum(z) - z)[keep]  # (left,)
    left = np.concatenate([phrase[1:] != phrase[:-1], [True]])
    lengths = np.bincount(batch.sentence_of_word, weights=keep, minlength=batch.n_sentences).astype(np.int64)
    sentences = np.bincount(batch.document_of_sentence, weights=lengths > 0, minlength=batch.n_documents)
    smaller = Batch(
        words=words[keep],
        sentence_offsets=np.concatenate([[0], np.cumsum(lengths[lengths > 0])]),
        document_offsets=np.concatenate([[0], np.cumsum(sentences.astype(np.int64))]),
        rows=batch.rows,
        labels=batch.labels,
        users=batch.users,
        products=batch.products,
    )
    return smaller, left


def repeated(batch: Batch, times: int) -> Batch:
    """The documents of a batch, all of them again and again: to take out something else in each copy."""
    return Batch(
        words=np.tile(batch.words, times),
        sentence_offsets=offsets_of(np.tile(batch.sentence_lengths, times)),
        document_offsets=offsets_of(np.tile(np.diff(batch.document_offsets), times)),
        rows=np.tile(batch.rows, times),
        labels=None if batch.labels is None else np.concatenate([batch.labels] * times),
        users=None if batch.users is None else np.tile(batch.users, times),
        products=None if batch.products is None else np.tile(batch.products, times),
    )


@torch.inference_mode()
def encode(run: Run, batch: Batch, z: Bool[np.ndarray, " words"]) -> Output:
    """The model on given phrases. A model without latent phrases has no use for them."""
    if isinstance(run.model, EMHRNN):
        return run.model.encode(batch, run.model.words(batch), z)
    output: Output = run.model(batch)
    return output
