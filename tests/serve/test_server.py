"""`emhrnn serve` as a process: it says where it is, answers, drains when it is told to stop, and ends with 0."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.behaviour.commands import GOOD, Cli

TEXTS = 200


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_drains_and_ends_well(run: Path, stop: signal.Signals) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "emhrnn", "serve", str(run), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        with closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)) as connection:
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b'{"status":"ok"}'
            body = json.dumps({"texts": [GOOD] * TEXTS})
            connection.request("POST", "/v1/explain", body, {"content-type": "application/json"})
            time.sleep(0.03)  # until it has arrived: what is not read yet is not promised an answer
            server.send_signal(stop)
            with connection.getresponse() as answer:
                assert answer.status == 200
                assert len(json.loads(answer.read())["explanations"]) == TEXTS
        _, errors = server.communicate(timeout=60)
        assert (server.returncode, errors) == (0, "")
    finally:
        server.kill()
        server.wait()


def test_what_cannot_be_served_is_told(cli: Cli, run: Path, tmp_path: Path) -> None:
    assert "other machines" in cli.error("serve", run, "--host", "0.0.0.0")
    assert "no such run folder" in cli.error("serve", tmp_path / "nowhere")
    assert "is no folder" in cli.error("serve", run, "--data", tmp_path / "nowhere")
    assert "one, or two" in cli.error("serve", run, run, run)


def test_a_port_that_is_taken(cli: Cli, run: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot listen" in cli.error("serve", run, "--port", str(taken.getsockname()[1]))
