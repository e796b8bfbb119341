"""Connections over the wire: heads that do not arrive, answers that are not taken, more connections than are served."""

import asyncio
import http.client
import json
import socket
import threading
import time
from contextlib import closing, suppress
from typing import Any

import pytest

from emhrnn.serve.guard import Guard
from emhrnn.serve.limits import ServerLimits
from emhrnn.serve.metrics import Metrics
from tests.serve.conftest import running

ASK = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
PAUSE = 0.05


LARGE = b"x" * (32 << 20)  # more than the system takes for a client that does not read


def served(limits: ServerLimits, seconds: float = 0.0, body: bytes = b"ok") -> running:
    """An application that takes these seconds for every answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(seconds)
        length = str(len(body)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": body})

    guard = Guard(app, limits=limits, metrics=Metrics(), hosts=None, token=None)
    return running(guard, limits, lifespan="off")


def opened(base: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(base.rpartition(":")[2])), timeout=20)


def is_answered(connection: socket.socket, requests: int = 1) -> bool:
    came = b""
    while came.count(b"\r\n\r\nok") < requests:
        part = connection.recv(4096)
        if not part:
            return False
        came += part
    return came.count(b"HTTP/1.1 200 ") == requests


def is_closed_while_it_sends(connection: socket.socket, head: bytes) -> bool:
    """Whether a head that arrives byte by byte is cut off before its end."""
    connection.settimeout(PAUSE)
    for byte in head:
        try:
            connection.sendall(bytes([byte]))
            return connection.recv(4096) == b""
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("requests", [0, 1, 2])
def test_a_head_that_does_not_arrive_is_cut_off(requests: int) -> None:
    """However many requests of its connection were answered before, and though its bytes keep coming."""
    with served(ServerLimits(body_seconds=2.0)) as base, closing(opened(base)) as silent, closing(opened(base)) as slow:
        for connection in (silent, slow):
            for _ in range(requests):
                connection.sendall(ASK)
                assert is_answered(connection)
            connection.sendall(b"G")
        assert is_closed_while_it_sends(slow, b"ET / HTTP/1.1\r\nhost: " + b"x" * 400)
        assert silent.recv(10) == b""


def test_an_answer_may_take_longer_than_a_head() -> None:
    with served(ServerLimits(body_seconds=2.0), seconds=2.5) as base, closing(opened(base)) as connection:
        connection.sendall(ASK[:9])
        time.sleep(PAUSE)
        connection.sendall(ASK[9:])
        assert is_answered(connection)
        connection.sendall(ASK + ASK)  # the second waits for the first
        assert is_answered(connection, 2)


@pytest.mark.parametrize("requests", [0, 1])
def test_a_large_head_is_refused(requests: int) -> None:
    """Whether it is whole or never ends; and a client that is still sending gets the answer."""
    most = ServerLimits.head_bytes
    fits = ASK[:-2] + b"x: " + b"y" * (most - len(ASK) - 10) + b"\r\n\r\n"
    large = ASK[:-2] + b"".join(b"x%d: %s\r\n" % (k, b"y" * 1000) for k in range(1000)) + b"\r\n"
    with served(ServerLimits(body_seconds=2.0)) as base:
        for head in (large, large[:-2]):
            with closing(opened(base)) as connection:
                for _ in range(requests):
                    connection.sendall(fits)
                    assert is_answered(connection)
                connection.sendall(head)
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
                assert answer.startswith(b"HTTP/1.1 431 ")
                assert "64 KB" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def test_heads_that_never_end_hold_nobody_up() -> None:
    """Eight connections that send headers as fast as they can: others are answered meanwhile, and each gets a 431."""
    answers, stopped = list[bytes](), threading.Event()

    def stream(base: str) -> None:
        with closing(opened(base)) as connection:
            connection.sendall(ASK[:-2])
            with suppress(OSError):
                while not stopped.is_set():
                    connection.sendall(b"x: %s\r\n" % (b"y" * 8000))
            answers.append(connection.recv(20))

    with served(ServerLimits(body_seconds=60.0)) as base:
        streams = [threading.Thread(target=stream, args=(base,)) for _ in range(8)]
        for one in streams:
            one.start()
        assert {status(base.removeprefix("http://")) for _ in range(20)} == {200}
        stopped.set()
        for one in streams:
            one.join()
    assert answers == [b"HTTP/1.1 431 Request"] * 8


def test_a_body_is_not_counted_as_head() -> None:
    body = b"x" * (1 << 20)
    with served(ServerLimits()) as base, closing(opened(base)) as connection:
        for _ in range(3):
            connection.sendall(ASK.replace(b"GET", b"POST")[:-2] + b"content-length: %d\r\n\r\n" % len(body) + body)
            assert is_answered(connection)


def has_connections(server: running) -> bool:
    return bool(server.server.server_state.connections)


def is_cut_off(server: running) -> bool:
    """Seen from the server: the system goes on offering the client what it took over."""
    return any(not has_connections(server) or time.sleep(PAUSE) for _ in range(400))


def test_an_answer_that_is_not_taken_is_cut_off() -> None:
    """Whether uvicorn keeps the connection for more requests or closes it, which waits for the client, too."""
    server = served(ServerLimits(body_seconds=0.5), body=LARGE)
    with server as base:
        for ask in (ASK, ASK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")):
            with closing(opened(base)) as connection:
                connection.sendall(ask)
                assert connection.recv(1)
                assert has_connections(server)
                assert is_cut_off(server)


def test_a_trickle_is_cut_off_and_a_slow_reader_gets_all() -> None:
    server = served(ServerLimits(body_seconds=1.0, taken_bytes=1 << 20), body=LARGE)
    with server as base:
        with closing(opened(base)) as trickle:
            trickle.sendall(ASK)
            while trickle.recv(10) and has_connections(server):
                time.sleep(PAUSE)
        with closing(opened(base)) as slow:
            slow.sendall(ASK)
            taken = 0
            while taken < len(LARGE):
                part = slow.recv(1 << 19)
                assert part
                taken += len(part)
                time.sleep(PAUSE / 2)


def test_more_connections_than_are_served() -> None:
    with served(ServerLimits(connections=2, body_seconds=20.0)) as base:
        idle = [opened(base) for _ in range(2)]
        place = base.removeprefix("http://")
        with closing(http.client.HTTPConnection(place, timeout=20)) as connection:
            for method in ("POST", "HEAD"):
                connection.request(method, "/v1/predict", b"{" if method == "POST" else None)
                answer = connection.getresponse()
                told = answer.read()
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                assert answer.headers["connection"] == "close"  # which makes room
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                if method == "POST":
                    expected = "3 connections are open, and at most 2 are served; try again in a second"
                    assert json.loads(told)["error"] == expected
        for connected in idle:
            connected.close()
        assert 200 in (status(place) for _ in range(100))  # soon: that they were closed arrives by and by


def status(place: str) -> int:
    with closing(http.client.HTTPConnection(place, timeout=20)) as connection, suppress(OSError):
        connection.request("GET", "/")
        return connection.getresponse().status
    return 0
