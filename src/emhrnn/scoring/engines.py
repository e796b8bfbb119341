"""Chunks to parts, in order: by worker processes on one machine, or by the same function on Ray Data.

Local workers load the run once each. They are fed through pipes that only they hold, so that all of them end when this
process is killed.

On Ray, one task reads the data and streams chunks, actors score them, and parts come here in order. With RAY_ADDRESS
set (or on a machine of a running cluster with `auto`), the cluster is used; run and data must lie where all its
machines see them. Otherwise a small Ray is started here and stopped at the end. What Ray loses with a worker it
computes again: a chunk gives the same bytes wherever it is scored, and every part arrives exactly once.
"""

import logging
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

import numpy as np
import torch

from emhrnn.errors import ConfigError, DataError, EmhrnnError
from emhrnn.scoring.chunks import Data, ResumePoint, RowChunk, read_chunks
from emhrnn.scoring.output import COUNTS, ScoredPart
from emhrnn.scoring.scorer import Scorer, Task

AHEAD = 2  # chunks that a worker has at hand, so that it never waits

Scored = tuple[RowChunk, ScoredPart]


def score_locally(chunks: Iterator[RowChunk], task: Task, workers: int) -> Iterator[Scored]:
    """Each chunk with its part, in order. Few chunks are not worth starting processes for; the result is the same."""
    few = list(islice(chunks, AHEAD + 1))
    if workers == 1 or len(few) <= AHEAD:
        with _one_thread():
            scorer = Scorer(task)
            for chunk in chain(few, chunks):
                yield chunk, scorer(chunk.payload)
    else:
        yield from _in_processes(chain(few, chunks), task, workers)


def _in_processes(chunks: Iterator[RowChunk], task: Task, workers: int) -> Iterator[Scored]:
    with ExitStack() as stack:
        pool = [stack.enter_context(_worker(task)) for _ in range(workers)]
        at_work: dict[Connection, deque[RowChunk]] = {worker: deque() for worker in pool}
        done: dict[int, Scored] = {}
        waiting: deque[int] = deque()  # numbers of the chunks that are out, in order

        while True:
            while len(waiting) < AHEAD * workers and (chunk := next(chunks, None)) is not None:
                worker = min(pool, key=lambda worker: len(at_work[worker]))
                _send(worker, chunk.payload)
                at_work[worker].append(chunk)
                waiting.append(chunk.number)
            if not waiting:
                return
            ready = wait([worker for worker in pool if at_work[worker]])
            for worker in (worker for worker in pool if worker in ready):
                part = _receive(worker)
                chunk = at_work[worker].popleft()
                done[chunk.number] = (chunk, part)
            while waiting and waiting[0] in done:
                yield done.pop(waiting.popleft())


@contextmanager
def _worker(task: Task) -> Iterator[Connection]:
    # A fresh process: a fork would copy the state of threads that Arrow or torch may already run.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, task), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.terminate()
        process.join()


def _work(connection: Connection, task: Task) -> None:
    """In the worker: chunks in, parts out, until the pipe ends."""
    chunks: SimpleQueue[bytes | None] = SimpleQueue()
    threading.Thread(target=_listen, args=(connection, chunks), daemon=True).start()
    try:
        scorer = Scorer(task)
        while (payload := chunks.get()) is not None:
            connection.send(scorer(payload))
    except EmhrnnError as error:
        connection.send(error)
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # nobody is waiting any more


def _listen(connection: Connection, chunks: "SimpleQueue[bytes | None]") -> None:
    """Takes chunks out of the pipe at once, so that neither side ever waits for the other to read."""
    try:
        while True:
            chunks.put(connection.recv_bytes())
    except (EOFError, OSError):
        chunks.put(None)


def _send(worker: Connection, payload: bytes) -> None:
    try:
        worker.send_bytes(payload)
    except OSError:
        _receive(worker)  # its last word, if it had one
        raise _ended_early() from None


def _receive(worker: Connection) -> ScoredPart:
    try:
        answer = worker.recv()
    except (EOFError, OSError):
        raise _ended_early() from None
    if isinstance(answer, EmhrnnError):
        raise answer
    assert isinstance(answer, ScoredPart)
    return answer


def _ended_early() -> DataError:
    return DataError(
        "a worker process ended early: memory ran out, or it was killed; what is done is kept: give the same command "
        "again to go on, with fewer --workers if memory is short"
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


OBJECT_STORE_BYTES = 150 << 20  # of a Ray that is started here: chunks on their way, a few megabytes each
BLOCK_BYTES = 1 << 20  # smaller than a chunk, so that each goes on as soon as it is read


def score_on_ray(data: Data, start: ResumePoint, task: Task, workers: int) -> Iterator[Scored]:
    """Each chunk from `start` on with its part, in order.

    Raises:
        ConfigError: Ray is not installed.
        EmhrnnError: as reading and scoring do.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray.data
    except ImportError:
        raise ConfigError("--engine ray needs Ray; install it with: pip install 'emhrnn[ray]'") from None
    data = replace(data, paths=tuple(path.absolute() for path in data.paths))
    task = replace(task, run=task.run.absolute())
    with _running(ray, workers):
        context = ray.data.DataContext.get_current()
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context.execution_options.preserve_order = True
        context.target_max_block_size = BLOCK_BYTES
        context.enable_progress_bars = False
        scored = (
            ray.data.from_items([{"start": 0}])
            .map_batches(lambda _: _read(data, start), batch_size=None, num_cpus=0)
            .map_batches(
                _RayScorer, fn_constructor_args=(task,), batch_size=1, compute=ray.data.ActorPoolStrategy(size=workers),
                num_cpus=1,
            )
        )  # fmt: skip
        try:
            for row in scored.iter_rows():
                yield _scored(row)
        except Exception as error:
            raise _own(error) from error


def _read(data: Data, start: ResumePoint) -> Iterator[dict[str, Any]]:
    """In the task that reads: one row of the data set per chunk."""
    for chunk in read_chunks(data, start):
        yield {
            "number": np.array([chunk.number]),
            "payload": np.array([chunk.payload], dtype=object),
            "digest": np.array([chunk.digest], dtype=object),
            "done": np.array([chunk.done]),
        }


class _RayScorer:
    """In an actor: holds the run."""

    def __init__(self, task: Task) -> None:
        self._scorer = Scorer(task)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        parts = [self._scorer(payload) for payload in batch.pop("payload")]
        return {
            **batch,
            **{name: np.array([getattr(p, name) for p in parts], dtype=object) for name in ("rows", "errors")},
            **{name: np.array([getattr(p, name) for p in parts]) for name in COUNTS},
        }


def _scored(row: dict[str, Any]) -> Scored:
    part = ScoredPart(rows=row["rows"], errors=row["errors"], **{name: int(row[name]) for name in COUNTS})
    return RowChunk(int(row["number"]), b"", row["digest"], int(row["done"])), part


@contextmanager
def _running(ray: Any, workers: int) -> Iterator[None]:
    """The cluster that there is, or one of our own."""
    if ray.is_initialized():
        yield
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    else:
        ray.init(
            num_cpus=workers, object_store_memory=OBJECT_STORE_BYTES, include_dashboard=False,
            log_to_driver=False, logging_level=logging.ERROR,
        )  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()


def _own(error: BaseException) -> BaseException:
    """The error of ours that Ray has wrapped, if there is one in it."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, EmhrnnError):
            return seen
        seen = getattr(seen, "cause", None) or seen.__cause__
    return error
