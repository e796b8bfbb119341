"""The runs that are served. One thread runs each model: what arrives while it is busy shares the next pass. A batch
forms under load, by itself, and a single request never waits for company.

    requests --> queue --> [ predict ] one pass over all their texts
                           [ explain ] one pass over all their texts
                           [ other   ] one after the other
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from fastapi import Request

from emhrnn.api import Model
from emhrnn.drift import Watch
from emhrnn.errors import EmhrnnError
from emhrnn.explain.explainer import explain_texts
from emhrnn.models.table import MODELS
from emhrnn.serve.guard import Token
from emhrnn.serve.limits import RefusedError, ServerLimits
from emhrnn.serve.metrics import Metrics

T = TypeVar("T")
TOGETHER = 64  # documents in one pass: enough to be fast, few enough to answer soon


class RequestText(NamedTuple):
    """A text as a request brings it; who wrote it and about what, for models that read that. None, or a name that
    training has not seen, is the average of those that it has."""

    text: str
    user: str | None = None
    product: str | None = None


def columns(documents: Iterable[RequestText]) -> tuple[list[str], list[str | None], list[str | None]]:
    """Texts, users and products, as the models take them."""
    listed = list(documents)
    return [d.text for d in listed], [d.user for d in listed], [d.product for d in listed]


@dataclass(frozen=True, eq=False)
class _Task:
    kind: Literal["predict", "explain", "other"]
    documents: list[RequestText] = field(default_factory=list)
    work: Callable[[], Any] | None = None
    future: "Future[Any]" = field(default_factory=Future)


class ServedRun:
    """A run and the thread that its model runs in. `predict`, `explain` and `submit` are for the event loop; `wait` is
    `submit` for another thread."""

    def __init__(
        self,
        name: str,
        folder: Path,
        model: Model,
        limits: ServerLimits,
        metrics: Metrics | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.name, self.folder, self.model, self.limits, self.watch = name, folder, model, limits, watch
        self.metrics = metrics or Metrics()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="emhrnn-model", daemon=True)

    @property
    def explains(self) -> bool:
        """Whether there are weights to show."""
        return "words" in self._shows

    @property
    def has_phrases(self) -> bool:
        """Whether it cuts sentences into phrases."""
        return "phrases" in self._shows

    @property
    def _shows(self) -> tuple[str, ...]:
        name = self.model.run.config.model.name
        return MODELS[name].shows if name in MODELS else ()

    @property
    def reads_ids(self) -> bool:
        """Whether who wrote a text, and about what, makes a difference."""
        return self.model.run.config.reads_ids

    @property
    def waiting(self) -> int:
        """Tasks in the queue."""
        return self._tasks.qsize()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """After what is waiting has been answered."""
        self._tasks.put(None)
        self._thread.join()

    def predict(self, documents: list[RequestText]) -> Coroutine[Any, Any, Any]:
        """Their probabilities, (documents, classes)."""
        self._check_ids(documents)
        return self._answer(_Task("predict", documents))

    def explain(self, documents: list[RequestText], threshold: float | None = None) -> Coroutine[Any, Any, Any]:
        """A list of their explanations."""
        self._check_ids(documents)
        run = self.model.run
        if not self.explains:
            raise RefusedError(
                422,
                f"{run.config.model.name} has no weights of words and sentences to explain with; serve a run of "
                "evidence or em-hrnn",
                code="not_explained",
            )
        if threshold is None:
            return self._answer(_Task("explain", documents))
        if run.model.boundary_threshold is None:
            raise RefusedError(
                422,
                f"{run.config.model.name} has no threshold for the ends of phrases; leave it out, or serve em-hrnn",
                code="no_threshold",
            )
        return self.submit(partial(explain_texts, run, columns(documents)[0], threshold=threshold))

    def submit(self, work: Callable[[], T]) -> Coroutine[Any, Any, T]:
        """Anything else that needs the model."""
        return self._answer(_Task("other", work=work))

    def wait(self, work: Callable[[], T]) -> T:
        """`submit` for a thread that is not the event loop's; it waits as long as it takes."""
        task = _Task("other", work=work)
        self._tasks.put(task)
        result: T = task.future.result()
        return result

    def _check_ids(self, documents: list[RequestText]) -> None:
        if any((d.user, d.product) != (None, None) for d in documents) and not self.reads_ids:
            raise RefusedError(
                422,
                f"{self.model.run.config.model.name} does not read who wrote a text, or about what; leave users and "
                "products out, or serve a run that was trained with ids",
                code="no_ids",
            )

    async def _answer(self, task: _Task) -> Any:
        if self.waiting >= self.limits.waiting:
            raise RefusedError(503, f"{self.waiting} requests are waiting for the model; try again in a second")
        self._tasks.put(task)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(task.future), self.limits.seconds)
        except TimeoutError:
            raise RefusedError(
                503, f"no answer within {self.limits.seconds:g} s; give shorter or fewer texts", code="timeout"
            ) from None
        except EmhrnnError as error:
            raise RefusedError(422, str(error)) from None

    # ------------------------------------------------------------------ in the thread

    def _work(self) -> None:
        stopping = False
        while not stopping:
            groups, stopping = self._next()
            while groups:
                group = groups.popleft()
                try:
                    if group[0].work is not None:
                        results = [group[0].work()]
                    else:
                        self.metrics.passes.inc()
                        texts, users, products = columns(document for task in group for document in task.documents)
                        ask = self.model.predict_proba if group[0].kind == "predict" else self.model.explain
                        results = _split(ask(texts, users=users, products=products), group)
                except BaseException as error:
                    if len(group) == 1:
                        group[0].future.set_exception(error)
                    else:  # one of them is at fault: find out which
                        groups.extend([task] for task in group)
                else:
                    for task, result in zip(group, results, strict=True):
                        task.future.set_result(result)
                    if group[0].kind == "predict" and self.watch is not None:  # when all have their answers
                        self.watch.add(self.model.run.encoder.encode(texts), np.concatenate(results))

    def _next(self) -> tuple[deque[list[_Task]], bool]:
        """Waits for a task, then takes along what has come in meanwhile, grouped by kind; and whether to stop."""
        kinds: dict[str, list[_Task]] = {"predict": [], "explain": [], "other": []}
        documents, stopping, task = 0, False, self._tasks.get()
        while True:
            if task is None:
                stopping = True
                break
            if task.future.set_running_or_notify_cancel():  # else nobody waits for it any more
                kinds[task.kind].append(task)
                documents += max(len(task.documents), 1)
            if documents >= TOGETHER:
                break
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
        shared = [group for group in (kinds["predict"], kinds["explain"]) if group]
        return deque([*shared, *([task] for task in kinds["other"])]), stopping


def _split(answers: Any, group: list[_Task]) -> list[Any]:
    parts, start = [], 0
    for task in group:
        parts.append(answers[start : start + len(task.documents)])
        start += len(task.documents)
    return parts


@dataclass(frozen=True, eq=False)
class ServerState:
    """What the pages and the API share."""

    runs: tuple[ServedRun, ...]
    limits: ServerLimits
    data: Path | None
    token: Token | None
    metrics: Metrics

    def named(self, name: str | None) -> ServedRun:
        """The run of this name; the first for None. Raises a RefusedError (422) where there is none."""
        if name is None:
            return self.runs[0]
        for run in self.runs:
            if run.name == name:
                return run
        names = " or ".join(dict.fromkeys(repr(run.name) for run in self.runs))
        raise RefusedError(
            422, f"run {name[:80]!r} is not served; give {names}, or leave it out for the first one", code="unknown_run"
        )


def state_of(request: Request) -> ServerState:
    """That of the application which answers the request."""
    state: ServerState = request.app.state.emhrnn
    return state
