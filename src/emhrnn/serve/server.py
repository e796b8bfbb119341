"""Start the server on runs, and stop it well."""

import gc
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn

from emhrnn.cores import set_threads
from emhrnn.errors import ConfigError
from emhrnn.serve.app import application
from emhrnn.serve.connections import bound_connections
from emhrnn.serve.limits import ServerLimits

DRAIN_SECONDS = 30


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
    set_threads(1)  # one document at a time is too small for more
    limits = ServerLimits()
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
        ws="none",
    )
    with _listening(host, port) as listener:
        address = f"[{host}]" if ":" in host else host
        say(f"http://{address}:{listener.getsockname()[1]}  (Ctrl-C stops it)")
        server = uvicorn.Server(bound_connections(config, limits))
        with suppress(KeyboardInterrupt, SystemExit):  # uvicorn passes the signal on when it has drained
            server.run(sockets=[listener])
        if not server.started:
            raise ConfigError("the server did not start; its log says why")


def _listening(host: str, port: int) -> socket.socket:
    """Bind before anything is printed, so that the error of a port in use is one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise ConfigError(f"cannot listen at {host}:{port} ({error.strerror}); give another --port or --host") from None
