"""Micro-batching: requests share a pass, each gets its own answer, one's fault is not another's."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from emhrnn.serve.engine import Engine
from emhrnn.serve.limits import Limits, RefusedError
from emhrnn.serve.written import Written


class Lengths:
    """A model whose answer is the length of the text; it holds its first pass until told."""

    def __init__(self) -> None:
        self.go, self.passes = threading.Event(), list[int]()

    def predict_proba(self, texts: list[str], *, users: list[str | None], products: list[str | None]) -> np.ndarray:
        assert len(users) == len(products) == len(texts)
        self.go.wait(10)
        self.passes.append(len(texts))
        if "bad" in texts:
            raise ValueError("bad text")
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    def explain(self, texts: list[str], *, users: list[str | None], products: list[str | None]) -> list[Any]:
        return []


def started(limits: Limits | None = None) -> tuple[Engine, Any]:
    model: Any = Lengths()
    engine = Engine(model, limits or Limits())
    engine.start()
    return engine, model


def test_what_arrives_together_shares_a_pass() -> None:
    engine, model = started()

    async def ask() -> list[Any]:
        asked = [asyncio.ensure_future(engine.predict([Written("x" * n)])) for n in range(1, 21)]
        await asyncio.sleep(0.05)
        model.go.set()
        return await asyncio.gather(*asked)

    answers = asyncio.run(ask())
    assert [answer.tolist() for answer in answers] == [[[n]] for n in range(1, 21)]
    assert sum(model.passes) == 20
    assert len(model.passes) <= 3  # the first may have left alone
    engine.stop()


def test_a_fault_hits_only_its_own_request() -> None:
    engine, model = started()

    async def ask() -> list[Any]:
        asked = [asyncio.ensure_future(engine.predict([Written(text)])) for text in ("good", "bad", "longer")]
        await asyncio.sleep(0.05)
        model.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    good, bad, longer = asyncio.run(ask())
    assert (good.tolist(), longer.tolist()) == ([[4]], [[6]])
    assert isinstance(bad, ValueError)
    engine.stop()


def test_too_many_and_too_slow_are_refused() -> None:
    engine, model = started(Limits(seconds=0.2, waiting=2))

    async def ask() -> list[Any]:
        return await asyncio.gather(*(engine.predict([Written("x")]) for _ in range(6)), return_exceptions=True)

    answers = asyncio.run(ask())
    told = [str(answer) for answer in answers if isinstance(answer, RefusedError)]
    assert any("waiting" in reason for reason in told)
    assert any("no answer within" in reason for reason in told)
    model.go.set()
    engine.stop()


def test_other_work_runs_in_the_same_thread() -> None:
    engine, model = started()
    model.go.set()
    assert asyncio.run(engine.run(lambda: threading.current_thread().name)) == "emhrnn-model"
    assert engine.wait(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        engine.wait(lambda: 1 // 0)
    engine.stop()
