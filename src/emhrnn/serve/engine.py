"""One thread runs a model. What arrives while it is busy shares the next pass: a batch forms under load, by itself, and
a single request never waits for company.

    requests --> queue --> [ predict ] one pass over all their texts
                           [ explain ] one pass over all their texts
                           [ other   ] one after the other
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float32

from emhrnn.explain.explanation import Explanation
from emhrnn.serve.limits import Limits, RefusedError
from emhrnn.serve.written import Written, columns_of

T = TypeVar("T")
TOGETHER = 64  # documents in one pass: enough to be fast, few enough to answer soon


@dataclass(frozen=True, eq=False)
class _Task:
    kind: Literal["predict", "explain", "other"]
    documents: list[Written] = field(default_factory=list)
    work: Callable[[], Any] | None = None
    future: "Future[Any]" = field(default_factory=Future)


@runtime_checkable
class Answers(Protocol):
    """What the thread asks of a model; `products.Model` is one."""

    def predict_proba(
        self, texts: Sequence[str], *, users: Sequence[str | None], products: Sequence[str | None]
    ) -> Float32[np.ndarray, "texts classes"]: ...

    def explain(
        self, texts: Sequence[str], *, users: Sequence[str | None], products: Sequence[str | None]
    ) -> list[Explanation]: ...


class Engine:
    """`predict`, `explain` and `run` are for the event loop; `wait` is the same as `run` for another thread."""

    def __init__(self, model: Answers, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.passes = 0  # of the model, for the metrics
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="emhrnn-model", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """After what is waiting has been answered."""
        self._tasks.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        return self._tasks.qsize()

    async def predict(self, documents: list[Written]) -> Float32[np.ndarray, "documents classes"]:
        probabilities: np.ndarray = await self._answer(_Task("predict", documents))
        return probabilities

    async def explain(self, documents: list[Written]) -> list[Explanation]:
        explanations: list[Explanation] = await self._answer(_Task("explain", documents))
        return explanations

    async def run(self, work: Callable[[], T]) -> T:
        """Anything else that needs the model."""
        result: T = await self._answer(_Task("other", work=work))
        return result

    def wait(self, work: Callable[[], T]) -> T:
        task = _Task("other", work=work)
        self._tasks.put(task)
        result: T = task.future.result()
        return result

    async def _answer(self, task: _Task) -> Any:
        if self.waiting >= self.limits.waiting:
            raise RefusedError(503, f"{self.waiting} requests are waiting for the model; try again in a second")
        self._tasks.put(task)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(task.future), self.limits.seconds)
        except TimeoutError:
            raise RefusedError(
                503, f"no answer within {self.limits.seconds:g} s; give shorter or fewer texts"
            ) from None

    # ------------------------------------------------------------------ in the thread

    def _work(self) -> None:
        while True:
            tasks, stopping = self._next()
            for group in _groups(tasks):
                self._do(group)
            if stopping:
                return

    def _next(self) -> tuple[list[_Task], bool]:
        """Waits for a task, then takes along what has come in meanwhile."""
        tasks: list[_Task] = []
        documents, task = 0, self._tasks.get()
        while task is not None:
            if task.future.set_running_or_notify_cancel():  # else nobody waits for it any more
                tasks.append(task)
                documents += max(len(task.documents), 1)
            if documents >= TOGETHER:
                return tasks, False
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return tasks, False
        return tasks, True

    def _do(self, group: list[_Task]) -> None:
        try:
            results = self._results(group)
        except BaseException as error:
            if len(group) == 1:
                group[0].future.set_exception(error)
            else:  # one of them is at fault: find out which
                for task in group:
                    self._do([task])
            return
        for task, result in zip(group, results, strict=True):
            task.future.set_result(result)

    def _results(self, group: list[_Task]) -> list[Any]:
        first = group[0]
        if first.work is not None:
            return [first.work()]
        self.passes += 1
        asked = columns_of([document for task in group for document in task.documents])
        answer = self.model.predict_proba if first.kind == "predict" else self.model.explain
        answers = answer(asked.texts, users=asked.users, products=asked.products)
        return _split(answers, [len(task.documents) for task in group])


def _groups(tasks: Sequence[_Task]) -> list[list[_Task]]:
    kinds: dict[str, list[_Task]] = {"predict": [], "explain": []}
    others = [[task] for task in tasks if task.kind == "other"]
    for task in tasks:
        if task.kind != "other":
            kinds[task.kind].append(task)
    return [group for group in kinds.values() if group] + others


def _split(answers: Any, counts: list[int]) -> list[Any]:
    parts, start = [], 0
    for count in counts:
        parts.append(answers[start : start + count])
        start += count
    return parts
