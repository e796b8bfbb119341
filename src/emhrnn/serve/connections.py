"""Connections that say nothing or do not listen are closed, and too many are told so: whoever opens many must not keep
others out.

The body of a request is timed by the guard; its head never reaches us before it is whole, so it is timed here. So is
an answer: written and not taken, it would hold its memory and its connection for good.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from emhrnn.serve.guard import refusing
from emhrnn.serve.limits import Limits, RefusedError


def impatient(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's own protocol. A connection is closed when the head of a request, the first or a later one, takes longer
    than a body may, or when the client takes next to nothing of its answer for as long; between two requests uvicorn's
    own timer runs."""

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None
        _taking: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.set_write_buffer_limits(high=0)  # writing pauses until all of an answer is taken, not most of it
            self._watch()

        def data_received(self, data: bytes) -> None:
            self.app = self.config.loaded_app if self._has_room() else refusing(self._crowded())
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            self._stop_taking()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch_taking()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stop_taking()

        def _watch(self) -> None:
            """Starts the timer where a head is not whole, unless it runs: more bytes are no more time."""
            if self.cycle is not None and not self.cycle.response_complete:  # a request is being answered
                self._stop_timer()
            elif self._timer is None:
                self._timer = self.loop.call_later(limits.body_seconds, self.transport.close)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _watch_taking(self) -> None:
            left = self.transport.get_write_buffer_size()
            self._taking = self.loop.call_later(limits.body_seconds, self._look, left)

        def _look(self, before: int) -> None:
            """Not `close`, which waits until everything is taken."""
            if before - self.transport.get_write_buffer_size() < limits.taken_bytes:
                self.transport.abort()
            else:
                self._watch_taking()

        def _stop_taking(self) -> None:
            if self._taking is not None:
                self._taking.cancel()
                self._taking = None

        def _has_room(self) -> bool:
            return len(self.connections) <= limits.connections

        def _crowded(self) -> RefusedError:
            told = f"{len(self.connections):,} connections are open, and at most {limits.connections:,} are served"
            return RefusedError(503, f"{told}; try again in a second")

    return Impatient
