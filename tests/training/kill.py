"""Train, kill, resume, again and again: everything must come out bit for bit as without any kill.

    python -m tests.training.kill --kills 20

is the long form of `tests/training/test_kill.py`. A process counts what it does: batches read, files synced, files
renamed. At a number that is drawn beforehand it kills itself with SIGKILL, which nothing can catch or clean up after;
a file that is being synced is first cut in half. So kills fall into preparation, steps, validation, and the writing of
checkpoints and weights. Every process also draws how often it saves.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from emhrnn.api import train
from emhrnn.training.arrays import load_arrays
from emhrnn.training.config import make_config, settings_of
from emhrnn.training.folder import checkpoint_files
from tests.back_ends import threads_kept
from tests.behaviour.commands import TINY, write_reviews

SYSTEMS = {
    "em-hrnn": ["em.estep=local", "em.blocks=2", "em.block_length=3", "em.warmup_epochs=1"],
    "hn-att": ["model.name=hn-att"],
    "evidence": ["model.name=evidence", "model.encoder_size=3", "model.sentence_weights=2", "model.dropout=0.2"],
}
COMMON = [
    *[assignment for assignment in TINY if assignment != "--set"],
    "training.epochs=3", "training.patience=4", "training.batch_words=150", "training.seed=5", "training.threads=1",
]  # fmt: skip
MOMENTS = 40  # a process is killed at one of its first so many doings

# Imports once, then forks a process for every command that it reads: a line of JSON, the moment first.
NURSERY = """
import json, os, signal, sys
import emhrnn.api, emhrnn.training.resume, emhrnn.evaluation.predict
from emhrnn.corpus.dataset import Corpus
from emhrnn.cli import main

def counted(function, cut=False):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            try:
                os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2) if cut else None
            except OSError:  # a folder, or open for reading
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

Corpus.batch = counted(Corpus.batch)
os.replace, os.rename, os.fsync = counted(os.replace), counted(os.rename), counted(os.fsync, cut=True)
for line in sys.stdin:
    left, *sys.argv[1:] = json.loads(line)
    child = os.fork()
    if not child:
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr, flush=True)
"""


class Nursery:
    """Starts processes that are killed at a moment of theirs."""

    def __enter__(self) -> "Nursery":
        self.process = subprocess.Popen(
            [sys.executable, "-c", NURSERY], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, moment: int, arguments: list[str | Path]) -> bool:
        """True when it came to its end, False when it was killed."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.write(json.dumps([moment, *map(str, arguments)]) + "\n")
        self.process.stdin.flush()
        told = self.process.stderr.readline()
        if told.strip() not in ("0", "-9"):
            raise AssertionError(told)
        return told.strip() == "0"


def uninterrupted(data: Path, out: Path, system: str) -> Path:
    with threads_kept():
        train(data, out, config=make_config(assignments=SYSTEMS[system], shared=COMMON), progress=False)
    return out


def killed(nursery: Nursery, data: Path, out: Path, system: str, kills: int, seed: int) -> int:
    """A run that is killed up to `kills` times and resumed to its end; how often it was."""
    generator = np.random.default_rng([seed, kills])
    done = 0
    while True:
        moment = int(generator.integers(1, MOMENTS)) if done < kills else 0
        arguments = ["train", "--out", out, "--resume", "--quiet"]
        if not (out / "config.json").exists():
            known = [setting for setting in COMMON if setting.partition("=")[0] in settings_of(system)]
            arguments += [data, *(part for a in [*known, *SYSTEMS[system]] for part in ("--set", a))]
        arguments += ["--set", f"training.checkpoint_seconds={generator.choice([0, 60])}"]
        if nursery.run(moment, arguments):
            return done
        done += 1


def check_equal(left: Path, right: Path) -> None:
    """Weights, history but for times, metrics but for times, and the last checkpoint: all the same."""
    assert (left / "model.safetensors").read_bytes() == (right / "model.safetensors").read_bytes()
    assert _history(left) == _history(right)
    assert (
        json.loads((left / "metrics.json").read_text())["valid"]
        == json.loads((right / "metrics.json").read_text())["valid"]
    )
    (one,), (two,) = (checkpoint_files(run) for run in (left, right))
    ours, theirs = load_arrays(one)[0], load_arrays(two)[0]
    assert ours.keys() == theirs.keys()
    assert all(ours[name].dtype == theirs[name].dtype and np.array_equal(ours[name], theirs[name]) for name in ours)
    assert sorted(path.name for path in left.iterdir()) == sorted(path.name for path in right.iterdir())


def _history(run: Path) -> list[dict[str, object]]:
    epochs = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return [{k: v for k, v in epoch.items() if k not in ("seconds", "words_per_second", "waiting")} for epoch in epochs]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20, help="of each system")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Nursery() as nursery:
        folder = Path(name)
        data = write_reviews(folder / "reviews.csv", 80)
        for system in SYSTEMS:
            whole = uninterrupted(data, folder / system, system)
            left, runs = options.kills, 0
            while left > 0:
                out = folder / f"{system}-{runs}"
                left -= killed(nursery, data, out, system, left, options.seed + runs)
                check_equal(whole, out)
                runs += 1
            print(f"{system}: {options.kills} kills in {runs} runs, all equal to the uninterrupted one")


if __name__ == "__main__":
    main()
