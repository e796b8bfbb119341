"""kill -9 in the middle, three times, then the same command: the output is that of an uninterrupted run. And memory
that does not grow with the file."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emhrnn.training.run import SHIPPED
from tests.behaviour.commands import BAD, GOOD

ROWS = 12_000
KILLED = """
import os, signal
from emhrnn.cli import main
from emhrnn.scoring.output import Unfinished

whole = Unfinished.add
before = []

def add(self, digest, part):  # one chunk, then half of the next: the worst moment
    if before:
        self._files["rows"].write(part.files["rows"][: len(part.files["rows"]) // 2])
        self._files["rows"].flush()
        os.kill(os.getpid(), signal.SIGKILL)
    before.append(digest)
    whole(self, digest, part)

Unfinished.add = add
main()
"""
MEASURED = """
import resource, sys
from emhrnn.cli import main
try:
    main()
finally:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(ROWS):
            text = f"{GOOD if i % 2 else BAD} Visit {i}. " * (1 + i % 9)
            file.write(json.dumps({"id": f"r{i}", "text": text if i % 1000 else None}) + "\n")
    return path


def command(run: Path, data: Path, out: Path, workers: int = 2) -> list[str]:
    return [
        sys.executable,
        "-m",
        "emhrnn",
        "predict",
        str(run),
        str(data),
        "--out",
        str(out),
        "--workers",
        str(workers),
    ]


@pytest.mark.slow
def test_kill_9_three_times(data: Path, tmp_path: Path) -> None:
    run, whole, out = SHIPPED, tmp_path / "whole.csv", tmp_path / "p.csv"  # 15 processes, which need no torch for it
    subprocess.run(command(run, data, whole), check=True, capture_output=True, timeout=200)
    journal = tmp_path / "p.csv.unfinished" / "journal.jsonl"
    for kills in (1, 2, 3):
        arguments = command(run, data, out)[3:]
        done = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, timeout=200)
        assert done.returncode == -signal.SIGKILL, "it was done before it was killed; give it more rows"
        assert journal.read_bytes().count(b"\n") == kills
    told = subprocess.run(
        [*command(run, data, out), "--json"], check=True, capture_output=True, text=True, timeout=200
    ).stdout
    assert 0 < json.loads(told)["before"] < ROWS
    assert out.read_bytes() == whole.read_bytes()
    errors = [tmp_path / f"{name}.csv.errors.jsonl" for name in ("p", "whole")]
    assert errors[0].read_bytes() == errors[1].read_bytes()
    assert len(errors[0].read_text().splitlines()) == ROWS // 1000
    assert not journal.parent.exists()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(data: Path, tmp_path: Path) -> None:
    """Resident memory at its peak, of one process that reads, scores and writes."""
    short = tmp_path / "short.jsonl"
    with data.open(encoding="utf-8") as lines, short.open("w", encoding="utf-8") as file:
        file.writelines(line for number, line in enumerate(lines) if number < ROWS // 2)
    peaks = [_peak(SHIPPED, path, tmp_path / "p.csv") for path in (short, data)]
    assert peaks[1] < 1.1 * peaks[0]


def _peak(run: Path, data: Path, out: Path) -> int:
    arguments = command(run, data, out, workers=1)[3:]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *arguments], capture_output=True, text=True, timeout=200, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return int(done.stderr.rsplit("peak", 1)[1]) * 1024
