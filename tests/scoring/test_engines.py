"""The Ray engine gives the same bytes as the local one, also when a worker is killed while it scores."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emhrnn.errors import ConfigError, DataError
from emhrnn.scoring import score
from emhrnn.scoring.chunks import Data
from tests.behaviour.commands import BAD, GOOD

ROWS = 10_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """One small Ray for all tests: starting it takes ten seconds."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found = pytest.importorskip("ray")
    found.init(num_cpus=2, object_store_memory=150 << 20, include_dashboard=False, log_to_driver=False)
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(ROWS):
            file.write(
                json.dumps({"id": f"r{i}", "text": f"{GOOD if i % 2 else BAD} Visit {i}. " * (1 + i % 9)}) + "\n"
            )
    return path


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_the_same_bytes_with_a_worker_killed(ray: Any, run: Path, data: Path, tmp_path: Path) -> None:
    score(run, Data(paths=(data,)), tmp_path / "local.csv", progress=False)
    killed: list[int] = []

    def kill_one() -> None:
        journal = tmp_path / "ray.csv.unfinished" / "journal.jsonl"
        while not killed:
            if journal.exists() and journal.stat().st_size:
                killed.extend(scorers()[:1])
                for process in killed:
                    os.kill(process, signal.SIGKILL)
                return
            time.sleep(0.005)

    watch = threading.Thread(target=kill_one, daemon=True)
    watch.start()
    result = score(run, Data(paths=(data,)), tmp_path / "ray.csv", engine="ray", workers=2, progress=False)
    assert killed, "no worker was killed; give it more rows"
    assert result.rows == ROWS
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_errors_are_ours(ray: Any, run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\n")
    with pytest.raises(DataError, match="has no rows"):
        score(run, Data(paths=(tmp_path / "a.csv",)), tmp_path / "p.csv", engine="ray", workers=1, progress=False)


def test_without_ray_it_says_what_to_install(
    run: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(ConfigError, match=r"install it with: pip install 'emhrnn\[ray\]'"):
        score(run, Data(paths=(data,)), tmp_path / "p.csv", engine="ray", workers=1, progress=False)


def scorers() -> list[int]:
    """Processes under this one in which Ray scores."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_bytes().decode("utf-8", "replace")
            if title.startswith("ray::") and "_RayScorer" in title and os.getpid() in _ancestors(folder):
                found.append(int(folder.name))
        except (OSError, IndexError):
            continue  # it has ended
    return found


def _ancestors(folder: Path) -> list[int]:
    parents = []
    while folder.name not in ("0", "1"):
        folder = folder.with_name((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        parents.append(int(folder.name))
    return parents
