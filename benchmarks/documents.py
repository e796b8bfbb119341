"""Documents with the lengths of real reviews, for benchmarks: log-normal with a given mean, sentences of 17 words."""

import numpy as np

from emhrnn.corpus.batch import Batch

VOCABULARY, CLASSES = 20_000, 5


def review_lengths(rng: np.random.Generator, documents: int = 64, words: int = 150) -> list[list[int]]:
    """Sentence lengths of each document; the mean document has about `words` words."""
    totals = np.clip(rng.lognormal(np.log(words) - 0.32, 0.8, documents), 10, 1000)
    totals *= words / totals.mean()
    return [sentences_of(rng, int(total)) for total in totals]


def sentences_of(rng: np.random.Generator, words: int) -> list[int]:
    """Sentence lengths that add up to `words`: 17 on average, 2 to 60."""
    lengths = np.clip(rng.gamma(3.0, 17 / 3.0, size=words // 2 + 1), 2, 60).astype(np.int64)
    ends = np.minimum(np.cumsum(lengths), words)
    return [int(n) for n in np.diff(ends, prepend=0) if n > 0]


def make_batch(rng: np.random.Generator, lengths: list[list[int]]) -> Batch:
    flat = np.array([n for document in lengths for n in document])
    return Batch(
        # frequent words have low ids
        words=np.minimum(rng.zipf(1.3, flat.sum()), VOCABULARY - 1).astype(np.int64),
        sentence_offsets=np.concatenate([[0], np.cumsum(flat)]),
        document_offsets=np.cumsum([0, *map(len, lengths)]),
        rows=np.arange(len(lengths)),
        labels=rng.integers(0, CLASSES, len(lengths)),
    )


def random_z(rng: np.random.Generator, batch: Batch, rate: float = 0.23) -> np.ndarray:
    return (rng.random(batch.n_words) < rate) | batch.sentence_final
