"""The local engine: worker processes on one machine. Each loads the run once; parts come back in order.

Workers are fed through pipes that only they hold, so that all of them end when this process is killed.
"""

import multiprocessing
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue

import torch

from emhrnn.errors import DataError, EmhrnnError
from emhrnn.scoring.chunks import Chunk
from emhrnn.scoring.scorer import Part, Scorer, Task

AHEAD = 2  # chunks that a worker has at hand, so that it never waits

Scored = tuple[Chunk, Part]


def score_locally(chunks: Iterator[Chunk], task: Task, workers: int) -> Iterator[Scored]:
    """Each chunk with its part, in order. Few chunks are not worth starting processes for; the result is the same."""
    few = list(islice(chunks, AHEAD + 1))
    if workers == 1 or len(few) <= AHEAD:
        with _one_thread():
            scorer = Scorer(task)
            for chunk in chain(few, chunks):
                yield chunk, scorer(chunk.payload)
    else:
        yield from _in_processes(chain(few, chunks), task, workers)


def _in_processes(chunks: Iterator[Chunk], task: Task, workers: int) -> Iterator[Scored]:
    with ExitStack() as stack:
        pool = [stack.enter_context(_worker(task)) for _ in range(workers)]
        at_work: dict[Connection, deque[Chunk]] = {worker: deque() for worker in pool}
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


def _receive(worker: Connection) -> Part:
    try:
        answer = worker.recv()
    except (EOFError, OSError):
        raise _ended_early() from None
    if isinstance(answer, EmhrnnError):
        raise answer
    assert isinstance(answer, Part)
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
