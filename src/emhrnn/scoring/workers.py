"""Chunks to parts, in order, in one process or several. Every worker loads the run once, when its first chunk comes."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice
from multiprocessing.connection import wait

from emhrnn.cores import set_threads, threads
from emhrnn.errors import DataError
from emhrnn.scoring.chunks import RowChunk
from emhrnn.scoring.output import ScoredPart
from emhrnn.scoring.scorer import Scorer, Task

AHEAD = 2  # chunks per worker that are submitted, so that no worker waits

Scored = tuple[RowChunk, ScoredPart]


def score_chunks(chunks: Iterator[RowChunk], task: Task, workers: int) -> Iterator[Scored]:
    """Each chunk with its part, in order. Processes are started only for more than a few chunks.

    Raises:
        DataError: a worker process was killed.
        EmhrnnError: the run cannot be loaded.
    """
    few = list(islice(chunks, AHEAD + 1))
    if workers == 1 or len(few) <= AHEAD:
        with _one_thread():
            scorer = Scorer(task)
            for chunk in chain(few, chunks):
                yield chunk, scorer(chunk.payload)
    else:
        yield from _in_processes(chain(few, chunks), task, workers)


def _in_processes(chunks: Iterator[RowChunk], task: Task, workers: int) -> Iterator[Scored]:
    # Spawned, because a fork would copy the state of threads that Arrow or torch may already run.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker)
    submitted: deque[tuple[RowChunk, Future[ScoredPart]]] = deque()
    try:
        for chunk in chunks:
            submitted.append((chunk, pool.submit(_score, task, chunk.payload)))
            if len(submitted) >= AHEAD * workers:
                chunk, part = submitted.popleft()
                yield chunk, part.result()
        for chunk, part in submitted:
            yield chunk, part.result()
    except BrokenProcessPool:
        raise DataError(
            "a worker process ended early: memory ran out, or it was killed; what is done is kept: give the same "
            "command again to resume, with fewer --workers if memory is short"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker() -> None:
    """Ctrl-C ends the worker without a traceback, and the end of the parent process, however it comes, ends it too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _score(task: Task, payload: bytes) -> ScoredPart:
    return _scorer(task)(payload)


@cache
def _scorer(task: Task) -> Scorer:
    return Scorer(task)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = threads()
    try:
        yield
    finally:
        set_threads(before)
