"""Connections that say nothing are closed, and too many are told so: whoever opens many must not keep others out.

The body of a request is timed by the guard; its head never reaches us before it is whole, so it is timed here.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from emhrnn.products.serve.guard import refusing
from emhrnn.products.serve.limits import Limits, RefusedError


def impatient(limits: Limits) -> type[asyncio.Protocol]:
    """uvicorn's own protocol. A connection is closed when the head of a request, the first or a later one, takes longer
    than a body may; between two requests uvicorn's own timer runs."""

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            self.app = self.config.loaded_app if self._has_room() else refusing(self._crowded())
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

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

        def _has_room(self) -> bool:
            return len(self.connections) <= limits.connections

        def _crowded(self) -> RefusedError:
            told = f"{len(self.connections):,} connections are open, and at most {limits.connections:,} are served"
            return RefusedError(503, f"{told}; try again in a second")

    return Impatient
