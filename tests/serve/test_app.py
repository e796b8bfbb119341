"""`emhrnn serve` as a process: it says where it is, answers, drains when it is told to stop, and ends with 0."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.behaviour.commands import GOOD, Cli

TEXTS = 200


@contextmanager
def started(run: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "emhrnn", "serve", str(run), "--port", "0"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": "1"} | environment,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        yield server, server.stdout.readline().split()[0]
    finally:
        server.kill()
        server.communicate()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_drains_and_ends_well(run: Path, stop: signal.Signals) -> None:
    with started(run) as (server, address):
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


def test_killed_with_an_upload_it_leaves_results_and_the_next_server_deletes_the_rest(
    own_run: Path, tmp_path: Path
) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    body = "text,label\n" + f'"{GOOD}",good\n' * 3
    with started(own_run, TMPDIR=str(scratch)) as (server, address):
        done = httpx.post(f"{address}/corpus/upload?name=a.csv", content=body).json()["job"]
        waits = httpx.post(f"{address}/corpus/upload?name=b.csv", content=body.replace("text", "one")).json()["job"]
        for path, state in ((done, "done"), (waits, "columns")):
            while (told := httpx.get(f"{address}{path}/state").json()["state"]) == "running":
                time.sleep(0.05)
            assert told == state
        server.kill()
        server.wait()
    assert [path.name for path in scratch.rglob("*.csv")] == ["upload.csv"]  # it waits for its columns
    with started(own_run, TMPDIR=str(scratch)) as (server, address):
        assert re.search(r"[03] of 3 with a label", httpx.get(f"{address}{done}").text)
        assert httpx.get(f"{address}{waits}").status_code == 404
        assert list(scratch.rglob("*.csv")) == []
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    assert list(scratch.glob("emhrnn-uploads-*")) == []


def test_what_cannot_be_served_is_told(cli: Cli, run: Path, tmp_path: Path) -> None:
    assert "other machines" in cli.error("serve", run, "--host", "0.0.0.0")
    assert "no such run folder" in cli.error("serve", tmp_path / "nowhere")
    assert "is not a folder" in cli.error("serve", run, "--data", tmp_path / "nowhere")
    assert "one, or two" in cli.error("serve", run, run, run)


def test_a_port_that_is_taken(cli: Cli, run: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot listen" in cli.error("serve", run, "--port", str(taken.getsockname()[1]))
