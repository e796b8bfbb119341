"""What stands before every page and every call: who may ask, how much, and what never leaves the server.

host     a name that is not ours is refused: a page elsewhere cannot reach a server on this machine by renaming it
origin   a form on another site cannot post here
token    compared in constant time; a browser keeps a derived cookie after /login
size     413 for a larger body, 408 for one that does not arrive
answer   strict headers; a fault is one sentence with status 500, never a traceback
"""

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from emhrnn.serve.limits import Limits, RefusedError
from emhrnn.serve.telemetry import Telemetry

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIE = "emhrnn"
UPLOAD = "/corpus/upload"
OPEN = ("/healthz", "/login", "/static/")  # without a token
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer" our own forms would come from the origin "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
FAULT = "an error on the server; its log says more"
log = logging.getLogger("emhrnn.serve")


def session_of(token: str) -> str:
    """What the browser keeps instead of the token."""
    return hmac.new(token.encode(), b"emhrnn viewer session", hashlib.sha256).hexdigest()


def same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), right.encode())


class Guard:
    def __init__(
        self, app: App, *, limits: Limits, telemetry: Telemetry, hosts: frozenset[str] | None, token: str | None
    ) -> None:
        """`hosts` are the names this server answers to; None: any, which only a token makes safe."""
        self.app, self.limits, self.telemetry, self.hosts, self.token = app, limits, telemetry, hosts, token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, answer = time.perf_counter(), _Answer(send, bare=scope["method"] == "HEAD")
        asked = {**scope, "method": "GET"} if answer.bare else scope  # HEAD is GET without the body
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            self._admit(scope, headers)
            body = await self._body(scope["path"], headers, receive)
            await self.app(asked, _replay(body, receive), answer)
        except RefusedError as refused:
            await answer.refuse(refused)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a fault of ours while answering %s", scope["path"])
            await answer.refuse(RefusedError(500, FAULT))
        finally:
            route = getattr(asked.get("route"), "path", "other")
            self.telemetry.add(route, answer.status, time.perf_counter() - began)

    def _admit(self, scope: Message, headers: dict[str, str]) -> None:
        host, path = headers.get("host", ""), scope["path"]
        if self.hosts is not None and _name(host) not in self.hosts:
            raise RefusedError(403, f"this server answers as {', '.join(sorted(self.hosts))} only")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in ("GET", "HEAD") and not _same_site(origin, host):
            raise RefusedError(403, "the request comes from another site; open the viewer's own page")
        if self.token is None or path in OPEN or path.startswith(OPEN[-1]):
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and any(same(reading, self.token) for reading in _readings(given.strip(" \t"))):
            return
        session = session_of(self.token)
        if any(same(cookie, session) for cookie in _cookies(headers)):
            return
        raise RefusedError(401, "a token is needed: send `Authorization: Bearer TOKEN`, or open /login in a browser")

    async def _body(self, path: str, headers: dict[str, str], receive: Receive) -> bytes:
        limit = self.limits.upload_bytes if path == UPLOAD else self.limits.body_bytes
        told = headers.get("content-length", "0")
        if told.isdigit() and int(told) > limit:
            raise RefusedError(413, f"the request has {int(told):,} bytes; at most {limit:,} are taken")
        try:
            return await asyncio.wait_for(_read(receive, limit), self.limits.body_seconds)
        except TimeoutError:
            raise RefusedError(408, f"the request did not arrive within {self.limits.body_seconds:g} s") from None


async def _read(receive: Receive, limit: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection was closed before the request had arrived")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise RefusedError(413, f"the request has more than {limit:,} bytes, which is the most that is taken")
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Answer:
    """Passes the answer on with our headers; remembers whether it has begun, and how."""

    def __init__(self, send: Send, *, bare: bool) -> None:
        """`bare`: the headers only."""
        self.send, self.bare, self.status, self.begun = send, bare, 499, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        elif self.bare and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self.send(message)

    async def refuse(self, refused: RefusedError, *, unread: bool = False) -> None:
        """`unread`: the rest of the request will not be read."""
        if self.begun:
            return
        body = json.dumps({"error": refused.reason}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if refused.status == 503:
            headers.append((b"retry-after", b"1"))
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if unread or refused.status in (408, 413):
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def refusing(refused: RefusedError) -> App:
    """An application that gives every request this answer."""

    async def refuse(scope: Message, _: Receive, send: Send) -> None:
        await _Answer(send, bare=scope["method"] == "HEAD").refuse(refused, unread=True)

    return refuse


def _name(host: str) -> str:
    """Without the port: `[::1]:8000` and `localhost:8000`."""
    name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
    return name.strip("[]").lower()


def _same_site(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _readings(header: str) -> list[str]:
    """A header that came as Latin-1, and as UTF-8 where it can be that: clients send letters beyond ASCII as either."""
    return [header, header.encode("latin-1").decode("utf-8", "replace")]


def _cookies(headers: dict[str, str]) -> list[str]:
    """The values of ours. Others on this machine may be of any form, which `http.cookies` gives up on."""
    pairs = (pair.partition("=") for pair in headers.get("cookie", "").split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
