"""Two processes must not train into one run folder."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from emhrnn.errors import DataError
from emhrnn.training.folder import LOCK, locked_run, run_folder
from tests.behaviour.commands import TINY, Cli, write_reviews

HOLD = """
import sys, time
from pathlib import Path
from emhrnn.training.folder import locked_run
with locked_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_folder_is_locked_once(tmp_path: Path) -> None:
    with locked_run(tmp_path):
        told = f"process {os.getpid()} on {socket.gethostname()} is training into {tmp_path}; wait for it"
        with pytest.raises(DataError, match=told), locked_run(tmp_path):
            pass
        with pytest.raises(DataError, match="is training into"):
            run_folder(tmp_path, overwrite=True).__enter__()
    assert list(tmp_path.iterdir()) == []
    with locked_run(tmp_path):
        pass


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write to .*; put that right"), locked_run(tmp_path / "file"):
        pass


def test_the_lock_of_a_killed_process_is_gone(cli: Cli, tmp_path: Path) -> None:
    data, run = write_reviews(tmp_path / "reviews.csv", 30), tmp_path / "run"
    cli.ok("train", data, "--out", run, "--quiet", *TINY)
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with subprocess.Popen([sys.executable, "-c", HOLD, run], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told = f"process {holder.pid} on {socket.gethostname()} is training into {run}"
        assert told in cli.error("train", data, "--out", run, "--overwrite", "--quiet", *TINY)
        assert told in cli.error("train", "--out", run, "--resume", "--quiet")
        holder.send_signal(signal.SIGKILL)
    assert (run / LOCK).exists()
    assert before.items() <= {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}.items()
    cli.ok("train", "--out", run, "--resume", "--quiet", "--set", "training.epochs=2")
    assert not (run / LOCK).exists()


@pytest.mark.parametrize("begun", [False, True])
def test_a_kill_while_a_run_is_replaced_hides_no_run(begun: bool, tmp_path: Path) -> None:
    """The old run comes back, unless the new one has begun; nothing hidden stays."""
    out, old = tmp_path / "run", tmp_path / ".run.0123abcd.old"
    for folder, what in ((out, "new"), (old, "old")):
        folder.mkdir()
        (folder / "config.json").write_text(what)
    (old / "model.safetensors").touch()
    (out / ("model.safetensors" if begun else "unfinished")).touch()
    with pytest.raises(DataError, match="unfinished run"), run_folder(out):
        pass
    assert (out / "config.json").read_text() == ("new" if begun else "old")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("left", [None, ".unfinished.0123abcd.partial"])
def test_a_kill_before_the_first_file_of_a_replacement_loses_no_run(left: str | None, tmp_path: Path) -> None:
    out, old = tmp_path / "run", tmp_path / ".run.0123abcd.old"
    for folder in (out, old):
        folder.mkdir()
    for name in ("config.json", "model.safetensors", "metrics.json"):
        (old / name).write_text("old")
    if left is not None:
        (out / left).touch()
    with pytest.raises(DataError, match="is not empty"), run_folder(out):
        pass
    assert (out / "model.safetensors").read_text() == "old"
    assert not old.exists()


@pytest.mark.parametrize(("left", "free"), [(".unfinished.0123abcd.partial", True), (".notes.0123abcd.partial", False)])
def test_only_what_a_kill_left_of_ours_frees_the_place(left: str, free: bool, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / left).touch()
    with nullcontext() if free else pytest.raises(DataError, match="is not empty"), run_folder(out):
        assert not (out / left).exists()
    assert (out / left).exists() is not free
