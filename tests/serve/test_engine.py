"""Micro-batching: requests share a pass, each gets its own answer, one's fault is not another's."""

import asyncio
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emhrnn
from emhrnn.api import Model
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.serve.app import application
from emhrnn.serve.engine import RequestText, ServedRun
from emhrnn.serve.limits import RefusedError, ServerLimits

PACKAGE = Path(emhrnn.__file__).parent


class Lengths(Model):
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


def started(limits: ServerLimits | None = None) -> tuple[ServedRun, Any]:
    model: Any = Lengths()
    engine = ServedRun("run", Path("run"), model, limits or ServerLimits())
    engine.start()
    return engine, model


def test_what_arrives_together_shares_a_pass() -> None:
    engine, model = started()

    async def ask() -> list[Any]:
        asked = [asyncio.ensure_future(engine.predict([RequestText("x" * n)])) for n in range(1, 21)]
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
        asked = [asyncio.ensure_future(engine.predict([RequestText(text)])) for text in ("good", "bad", "longer")]
        await asyncio.sleep(0.05)
        model.go.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    good, bad, longer = asyncio.run(ask())
    assert (good.tolist(), longer.tolist()) == ([[4]], [[6]])
    assert isinstance(bad, ValueError)
    engine.stop()


def test_too_many_and_too_slow_are_refused() -> None:
    engine, model = started(ServerLimits(seconds=0.2, waiting=2))

    async def ask() -> list[Any]:
        return await asyncio.gather(*(engine.predict([RequestText("x")]) for _ in range(6)), return_exceptions=True)

    answers = asyncio.run(ask())
    told = [str(answer) for answer in answers if isinstance(answer, RefusedError)]
    assert any("waiting" in reason for reason in told)
    assert any("no answer within" in reason for reason in told)
    model.go.set()
    engine.stop()


def test_other_work_runs_in_the_same_thread() -> None:
    engine, model = started()
    model.go.set()
    assert asyncio.run(engine.submit(lambda: threading.current_thread().name)) == "emhrnn-model"
    assert engine.wait(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        engine.wait(lambda: 1 // 0)
    engine.stop()


def test_a_request_reaches_the_model_in_six_calls(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the handler of `/v1/predict` to the model's `infer`, all in this package: frames of the thread that runs the
    model, and of the handler that waits for it. The guard stands before the handler."""
    app: Any = application([run])
    infer, calls = EMHRNN.infer, list[str]()

    def watched(*given: Any, **named: Any) -> Any:
        waiting = request.get_coro()
        while hasattr(waiting, "cr_await"):
            _note(calls, waiting.cr_code)
            waiting = waiting.cr_await
        frames = [frame.f_code for frame, _ in traceback.walk_stack(sys._getframe(1))]
        for code in reversed(frames):
            _note(calls, code)
        return infer(*given, **named)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"text": "The soup was good."}'}

    async def send(message: dict[str, Any]) -> None:
        assert message.get("status", 200) == 200

    async def ask() -> None:
        nonlocal request
        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": headers, "query_string": b""}
        async with app.app.router.lifespan_context(app.app):
            request = asyncio.ensure_future(app(scope, receive, send))
            await request

    request: Any = None
    monkeypatch.setattr(EMHRNN, "infer", watched)
    asyncio.run(ask())
    assert calls[0] == "__call__"  # the guard
    assert [*calls[1:], "infer"] == ["predict", "_answer", "_work", "predict_proba", "predict", "infer"]


def _note(calls: list[str], code: Any) -> None:
    if PACKAGE in Path(code.co_filename).parents:
        calls.append(code.co_name)
