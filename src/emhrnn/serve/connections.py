"""Bounds that ASGI cannot set: on the head of a request before it is whole, and on the time to take an answer.

A protocol of ours stands between the socket and the protocol that uvicorn chose, and passes everything on. It uses
what asyncio documents of protocols and transports, and nothing of uvicorn's classes; the guard tells it when a request
begins and ends. The body of a request is bounded by the guard.

    idle ----first byte----> head ----whole, guard called----> answering ----answered----> idle
    closed after body_seconds  closed after body_seconds; 431     aborted if the client takes too little
"""

import asyncio
import json
from contextvars import ContextVar
from typing import Any

import uvicorn

from emhrnn.serve.limits import RefusedError, ServerLimits

END = b"\r\n\r\n"  # of a head


class Connection(asyncio.Protocol):
    """One connection, with its clocks. `opened` are all that are open."""

    transport: asyncio.Transport

    def __init__(self, inner: asyncio.Protocol, limits: ServerLimits, opened: "set[Connection]") -> None:
        self.inner, self.limits, self.opened = inner, limits, opened
        self.loop = asyncio.get_running_loop()
        self.answering = 0  # requests; a second one waits for the first
        self._clock: asyncio.TimerHandle | None = None  # until a head is whole
        self._taking: asyncio.TimerHandle | None = None  # until more of an answer is taken
        self._refused = False
        self._idle()

    def _idle(self) -> None:
        self._head = True  # what arrives is the head of a request
        self._size, self._tail = 0, b""  # bytes since the last request, and the last of them

    # ------------------------------------------------------------------ from the guard

    def begin(self) -> None:
        """The head of a request is whole."""
        self.answering += 1
        self._head = False
        self._stop_clock()

    def end(self) -> None:
        """The request is answered."""
        self.answering -= 1
        if not self.answering and self in self.opened:
            self._idle()
            self._start_clock()

    # ------------------------------------------------------------------ from the socket

    def connection_made(self, transport: Any) -> None:  # uvloop's are no subclass of asyncio's
        self.transport = transport
        self.opened.add(self)
        self.inner.connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # writing pauses until all of an answer is taken, not most of it
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._head:
            if not self._size:
                self._start_clock()
            window = self._tail + data
            end = window.find(END)
            if self._size - len(self._tail) + (end if end >= 0 else len(window)) > self.limits.head_bytes:
                self._refuse()
                return
            self._head, self._tail = end < 0, window[-len(END) + 1 :]
        self._size += len(data)
        if self._size > self.limits.upload_bytes + 2 * self.limits.head_bytes:
            self.transport.abort()
            return
        CONNECTION.set(self)  # the task that answers inherits it
        self.inner.data_received(data)

    def _refuse(self) -> None:
        """Answer 431, then read on without keeping anything until the clock ends: a client that is still sending would
        see a broken connection instead of the answer."""
        most = self.limits.head_bytes >> 10
        reason = f"request line and headers have more than {most} KB; send fewer or shorter ones"
        body = json.dumps(RefusedError(431, reason).body(None))
        head = "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
        self.transport.write_eof()
        self._refused = True

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.opened.discard(self)
        self._stop_clock()
        self._stop_taking()
        self.inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self.inner.pause_writing()
        self._watch_taking()

    def resume_writing(self) -> None:
        self.inner.resume_writing()
        self._stop_taking()

    # ------------------------------------------------------------------ clocks

    def _start_clock(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(self.limits.body_seconds, self.transport.close)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _watch_taking(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(self.limits.body_seconds, self._look, left)

    def _look(self, before: int) -> None:
        """Not `close`, which waits until everything is taken."""
        if before - self.transport.get_write_buffer_size() < self.limits.taken_bytes:
            self.transport.abort()
        else:
            self._watch_taking()

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None


CONNECTION: ContextVar[Connection | None] = ContextVar("emhrnn-connection", default=None)  # of the task that answers


def bound_connections(config: uvicorn.Config, limits: ServerLimits) -> uvicorn.Config:
    """The configuration of a server whose connections are bounded."""
    config.load()
    inner, opened = config.http_protocol_class, set[Connection]()
    config.http_protocol_class = lambda **given: Connection(inner(**given), limits, opened)  # type: ignore[assignment]
    return config
