"""Worker processes that are killed, and workers whose parent is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from emhrnn.errors import CheckpointError, DataError
from emhrnn.scoring.chunks import Data, read_chunks
from emhrnn.scoring.scorer import Task, score_chunks
from emhrnn.training.run import SHIPPED

pytestmark = pytest.mark.usefixtures("small_chunks")
PARENT = """
import multiprocessing, sys
from pathlib import Path
from emhrnn.scoring import chunks
from emhrnn.scoring.scorer import Task, score_chunks

if __name__ == "__main__":
    chunks.ROWS = 5
    data = chunks.read_chunks(chunks.Data(paths=(Path(sys.argv[2]),)))
    scored = score_chunks(data, Task(run=Path(sys.argv[1]), suffix=".csv"), 2)
    next(scored)
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    sys.stdin.read()
"""


def test_a_killed_worker_is_an_error(reviews: Path) -> None:
    scored = score_chunks(read_chunks(Data(paths=(reviews,))), Task(run=SHIPPED, suffix=".csv"), 2)
    next(scored)
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGKILL)
    with pytest.raises(DataError, match=r"worker process ended early.*fewer --workers"):
        list(scored)


def test_an_error_of_a_worker_is_raised(reviews: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        list(score_chunks(read_chunks(Data(paths=(reviews,))), Task(run=tmp_path / "none", suffix=".csv"), 2))


def test_workers_end_with_their_parent(reviews: Path, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, script, SHIPPED, reviews], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        workers = list(map(int, parent.stdout.readline().split()))
        assert workers
        parent.kill()
    deadline = time.monotonic() + 30
    while any(map(_runs, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, workers))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
