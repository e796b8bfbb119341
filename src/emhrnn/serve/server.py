"""Start the server on runs, and stop it well."""

import gc
import ipaddress
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import torch
import uvicorn

from emhrnn.api import load
from emhrnn.errors import ConfigError, DataError
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.serve.app import make_app
from emhrnn.serve.connections import impatient
from emhrnn.serve.engine import Engine
from emhrnn.serve.guard import App
from emhrnn.serve.limits import Limits
from emhrnn.serve.state import Served, State

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
DRAIN_SECONDS = 30
TOKEN_LETTERS = 8


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check(runs: Sequence[Path], host: str, token: str | None, data: Path | None) -> None:
    """Raise for what cannot be served, before a model is loaded."""
    if not 1 <= len(runs) <= 2:
        raise ConfigError(f"{len(runs)} runs were given; give one, or two to compare")
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{host} can be reached from other machines; give --token T (or EMHRNN_TOKEN), or stay with 127.0.0.1"
        )
    if token is not None and len(token) < TOKEN_LETTERS:
        raise ConfigError(f"a token of {len(token)} letters is soon guessed; give at least {TOKEN_LETTERS}")
    if data is not None and not data.is_dir():
        raise DataError(f"{data} is no folder; give the folder whose files the corpus page may open")


def application(
    runs: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    data: Path | None = None,
    limits: Limits | None = None,
) -> App:
    """The ASGI application, for a server of your own.

    Raises:
        EmhrnnError: a run cannot be loaded, or the host would be open to everybody.
    """
    check(runs, host, token, data)
    limits = limits or Limits()
    served = []
    for name, folder in zip(_names(runs), runs, strict=True):
        model = load(folder)
        if isinstance(model.run.model, EMHRNN):
            model.run.model.precompute_words()  # for good: the weights no longer change
        served.append(Served(name, folder, model, Engine(model, limits)))
    state = State(tuple(served), limits, data, token)
    return make_app(state, LOOPBACK | {host} if is_loopback(host) else None)


def _names(runs: Sequence[Path]) -> list[str]:
    """Of the folders, with as many of those above them as tell them apart."""
    parts = [folder.resolve().parts for folder in runs]
    depth = 1
    while len({part[-depth:] for part in parts}) < len(set(parts)):
        depth += 1
    return [str(Path(*part[-depth:])) for part in parts]


def serve(
    runs: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    data: Path | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Until Ctrl-C or SIGTERM; requests that have arrived are answered first."""
    torch.set_num_threads(1)  # one document at a time is too small for more
    limits = Limits()
    app = application(runs, host=host, token=token, data=data, limits=limits)
    gc.freeze()  # what is loaded by now stays: looking through it for garbage would stop everything for half a second
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        http=impatient(limits),
    )
    with _listening(host, port) as listener:
        address = f"[{host}]" if ":" in host else host
        say(f"http://{address}:{listener.getsockname()[1]}  (Ctrl-C stops it)")
        server = uvicorn.Server(config)
        with suppress(KeyboardInterrupt, SystemExit):  # uvicorn passes the signal on when it has drained
            server.run(sockets=[listener])
        if not server.started:
            raise ConfigError("the server did not start; its log says why")


def _listening(host: str, port: int) -> socket.socket:
    """Bound before anything is said, so that a port which is taken is told in one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise ConfigError(f"cannot listen at {host}:{port} ({error.strerror}); give another --port or --host") from None
