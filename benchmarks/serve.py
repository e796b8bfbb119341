"""The viewer's API under load, on loopback: 64 clients that ask without pause, against one that does.

    python -m benchmarks.serve [--quick] [--json] [--run RUN] [--out results/serve.json]

The server is `emhrnn serve` in a process of its own, on an untrained EM-HRNN of the default sizes (an answer costs the
same) or on RUN (`demo`: the evidence model of the package); the clients are coroutines of this process, each with one
connection that it keeps. Documents have 200 words.
Full: 30 s of load, then more requests up to 20,000; quick: 4 s.

    concurrent_over_sequential   requests/s of 64 clients / of one: must be 3 or more
    requests_per_second, p50_ms, p99_ms   with 64 clients
    predict_cpu_ms, explain_cpu_ms   CPU time of the server for a request, with 64 clients
    failed                       requests that were not answered with 200: must be 0
    memory_growth_mb             of the server, from the first thousand requests to the last

`--out` keeps the figures of each model in one file, beside those before the viewer was redesigned (`before`).
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import options, report
from emhrnn.corpus import TextSettings
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.paper.reports import commit, machine
from emhrnn.text import UNK, Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import describe, new_run, save_weights

CLIENTS, WORDS, VOCABULARY = 64, 200, 30_000
BEFORE = {"predict_cpu_ms": 1.7, "explain_cpu_ms": 3.9}  # of em-hrnn, without effects


@dataclass
class Load:
    """What clients saw."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    wall: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.wall


def make_run(folder: Path) -> None:
    """A run folder whose model has learned nothing."""
    words = sorted({word for review in generate_reviews(500, 0) for word in review.text.lower().split()})
    filler = [f"word{n}" for n in range(VOCABULARY - len(words))]
    vocabulary = Vocabulary([UNK, *words, *filler])
    table = torch.zeros(len(vocabulary), 100)
    run = new_run(
        make_config(model="em-hrnn"),
        vocabulary,
        ("1", "2", "3", "4", "5"),
        table,
        multi_label=False,
        text=TextSettings(),
    )
    folder.mkdir()
    describe(folder, run)
    save_weights(folder, run, 0)


def requests(count: int, path: str = "/v1/predict") -> list[bytes]:
    """Ready to be sent: documents of about 200 words."""
    reviews = iter(generate_reviews(20 * count, 1))
    made = []
    for _ in range(count):
        text = ""
        while len(text.split()) < WORDS:
            text += next(reviews).text + " "
        body = json.dumps({"text": " ".join(text.split()[:WORDS])}).encode()
        made.append(
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
    return made


async def client(port: int, asked: list[bytes], load: Load, until: float, most: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = 0
    while time.perf_counter() < until and len(load.seconds) < most:
        began = time.perf_counter()
        writer.write(asked[turn % len(asked)])
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(size)
        load.seconds.append(time.perf_counter() - began)
        load.failed += not head.startswith(b"HTTP/1.1 200")
        turn += 1
    writer.close()


async def measure(port: int, asked: list[bytes], clients: int, seconds: float, most: int = 1 << 60) -> Load:
    load, began = Load(), time.perf_counter()
    until = began + seconds
    await asyncio.gather(*(client(port, asked[k:] + asked[:k], load, until, most) for k in range(clients)))
    load.wall = time.perf_counter() - began
    return load


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_until_up(port: int, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit(f"the server ended with code {server.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start within a minute")


def figures(quick: bool, run: str | None = None) -> dict[str, float]:
    asked, port = requests(50), free_port()
    with tempfile.TemporaryDirectory() as folder:
        if run is None:
            run = str(Path(folder) / "run")
            make_run(Path(run))
        command = [sys.executable, "-m", "emhrnn", "serve", run, "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            wait_until_up(port, server)
            return asyncio.run(rounds(port, asked, server.pid, quick))
        finally:
            server.terminate()
            server.wait(60)


async def rounds(port: int, asked: list[bytes], pid: int, quick: bool) -> dict[str, float]:
    """One client, many, one, many: a slow patch of the machine hits both."""
    seconds = 2.0 if quick else 7.5
    await measure(port, asked, CLIENTS, 60, most=1000)  # warm
    before = resident_mb(pid)
    single, many, costs = [], [], []
    for _ in range(4 if not quick else 2):
        single.append(await measure(port, asked, 1, seconds))
        began = cpu_seconds(pid)
        many.append(await measure(port, asked, CLIENTS, seconds))
        costs.append((cpu_seconds(pid) - began) / len(many[-1].seconds))
    total = sum(len(load.seconds) for load in single + many)
    if not quick and total < 20_000:
        many.append(await measure(port, asked, CLIENTS, 300, most=20_000 - total))
    grown, began = resident_mb(pid) - before, cpu_seconds(pid)
    explained = await measure(port, requests(50, "/v1/explain"), CLIENTS, seconds)
    latency = np.array([second for load in many for second in load.seconds])
    return {
        "concurrent_over_sequential": float(np.median([a.rate / b.rate for a, b in zip(many, single, strict=False)])),
        "requests_per_second": float(np.median([load.rate for load in many])),
        "sequential_per_second": float(np.median([load.rate for load in single])),
        "p50_ms": float(1e3 * np.quantile(latency, 0.5)),
        "p99_ms": float(1e3 * np.quantile(latency, 0.99)),
        "predict_cpu_ms": float(1e3 * np.median(costs)),
        "explain_cpu_ms": 1e3 * (cpu_seconds(pid) - began) / len(explained.seconds),
        "requests": float(sum(len(load.seconds) for load in single + many)),
        "failed": float(sum(load.failed for load in [*single, *many, explained])),
        "memory_growth_mb": grown,
    }


def main() -> None:
    parser = options(__doc__, quick="four seconds of load")
    parser.add_argument("--run", help="serve this run instead of an untrained EM-HRNN")
    parser.add_argument("--out", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    found = figures(arguments.quick, arguments.run)
    if arguments.out is not None:
        chosen = f" --run {arguments.run}" if arguments.run else ""
        command = f"python -m benchmarks.serve{' --quick' if arguments.quick else ''}{chosen} --out {arguments.out}"
        rounded = {name: round(value, 2) for name, value in found.items()}
        record = {"command": command, "commit": commit(), "machine": machine(), **rounded}
        kept = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
        kept = {"before": BEFORE, **kept, arguments.run or "em-hrnn": record}
        arguments.out.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    report(found, as_json=arguments.json)


if __name__ == "__main__":
    main()
