"""The Ray engine: the same chunks and the same batch function on Ray Data, on this machine or on a cluster.

    one task reads the data and streams chunks  ->  actors score them  ->  parts come here in order

With RAY_ADDRESS set (or on a machine of a running cluster with `auto`), the cluster is used; run and data must lie
where all its machines see them. Otherwise a small Ray is started here and stopped at the end. What Ray loses with a
worker it computes again: a chunk gives the same bytes wherever it is scored, and every part arrives exactly once.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError, EmhrnnError
from emhrnn.scoring.chunks import Chunk, Data, Place, read_chunks
from emhrnn.scoring.local import Scored
from emhrnn.scoring.scorer import COUNTS, Part, Scorer, Task

OBJECT_STORE_BYTES = 150 << 20  # of a Ray that is started here: chunks on their way, a few megabytes each
BLOCK_BYTES = 1 << 20  # smaller than a chunk, so that each goes on as soon as it is read


def score_on_ray(data: Data, start: Place, task: Task, workers: int) -> Iterator[Scored]:
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


def _read(data: Data, start: Place) -> Iterator[dict[str, Any]]:
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
    part = Part(rows=row["rows"], errors=row["errors"], **{name: int(row[name]) for name in COUNTS})
    return Chunk(int(row["number"]), b"", row["digest"], int(row["done"])), part


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
