"""A server under mixed load: good, bad and damaged requests, while its memory and its open files are watched.

    python -m tests.faults.soak --minutes 10 [--record]

Good requests are answered; no answer may be a fault of ours (5xx, other than 503: busy). Memory and descriptors at the
end may exceed those after the first fifth of the time by a small share only.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.behaviour.commands import BAD, GOOD
from tests.faults.fuzz import damaged
from tests.faults.report import record

GROWTH = 1.1  # of memory
SPARE = 8  # descriptors
CLIENTS = 4
PATIENCE = {"good": 30.0, "bad": 30.0, "damaged": 1.0, "cut": 0.0}  # seconds for an answer


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """A request, as bytes, after which the connection is closed."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def next_request(rng: random.Random) -> tuple[str, bytes]:
    """Its kind and bytes."""
    body = json.dumps({"texts": [f"{rng.choice((GOOD, BAD))} Visit {rng.randrange(999)}."] * rng.randrange(1, 4)})
    good = [
        request("POST", "/v1/predict", body.encode()),
        request("POST", "/v1/explain", json.dumps({"text": GOOD}).encode()),
        request("GET", "/"),
        request("GET", "/healthz"),
        request("GET", "/v1/model"),
    ]
    kind = rng.choice(("good", "good", "good", "bad", "damaged", "cut"))
    chosen = rng.choice(good)
    if kind == "bad":
        chosen = request("POST", rng.choice(("/v1/predict", "/v1/explain", "/nowhere")), damaged(body.encode(), rng))
    elif kind == "damaged":
        chosen = damaged(chosen, rng)
    elif kind == "cut":
        chosen = chosen[: rng.randrange(len(chosen))]
    return kind, chosen


def ask(port: int, content: bytes, seconds: float) -> str:
    """The status of the answer within so many seconds; "none" where the server closed, or we did not wait."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds or 30) as connection:
        connection.sendall(content)
        if not seconds:
            return "none"
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return answer.split(b" ")[1].decode("latin-1") if answer.startswith(b"HTTP/1.1 ") else "none"


def use(port: int, seed: int, until: float, counts: Counter[tuple[str, str]]) -> None:
    """One client."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        kind, content = next_request(rng)
        try:
            counts[kind, ask(port, content, PATIENCE[kind])] += 1
        except OSError:  # closed by the server while we sent, or it waits for the rest of a damaged request
            counts[kind, "none"] += 1


def measured(process: int) -> tuple[float, int]:
    """Megabytes in memory and open descriptors of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return memory / 1024, len(os.listdir(f"/proc/{process}/fd"))


def soak(run: str, minutes: float, seed: int) -> list[dict[str, object]]:
    """Rows of the report: a line for each kind of request, and one for the process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "emhrnn", "serve", run, "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                ask(port, request("GET", "/healthz"), 30)
                break
            except OSError:
                assert server.poll() is None, "the server ended"
                time.sleep(0.2)
        began, until = time.monotonic(), time.monotonic() + 60 * minutes
        counts = [Counter[tuple[str, str]]() for _ in range(CLIENTS)]
        clients = [
            threading.Thread(target=use, args=(port, seed + i, until, counts[i]), daemon=True) for i in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        samples = []
        while any(client.is_alive() for client in clients):
            samples.append((time.monotonic() - began, *measured(server.pid)))
            time.sleep(1)
        time.sleep(1)
        last = measured(server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    early = next(sample for sample in samples if sample[0] >= 12 * minutes)
    total = sum(counts, Counter[tuple[str, str]]())
    rows: list[dict[str, object]] = []
    for kind in sorted({kind for kind, _ in total}):
        statuses = Counter({status: n for (one, status), n in total.items() if one == kind})
        fine = ("200", "503") if kind == "good" else ("none", "503")
        faults = sum(n for s, n in statuses.items() if s not in fine and (kind == "good" or s.startswith("5")))
        told = ", ".join(f"{status}: {n:,}" for status, n in sorted(statuses.items()))
        rows.append({"what": f"{kind} requests", "count": statuses.total(), "answers": told, "wrong": faults})
    grown = int(last[0] > early[1] * GROWTH) + int(last[1] > early[2] + SPARE)
    told = f"{early[1]:.0f} MB, {early[2]} descriptors after {early[0]:.0f} s; {last[0]:.0f} MB, {last[1]} at the end"
    return [*rows, {"what": "server process", "count": 1, "answers": told, "wrong": grown}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="demo")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the counts to results/reliability.md and .json")
    options = parser.parse_args()
    found = soak(options.run, options.minutes, options.seed)
    for row in found:
        print(row)
    if options.record:
        command = f"python -m tests.faults.soak --minutes {options.minutes:g} --record"
        record("soak", {"command": command, "rows": found})
    sys.exit(any(row["wrong"] for row in found))


if __name__ == "__main__":
    main()
