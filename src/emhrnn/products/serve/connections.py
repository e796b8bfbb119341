"""Connections that say nothing are closed: whoever opens many of them must not keep others out.

The body of a request is timed by the guard; its head never reaches us before it is whole, so it is timed here.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


def impatient(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's own protocol, which gives a new connection `seconds` to begin its first request."""

    class Impatient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.loop.call_later(seconds, self._give_up)

        def _give_up(self) -> None:
            if self.cycle is None and not self.transport.is_closing():  # no request has begun
                self.transport.close()

    return Impatient
