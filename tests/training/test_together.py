"""Several processes, started by torchrun, train what one would have trained."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from emhrnn.training.arrays import load_arrays
from tests.back_ends import threads_kept
from tests.behaviour.commands import rows, tiny, write_rows
from tests.training import together
from tests.training.kill import check_equal

pytestmark = pytest.mark.slow
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PAIR = [*TORCHRUN, "--standalone", "--nproc-per-node", "2"]
LONG_ENOUGH = 300  # seconds; the machine may be busy
SETTINGS = [part for a in [*together.COMMON, *together.SYSTEMS["local"]] for part in ("--set", a)]
Command = list[str | Path]


def start(command: Command) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and output; whatever happens, nothing is left running."""
    try:
        out, _ = process.communicate(timeout=LONG_ENOUGH)
    finally:
        process.terminate()  # torchrun ends its processes then
    return process.returncode, out


def run(command: Command) -> tuple[int, str]:
    return ended(start(command))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """reviews.csv, some of them with the wrong label, so that there is a temperature to fit; and two/SYSTEM as two
    processes have trained it."""
    folder = tmp_path_factory.mktemp("together")
    reviews = [(text, "good" if i % 7 == 0 else label) for i, (text, label) in enumerate(rows(60))]
    write_rows(folder / "reviews.csv", reviews)
    code, out = run([*PAIR, "-m", "tests.training.together", folder / "reviews.csv", folder / "two"])
    assert code == 0, out
    return folder


def weights_differ_by(left: Path, right: Path) -> float:
    """The largest difference of any weight."""
    ours, theirs = (load_arrays(run / "model.safetensors")[0] for run in (left, right))
    assert ours.keys() == theirs.keys()
    return max(float(np.abs(ours[name] - theirs[name]).max()) for name in ours)


def facts(run: Path) -> dict[str, float]:
    """What validation says of a run: where the best epoch is, its scores, temperature and shares."""
    note, metrics = load_arrays(run / "model.safetensors")[1], json.loads((run / "metrics.json").read_text())
    numbers = {"best_epoch": metrics["best_epoch"], "temperature": note["temperature"], **note.get("shares", {})}
    for part in ("valid", "calibration"):
        numbers |= {f"{part}.{name}": n for name, n in metrics[part].items() if isinstance(n, int | float)}
    return numbers


def test_two_processes_equal_one(folder: Path) -> None:
    with threads_kept():
        together.train_all(folder / "reviews.csv", folder / "one")
    for system in together.SYSTEMS:
        one, two = folder / "one" / system, folder / "two" / system
        assert weights_differ_by(one, two) < 1e-5, system
        assert facts(one) == pytest.approx(facts(two), rel=1e-3, abs=1e-4), system


def test_a_killed_worker_loses_nothing(folder: Path, tmp_path: Path) -> None:
    command = [*PAIR, "--max-restarts", "3", "-m", "tests.training.together", "--kill", "1", "9"]
    train = ["train", folder / "reviews.csv", "--out", tmp_path / "run", "--quiet", *SETTINGS]
    code, out = run([*command, *train, "--set", "training.checkpoint_seconds=0"])
    assert code == 0, out
    assert out.count("Best epoch") == 1
    check_equal(folder / "two" / "local", tmp_path / "run")  # bit for bit: the same number of processes


def test_two_agents_form_one_job(folder: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    agent = [*TORCHRUN, "--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint]
    train = ["-m", "emhrnn", "train", folder / "reviews.csv", "--out", tmp_path / "run", "--quiet", *SETTINGS]
    agents = [start([*agent, *train]) for _ in range(2)]
    results = [ended(agent) for agent in agents]  # both, before either is judged: nothing is left running
    assert [code for code, _ in results] == [0, 0], results
    check_equal(folder / "two" / "local", tmp_path / "run")


def test_one_message_whoever_fails(folder: Path, tmp_path: Path) -> None:
    train = ["train", folder / "reviews.csv", "--out", tmp_path / "run", "--quiet", *SETTINGS]
    code, out = run([*PAIR, "-m", "tests.training.together", "--fail", "1", "5", *train])
    assert code != 0
    assert told(out) == ["process 1 has a reason of its own"]
    code, out = run([*PAIR, "-m", "emhrnn", *train[:5], "--overwrite", *tiny("tfidf-lr")])
    assert code != 0
    assert told(out) == ["tfidf-lr is fitted at once by one process; start it without torchrun"]


def told(out: str) -> list[str]:
    """What we say, among what torchrun says."""
    return [line.removeprefix("emhrnn: ") for line in out.splitlines() if line.startswith("emhrnn: ")]
