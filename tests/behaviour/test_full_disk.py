"""A disk that is really full, and one that really is read-only: a clear error, nothing lost, and training goes on."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load

from tests.behaviour.commands import TINY, Cli, write_reviews
from tests.training.kill import check_equal

ONE = [*TINY, "--set", "training.decay=none", "--set", "training.batch_words=150", "--set", "training.threads=1"]
MORE = ["--set", "training.epochs=3", "--quiet"]


def mount(*arguments: str | Path) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte, where we may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        mounted = mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", place)
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)  # a corpus may still be mapped


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"0" * 4096)
    return filler


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_full_disk_and_one_that_is_read_only(cli: Cli, disk: Path, tmp_path: Path) -> None:
    data, run = write_reviews(tmp_path / "reviews.csv", 40), disk / "run"
    cli.ok("train", data, "--out", tmp_path / "whole", *ONE, *MORE)
    cli.ok("train", data, "--out", run, *ONE, "--quiet")
    before, resume = snapshot(run), ["train", "--out", run, "--resume", *MORE]

    assert mount("-o", "remount,ro", disk)
    assert f"cannot write to {run}: Read-only file system" in cli.error(*resume)
    assert "Read-only file system" in cli.error("train", data, "--out", disk / "new", *ONE)
    cli.ok("evaluate", run, data)  # to use a model, nothing need be written
    assert mount("-o", "remount,rw", disk)
    assert snapshot(run) == before

    filler = fill(disk)
    assert "No space left on device" in cli.error(*resume)
    for name in (name for name in before if name.startswith("checkpoint/")):
        assert (run / name).read_bytes() == before[name]
    weights, old = load((run / "model.safetensors").read_bytes()), load(before["model.safetensors"])
    assert weights.keys() == old.keys()  # resuming may take the fit of probabilities out of the header
    assert all(np.array_equal(weights[name], old[name]) for name in old)
    assert "No space left on device" in cli.error("train", data, "--out", disk / "new", *ONE)
    assert not (disk / "new").exists()
    for name, command in {
        "why.html": ("explain", run, "A good soup.", "--html"),
        "corpus": ("paper", "prepare", data, "--quiet", "--out"),
    }.items():
        told = cli.error(*command, disk / name)
        assert f"cannot write {disk / name}: " in told
        assert "No space left on device" in told
    filler.unlink()
    cli.ok(*resume)
    check_equal(tmp_path / "whole", run)
