"""One tokenising pass: ids are given by first appearance, so that nothing has to be known of the words beforehand.

With several workers, processes tokenise while this one reads and writes. Each worker numbers the words as it meets
them and sends along the words that are new to it; they are renumbered here, in the order of the documents, so the
result does not depend on the number of workers.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace

import numpy as np

from emhrnn.corpus.record import Record
from emhrnn.errors import DataError
from emhrnn.text import UNK, Encoded, Text, TextSettings, WordEncoder


@dataclass(frozen=True, eq=False)
class RecordChunk:
    """Some records and their row numbers in the source, counted from 0."""

    records: list[Record]
    rows: list[int]

    def texts(self) -> list[Text]:
        return [record.text if record.sentences is None else record.sentences for record in self.records]

    def __len__(self) -> int:
        return len(self.records)

    def take(self, indices: list[int]) -> "RecordChunk":
        return RecordChunk([self.records[i] for i in indices], [self.rows[i] for i in indices])


class GrowingVocabulary:
    """A vocabulary that gives every new word the next id. Id 0 stays `<unk>`."""

    def __init__(self) -> None:
        self.words = [UNK]
        self._ids = {UNK: 0}

    def __len__(self) -> int:
        return len(self.words)

    def id_of(self, word: str) -> int:
        index = self._ids.setdefault(word, len(self.words))
        if index == len(self.words):
            self.words.append(word)
        return index


def encode_chunks(
    chunks: Iterable[RecordChunk], settings: TextSettings, vocabulary: GrowingVocabulary, workers: int = 1
) -> Iterator[tuple[RecordChunk, Encoded]]:
    """Each chunk of records with its words, in order."""
    if workers <= 1:
        encoder = WordEncoder(vocabulary, settings)
        for chunk in chunks:
            yield chunk, encoder.encode(chunk.texts())
    else:
        yield from _encode_in_processes(chunks, settings, vocabulary, workers)


@dataclass(frozen=True, eq=False)
class _WorkerResult:
    """A chunk in the worker's own numbering, with the words that the worker had not met before."""

    worker: int
    new_words: list[str]
    encoded: Encoded


def _encode_in_processes(
    chunks: Iterable[RecordChunk], settings: TextSettings, vocabulary: GrowingVocabulary, workers: int
) -> Iterator[tuple[RecordChunk, Encoded]]:
    tables: dict[int, _Renumbering] = {}
    waiting: deque[tuple[RecordChunk, Future[_WorkerResult]]] = deque()
    # Fresh processes: a fork would copy the state of threads that Arrow or torch may already run.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(settings,))

    def first_in_line() -> tuple[RecordChunk, Encoded]:
        chunk, future = waiting.popleft()
        result = future.result()
        table = tables.setdefault(result.worker, _Renumbering())
        return chunk, table.apply(result, vocabulary)

    try:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(_encode_in_worker, chunk.texts())))
            if len(waiting) > 2 * workers:  # enough to keep all busy, and no more in memory
                yield first_in_line()
        while waiting:
            yield first_in_line()
    except BrokenProcessPool:
        raise DataError(
            "a worker process ended early: memory ran out, or the script that called is not guarded by "
            "if __name__ == '__main__'; use workers=1"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Renumbering:
    """A worker's ids -> ours. A worker's chunks come in order, so its new words extend the table."""

    def __init__(self) -> None:
        self._table = np.zeros(1, dtype=np.int32)

    def apply(self, result: _WorkerResult, vocabulary: GrowingVocabulary) -> Encoded:
        new = np.fromiter(map(vocabulary.id_of, result.new_words), np.int32, len(result.new_words))
        self._table = np.concatenate([self._table, new])
        return replace(result.encoded, words=self._table[result.encoded.words])


class _Worker:
    """The state of a worker process."""

    vocabulary: GrowingVocabulary
    encoder: WordEncoder


def _start_worker(settings: TextSettings) -> None:
    _Worker.vocabulary = GrowingVocabulary()
    _Worker.encoder = WordEncoder(_Worker.vocabulary, settings)


def _encode_in_worker(texts: Sequence[Text]) -> _WorkerResult:
    known = len(_Worker.vocabulary)
    encoded = _Worker.encoder.encode(texts)
    return _WorkerResult(os.getpid(), _Worker.vocabulary.words[known:], encoded)
