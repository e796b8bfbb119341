"""`emhrnn train --resume`: what it goes on from, what it refuses, and what it leaves intact."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import train
from emhrnn.errors import DataError
from emhrnn.text import Vectors
from emhrnn.training.arrays import load_arrays, save_arrays
from emhrnn.training.config import make_config
from emhrnn.training.folder import checkpoint_files
from emhrnn.training.progress import Meter
from emhrnn.training.resume import open_run
from tests.back_ends import threads_kept
from tests.behaviour.commands import TINY, Cli, write_reviews
from tests.training.kill import check_equal

THREE = [*TINY, "--set", "training.epochs=3", "--set", "training.batch_words=150", "--set", "training.threads=1"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """reviews.csv, and a run of three epochs that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    data = write_reviews(folder / "reviews.csv", 60)
    config = make_config(assignments=[assignment for assignment in THREE if assignment != "--set"])
    with threads_kept():
        train(data, folder / "run", config=config, progress=False)
    return folder


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(whole / "reviews.csv", tmp_path))


@pytest.fixture
def stopped(cli: Cli, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that got Ctrl-C in its second epoch."""
    run, seen = data.parent / "run", []
    add = Meter.add

    def stop_later(*arguments: object) -> None:
        add(*arguments)  # type: ignore[arg-type]
        seen.append(1)
        if len(seen) == 11:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Meter, "add", stop_later)
        result = cli("train", data, "--out", run, "--quiet", *THREE)
    assert result.code == 130
    assert result.err.startswith(f"emhrnn: interrupted; {run} holds the best model so far (epoch 1 of 1 ")
    assert result.err.endswith(f"emhrnn train --out {run} --resume\n")
    assert len(seen) == 11
    return run


def saved(run: Path) -> list[Path]:
    return checkpoint_files(run)


def snapshot(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def test_ctrl_c_and_resume_end_as_if_nothing_had_happened(cli: Cli, whole: Path, data: Path, stopped: Path) -> None:
    assert "--resume" in cli.error("train", data, "--out", stopped, *THREE)
    assert load_arrays(saved(stopped)[0])[1]["progress"]["position"]["step"] == 11
    data.unlink()  # the run has what it needs
    cli.ok("train", "--out", stopped, "--resume", "--quiet")
    check_equal(whole / "run", stopped)


def test_the_same_command_with_resume_is_a_resume(cli: Cli, whole: Path, data: Path, stopped: Path) -> None:
    cli.ok("train", data, "--out", stopped, "--resume", "--quiet", *THREE)
    check_equal(whole / "run", stopped)


def test_resume_without_a_run_starts_one(cli: Cli, whole: Path, data: Path, tmp_path: Path) -> None:
    cli.ok("train", data, "--out", tmp_path / "run", "--resume", "--quiet", *THREE)
    check_equal(whole / "run", tmp_path / "run")
    assert "there is no run at" in cli.error("train", "--out", tmp_path / "none", "--resume")
    assert "no data was given" in cli.error("train", "--out", tmp_path / "none")
    both = cli.error("train", data, "--out", tmp_path / "run", "--resume", "--overwrite")
    assert "resume continues the run, overwrite replaces it" in both


def test_sgd_on_a_prepared_corpus_that_gets_more_epochs(cli: Cli, data: Path, tmp_path: Path) -> None:
    corpus, run = tmp_path / "corpus", tmp_path / "run"
    cli.ok("paper", "prepare", data, "--out", corpus, "--quiet")
    # A constant learning rate: else the number of epochs decides about every step.
    settings = [*THREE, "--set", "training.optimizer=sgd", "--set", "training.decay=none", "--valid", data, "--quiet"]
    cli.ok("train", corpus, "--out", tmp_path / "whole", *settings)
    cli.ok("train", corpus, "--out", run, *settings, "--set", "training.epochs=1")
    described = json.loads((run / "config.json").read_text())["data"]
    assert described["train"]["corpus"] == str(corpus.resolve())
    assert described["valid"]["corpus"] == "corpus/valid"
    cli.ok("train", "--out", run, "--resume", "--quiet", "--set", "training.epochs=3")
    check_equal(tmp_path / "whole", run)
    tensors = load_arrays(saved(run)[0])[0]
    assert {name.split("/")[1] for name in tensors if name.startswith("optimizer/")} == {"momentum_buffer"}


def test_a_finished_run_says_so_and_trains_on_when_given_more_epochs(
    cli: Cli, whole: Path, data: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(whole / "run", tmp_path / "run"))
    before = snapshot(run)
    told = cli.ok("train", data, "--out", run, "--resume", "--quiet", *THREE).out
    assert "is finished" in told
    assert "--set training.epochs=N with N above 3" in told
    assert snapshot(run) == before
    cli.ok("train", "--out", run, "--resume", "--quiet", "--set", "training.epochs=5", "--set", "training.patience=9")
    assert len((run / "history.jsonl").read_text().splitlines()) == 5
    assert "is finished" in cli.ok("train", "--out", run, "--resume", "--quiet").out
    shutil.rmtree(run / "checkpoint")
    assert "is finished" in cli.ok("train", "--out", run, "--resume", "--quiet").out
    more = cli.error("train", "--out", run, "--resume", "--quiet", "--set", "training.epochs=6")
    assert "has no checkpoint to resume from" in more


def test_a_fault_after_the_metrics_leaves_nothing(cli: Cli, whole: Path, data: Path) -> None:
    """Such as an I/O error when their folder is synced: training is done, but not tidied up."""
    run = Path(shutil.copytree(whole / "run", data.parent / "run"))
    (only,) = saved(run)
    shutil.copy(only, only.with_name("step-000000001.safetensors"))
    (run / "unfinished").touch()
    assert "is finished" in cli.ok("train", "--out", run, "--resume", "--quiet").out
    assert sorted(path.relative_to(run) for path in run.rglob("*")) == sorted(
        path.relative_to(whole / "run") for path in (whole / "run").rglob("*")
    )


def test_vectors_that_changed_before_the_first_checkpoint(cli: Cli, data: Path, tmp_path: Path) -> None:
    run, vectors = tmp_path / "run", tmp_path / "vectors.txt"
    vectors.write_text("soup 1 2 3 4\nroom 1 2 3 5\n")
    cli.ok("train", data, "--out", run, "--quiet", *THREE, "--vectors", vectors)
    for name in ("checkpoint", "model.safetensors", "metrics.json", "history.jsonl"):  # as if killed at once
        shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()
    vectors.write_text("soup 1 2 3 4\nroom 1 2 3 6\n")
    told = cli.error("train", "--out", run, "--resume", "--quiet")
    assert f"the vectors {vectors} were changed since {run} was started on them" in told
    vectors.write_text("soup 1 2 3 4\nroom 1 2 3 5\n")
    cli.ok("train", "--out", run, "--resume", "--quiet")


def test_vectors_in_memory_are_to_be_given_again(data: Path, tmp_path: Path) -> None:
    vectors = Vectors(["soup", "room"], np.ones((2, 4), dtype=np.float32))
    settings = {"model.name": "em-hrnn", "training.epochs": 1, "model.word_size": 3}
    train(data, tmp_path / "run", vectors=vectors, settings=settings, progress=False)
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    with pytest.raises(DataError, match="started with vectors in memory, and saved nothing yet; give them again"):
        open_run(tmp_path / "run")
    open_run(tmp_path / "run", given_vectors=vectors)


def test_other_vectors_are_refused(cli: Cli, data: Path, tmp_path: Path) -> None:
    run, vectors, other = tmp_path / "run", tmp_path / "vectors.txt", tmp_path / "other.txt"
    vectors.write_text("soup 1 2 3 4\nroom 1 2 3 5\n")
    other.write_text("soup 1 2 3 4\nroom 1 2 3 6\n")
    command = ["train", data, "--out", run, "--quiet", *THREE]
    cli.ok(*command, "--vectors", vectors)
    cli.ok(*command, "--resume", "--vectors", vectors)
    before = snapshot(run)
    told = cli.error(*command, "--resume", "--vectors", other)
    assert f"the vectors of {run} are others: it was started with {vectors}, and {other} was given" in told
    assert "; leave that out, or train again into another folder" in told
    moved = vectors.rename(tmp_path / "moved.txt")
    assert "vectors.txt do not exist; leave them out" in cli.error(*command, "--resume", "--vectors", vectors)
    cli.ok(*command, "--resume", "--vectors", moved)
    cli.ok(*command, "--resume")
    assert snapshot(run) == before
    description = json.loads((run / "config.json").read_text())
    del description["vectors_sha256"]  # a run from before there was one
    (run / "config.json").write_text(json.dumps(description))
    assert "are others" in cli.error(*command, "--resume", "--vectors", moved)
    moved.rename(vectors)
    cli.ok(*command, "--resume", "--vectors", vectors)


def test_vectors_for_a_run_that_has_none_or_other_ones_in_memory(data: Path, tmp_path: Path) -> None:
    config = make_config(assignments=[assignment for assignment in TINY if assignment != "--set"])
    vectors = Vectors(["soup", "room"], np.ones((2, 4), dtype=np.float32))
    (tmp_path / "vectors.txt").write_text("soup 1 2 3 4\n")

    def go_on(name: str, vectors: Vectors | Path | None) -> None:
        train(data, tmp_path / name, config=config, vectors=vectors, resume=True, progress=False)

    go_on("plain", None)
    for given in (vectors, tmp_path / "vectors.txt"):
        with pytest.raises(DataError, match=r"it was started with no vectors, and .* was given"):
            go_on("plain", given)
    go_on("memory", vectors)
    go_on("memory", vectors)
    with pytest.raises(DataError, match=r"it was started with vectors in memory, and .*vectors.txt was given"):
        go_on("memory", tmp_path / "vectors.txt")


def test_what_does_not_fit_is_refused_and_nothing_is_lost(
    cli: Cli, data: Path, stopped: Path, whole: Path, tmp_path: Path
) -> None:
    before = snapshot(stopped)
    resume = ["train", "--out", stopped, "--resume", "--quiet"]
    changed = cli.error(*resume, "--set", "training.learning_rate=0.5")
    assert "training.learning_rate = 0.5, but" in changed
    assert "was started with 0.002" in changed
    assert "model.name = 'hn-att', but" in cli.error(*resume, "--model", "hn-att")
    assert "is to be read as {'label': 'label'}" in cli.error(*resume, data, "--label-column", "label")
    assert "does not exist" in cli.error(*resume, tmp_path / "missing.csv")
    other = write_reviews(tmp_path / "other.csv", 61)
    assert "is not the data that" in cli.error(*resume, other)
    data.write_text(data.read_text().replace("soup", "bread", 1))
    assert "was changed since (the checksums differ)" in cli.error(*resume, data)
    assert snapshot(stopped) == before
    cli.ok(*resume)
    check_equal(whole / "run", stopped)


def test_a_corpus_in_the_run_that_was_changed(cli: Cli, stopped: Path) -> None:
    corpus, before = stopped / "corpus" / "train", snapshot(stopped / "checkpoint")
    content = bytearray((corpus / "data.arrow").read_bytes())
    content[len(content) // 2] ^= 1
    (corpus / "data.arrow").write_bytes(content)
    assert "data.arrow is damaged (its checksum differs)" in cli.error("train", "--out", stopped, "--resume")
    cli.ok("paper", "prepare", write_reviews(stopped.parent / "o.csv", 62), "--out", stopped.parent / "o", "--quiet")
    shutil.rmtree(corpus)
    shutil.copytree(stopped.parent / "o", corpus)
    assert "was saved with other data than now" in cli.error("train", "--out", stopped, "--resume")
    assert snapshot(stopped / "checkpoint") == before


def test_settings_of_the_run_that_were_changed(cli: Cli, stopped: Path) -> None:
    described = json.loads((stopped / "config.json").read_text())
    described["config"]["model"]["dropout"] = 0.5
    (stopped / "config.json").write_text(json.dumps(described))
    before = snapshot(stopped)
    told = cli.error("train", "--out", stopped, "--resume")
    assert "was saved with model.dropout = 0.3, which is 0.5 now; put back what was changed" in told
    assert snapshot(stopped) == before
    del described["data"]
    (stopped / "config.json").write_text(json.dumps(described))
    assert "does not say how to resume" in cli.error("train", "--out", stopped, "--resume")


def test_a_setting_of_which_nobody_knows_what_it_was_is_named(cli: Cli, stopped: Path) -> None:
    described = json.loads((stopped / "config.json").read_text())
    del described["config"]["em"]["hold_rate"]
    (stopped / "config.json").write_text(json.dumps(described))
    before = snapshot(stopped)
    told = cli.error("train", "--out", stopped, "--resume")
    assert "predates the setting em.hold_rate" in told
    assert "or train again with --overwrite" in told
    assert snapshot(stopped) == before
    cli.ok("explain", stopped, "The soup was good.")  # it can be used as it is


@pytest.mark.parametrize("damage", ["cut", "flipped bit", "garbage"])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(
    cli: Cli, stopped: Path, whole: Path, damage: str
) -> None:
    newest, _ = saved(stopped)
    content = bytearray(newest.read_bytes())
    content[-5] ^= 1
    newest.write_bytes({"cut": content[:-9], "flipped bit": content, "garbage": b"\x80\x04 garbage"}[damage])
    result = cli.ok("train", "--out", stopped, "--resume", "--quiet")
    assert f"{newest} is damaged" in result.err
    assert "the checkpoint before it is tried" in result.err
    check_equal(whole / "run", stopped)


def test_no_checkpoint_that_can_be_read(cli: Cli, stopped: Path) -> None:
    for path in saved(stopped):
        path.write_bytes(b"")
    result = cli("train", "--out", stopped, "--resume", "--quiet")
    assert result.code == 2
    assert "no other checkpoint is there: train again with --overwrite" in result.err


def test_a_checkpoint_of_a_newer_version(cli: Cli, stopped: Path, whole: Path) -> None:
    newest = saved(stopped)[0]
    tensors, note = load_arrays(newest)
    whole_note = newest.read_bytes()
    save_arrays(newest, tensors, {**note, "version": 2})
    before = snapshot(stopped)
    message = cli.error("train", "--out", stopped, "--resume")
    assert "has version 2 of the checkpoint format, this emhrnn reads version 1; install the emhrnn that" in message
    assert snapshot(stopped) == before
    newest.write_bytes(whole_note)
    cli.ok("train", "--out", stopped, "--resume", "--quiet")
    check_equal(whole / "run", stopped)


@pytest.mark.parametrize("why", [errno.ENOSPC, errno.EROFS])
def test_a_full_disk_or_a_read_only_folder(
    cli: Cli, stopped: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    before, sync = snapshot(stopped / "checkpoint"), os.fsync

    def fail(descriptor: int) -> None:
        if "step-" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(why, os.strerror(why))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        message = cli.error("train", "--out", stopped, "--resume", "--quiet")
    assert f"cannot save a checkpoint to {stopped / 'checkpoint'}: {os.strerror(why)}" in message
    assert "the last good one is intact" in message
    assert snapshot(stopped / "checkpoint") == before
    cli.ok("train", "--out", stopped, "--resume", "--quiet")
    check_equal(whole / "run", stopped)


def test_a_full_disk_before_there_is_a_checkpoint(
    cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def fail(descriptor: int) -> None:
        if "step-" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    told = cli.error("train", data, "--out", tmp_path / "new", *TINY, "--quiet")
    assert "No space left on device; make it possible to write there, then give the same command again" in told
    assert not (tmp_path / "new").exists()


def test_a_loss_that_is_not_a_number_leaves_batch_and_checkpoint(
    cli: Cli, stopped: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emhrnn.paper.em.objective import EMObjective

    before, loss = snapshot(stopped / "checkpoint"), EMObjective.loss

    def explode(self: EMObjective, batch: object, epoch: int, step: int) -> object:
        value, notes = loss(self, batch, epoch, step)  # type: ignore[arg-type]
        return (value * float("nan") if step == 13 else value), notes

    with monkeypatch.context() as patch:
        patch.setattr(EMObjective, "loss", explode)
        message = cli.error("train", "--out", stopped, "--resume", "--quiet")
    assert "loss or gradient is nan at epoch 2" in message
    assert "what was saved before is intact; train again with a smaller training.learning_rate" in message
    assert "words" in load_arrays(stopped / "bad-batch.safetensors")[0]
    assert snapshot(stopped / "checkpoint") == before
    (stopped / "bad-batch.safetensors").unlink()
    cli.ok("train", "--out", stopped, "--resume", "--quiet")
    check_equal(whole / "run", stopped)


def test_a_kill_during_preparation_does_not_block_the_place(cli: Cli, data: Path, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "corpus" / ".train.abcd.partial").mkdir(parents=True)
    (run / "unfinished").touch()
    cli.ok("train", data, "--out", run, "--quiet", *THREE)
    check_equal(whole / "run", run)
    assert list((run / "corpus").iterdir()) == [run / "corpus" / "train"]
    mine = tmp_path / "mine" / "corpus"
    mine.mkdir(parents=True)  # a folder of somebody else's, of the same name
    assert "exists and is not empty" in cli.error("train", data, "--out", mine.parent, *THREE)


def test_sigterm_saves_and_ends_with_143(data: Path, whole: Path, cli: Cli) -> None:
    run = data.parent / "run"
    command = [sys.executable, "-m", "emhrnn", "train", data, "--out", run, "--quiet", *THREE]
    frequent = ["--set", "training.checkpoint_seconds=0"]
    with subprocess.Popen([*command, *frequent], stderr=subprocess.PIPE, text=True) as process:
        while not saved(run) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    if process.returncode:  # else it was faster than we
        assert process.returncode == 143
        assert err.startswith(f"emhrnn: terminated; {run} holds ")
        assert err.endswith(f": emhrnn train --out {run} --resume\n")
        cli.ok("train", "--out", run, "--resume", "--quiet")
    check_equal(whole / "run", run)
