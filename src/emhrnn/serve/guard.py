"""What stands before every page and every call: who may ask, how much, and what never leaves the server.

host     a name that is not ours is refused: a page elsewhere cannot reach a server on this machine by renaming it
origin   a form on another site cannot post here
token    compared in constant time, wrong ones are throttled; a browser keeps a signed cookie after /login
size     413 for a larger body, 408 for one that does not arrive; connections.py bounds the head
answer   strict headers; a fault is one sentence with status 500, never a traceback
"""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from fastapi.responses import JSONResponse, RedirectResponse

from emhrnn.serve.connections import CONNECTION, Connection
from emhrnn.serve.limits import RefusedError, ServerLimits
from emhrnn.serve.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIE = "emhrnn"
SESSION_SECONDS = 12 * 3600
NAME = 60  # letters of who signs in
MINUTE, ADDRESSES = 60.0, 10_000
UPLOAD = "/corpus/upload"
OPEN = ("/healthz", "/v2/health/live", "/v2/health/ready", "/login", "/static/")  # without a token
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
RETRY = {429: "60", 503: "1"}  # seconds
REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
FAULT = "an error on the server; its log says more"
log = logging.getLogger("emhrnn.serve")


class Token:
    """The secret that clients must give. Wrong ones are counted by address, so that nobody tries many."""

    def __init__(self, secret: str, wrong: int = ServerLimits.wrong_tokens) -> None:
        """`wrong` ones are allowed per minute and address."""
        self.secret, self.wrong = secret, wrong
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # by address: how many, and until when
        self._ended: OrderedDict[str, None] = OrderedDict()  # sessions of people who signed out

    def check(self, scope: Message, *readings: str) -> None:
        """Raise a RefusedError unless one of the readings is the token: 401, or 429 after too many wrong ones, before
        it is looked at."""
        now, address = time.monotonic(), (scope.get("client") or ("",))[0]
        count, until = self._wrong.get(address, (0, 0.0))
        if until < now:
            count, until = 0, now + MINUTE
        if count >= self.wrong:
            raise RefusedError(429, f"{count} wrong tokens from this address; try again in a minute")
        if not any(_same(reading, self.secret) for reading in readings):
            self._wrong[address] = count + 1, until
            self._wrong.move_to_end(address)
            if len(self._wrong) > ADDRESSES:
                self._wrong.popitem(last=False)
            raise RefusedError(401, "that is not the token that the server was started with")

    def session(self, ends: int, who: str = "") -> str:
        """What the browser keeps instead of the token: when its session ends (seconds since the epoch), who signed in,
        and a signature."""
        told = f"{ends}.{quote(who[:NAME], safe='').replace('.', '%2E')}"
        signature = hmac.new(self.secret.encode(), f"emhrnn viewer session {told}".encode(), hashlib.sha256).hexdigest()
        return f"{told}.{signature}"

    def who(self, given: str) -> str | None:
        """Who signed in, maybe without a name; None unless we signed it, it has not ended and nobody signed out."""
        ends, _, rest = given.partition(".")
        if not (ends.isascii() and ends.isdigit() and len(ends) < 12) or int(ends) <= time.time():
            return None
        who = unquote(rest.partition(".")[0])
        return who if _same(given, self.session(int(ends), who)) and given not in self._ended else None

    def end(self, given: str) -> None:
        """Sign out: the session is not taken again, whoever has a copy of it."""
        if self.who(given) is not None:
            self._ended[given] = None
            if len(self._ended) > ADDRESSES:
                self._ended.popitem(last=False)


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), right.encode())


class Guard:
    """The ASGI application that everything passes first. `hosts` are the names this server answers to; None: any, which
    only a token makes safe."""

    def __init__(
        self, app: App, *, limits: ServerLimits, metrics: Metrics, hosts: frozenset[str] | None, token: Token | None
    ) -> None:
        self.app, self.limits, self.metrics, self.hosts, self.token = app, limits, metrics, hosts, token

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        number = headers.get("x-request-id", "")
        if not REQUEST_ID.fullmatch(number):
            number = secrets.token_hex(8)
        scope["request_id"] = number
        began, answer = time.perf_counter(), _Answer(send, number, bare=scope["method"] == "HEAD")
        asked = {**scope, "method": "GET"} if answer.bare else scope  # HEAD is GET without the body
        connection = CONNECTION.get()
        if connection is not None:
            connection.begin()
        try:
            self._make_room(connection)
            self._admit(scope, headers)
            body = await self._body(scope["path"], headers, receive)
            await self.app(asked, _replay(body, receive), answer)
        except RefusedError as refused:
            if refused.status == 401 and for_people(scope["path"], headers.get("accept", "")):
                await RedirectResponse(f"/login?next={quote(scope['path'])}", 303)(scope, receive, answer)
            elif not answer.begun:
                await refusal(refused, number)(scope, receive, answer)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("a fault of ours while answering %s (request %s)", scope["path"], number)
            if not answer.begun:
                await refusal(RefusedError(500, FAULT), number)(scope, receive, answer)
        finally:
            if connection is not None:
                connection.end()
            route = getattr(asked.get("route"), "path", "other")
            self.metrics.requests.labels(route, answer.status).inc()
            self.metrics.seconds.observe(time.perf_counter() - began)

    def _make_room(self, connection: Connection | None) -> None:
        if connection is not None and len(connection.opened) > self.limits.connections:
            raise RefusedError(
                503,
                f"{len(connection.opened):,} connections are open, and at most {self.limits.connections:,} are served; "
                "try again in a second",
                close=True,
            )

    def _admit(self, scope: Message, headers: dict[str, str]) -> None:
        host, path = headers.get("host", ""), scope["path"]
        if self.hosts is not None and _name(host) not in self.hosts:
            raise RefusedError(403, f"this server answers as {', '.join(sorted(self.hosts))} only")
        origin = headers.get("origin")
        if origin is not None and scope["method"] not in ("GET", "HEAD") and not _same_site(origin, host):
            raise RefusedError(403, "the request comes from another site; open the viewer's own page")
        if self.token is None or path in OPEN or path.startswith(OPEN[-1]):
            return
        for cookie in cookies(headers):
            if (who := self.token.who(cookie)) is not None:
                scope["who"] = who
                return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            self.token.check(scope, *_readings(given.strip(" \t")))
            scope["who"] = ""
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


def for_people(path: str, accept: str) -> bool:
    """Whether an answer is a page rather than JSON."""
    return "text/html" in accept and not path.startswith(("/v1/", "/v2/"))


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

    def __init__(self, send: Send, number: str, *, bare: bool) -> None:
        """`number` of the request; `bare`: the headers only."""
        self.send, self.bare, self.status, self.begun = send, bare, 499, False
        self.headers = [*_HEADERS, (b"x-request-id", number.encode())]

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            message["headers"] = [*message.get("headers", []), *self.headers]
        elif self.bare and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self.send(message)


def refusal(refused: RefusedError, number: str) -> JSONResponse:
    """The answer to the request of this number."""
    headers = {"retry-after": RETRY[refused.status]} if refused.status in RETRY else {}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refused.close or refused.status in (408, 413):  # the rest of the request will not be read
        headers["connection"] = "close"
    return JSONResponse(refused.body(number), refused.status, headers)


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


def cookies(headers: dict[str, str]) -> list[str]:
    """The values of ours. Others on this machine may be of any form, which `http.cookies` gives up on."""
    pairs = (pair.partition("=") for pair in headers.get("cookie", "").split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
