"""Score a large file within a memory limit, kill it again and again, and compare with the uninterrupted run.

    python -m tests.scoring.kill --bytes 2e9 --kills 3 --limit 500e6

is the long form of `tests/scoring/test_kill.py`. The file is written from a seed, with the 100,000 words of a
run with GloVe, by Zipf's law, and in every document a number and a misspelling that no other has. A quarter of the file
is text; the rest is the page that it came from, a column that is read but not scored. The model has the default sizes
and random weights, which change no time and no memory. Each process, the one that reads and the workers, gets the limit
from the system (RLIMIT_DATA: private memory; what exceeds it fails), and is watched: the peak of its resident memory
(VmHWM), libraries and all, must be under the limit, too. Kills fall at moments drawn from the seed.
"""

import argparse
import filecmp
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from emhrnn.corpus import TextSettings
from emhrnn.corpus.batch import Batch
from emhrnn.models.segmentation import PAPER_RATE
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.scoring.chunks import CHARACTERS
from emhrnn.text import UNK, Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import describe, new_run, save_weights

SENTENCES = 50_000  # that there are, of which a document has some
POLL = 0.1  # seconds


def make_words(count: int, rng: np.random.Generator) -> list[str]:
    """Made-up words of English lengths, the common ones shorter."""
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    lengths = np.clip(rng.poisson(3 + np.log(np.arange(1, 2 * count + 1)) / 3), 1, 14)
    text = "".join(rng.choice(letters, int(lengths.sum())))
    ends = np.cumsum(lengths).tolist()
    found = dict.fromkeys(text[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True))
    return list(found)[:count]


def make_run(folder: Path, words: list[str]) -> None:
    """Random weights, and phrases of the usual length."""
    table = torch.randn(len(words) + 1, 100, generator=torch.Generator().manual_seed(0))
    vocabulary = Vocabulary([UNK, *words])
    run = new_run(
        make_config(model="em-hrnn"),
        vocabulary,
        ("1", "2", "3", "4", "5"),
        table,
        multi_label=False,
        text=TextSettings(),
    )
    assert isinstance(run.model, EMHRNN)
    with torch.no_grad():
        a = run.model.words(Batch.from_lists([[list(range(1000))]])).a
        run.model.threshold.fill_(a.quantile(1 - PAPER_RATE))
    folder.mkdir(parents=True)
    describe(folder, run)
    save_weights(folder, run, 0)


def make_documents(words: list[str], rng: np.random.Generator) -> Iterator[str]:
    share = np.cumsum((np.arange(len(words)) + 3.7) ** -1.2)  # a chunk has 24,000 words; of film reviews, 16,000
    lengths = rng.integers(5, 36, SENTENCES)
    chosen = np.searchsorted(share, rng.random(int(lengths.sum())) * share[-1]).tolist()
    ends = np.cumsum(lengths).tolist()
    sentences = [
        " ".join(words[i] for i in chosen[end - length : end]).capitalize() + "."
        for end, length in zip(ends, lengths.tolist(), strict=True)
    ]
    number = 0
    while True:
        for some in np.split(rng.integers(0, SENTENCES, 10_000), np.cumsum(rng.integers(2, 20, 900)))[:-1]:
            number += 1
            yield " ".join([f"Number {number} mis{number:x}pelt.", *(sentences[i] for i in some.tolist())])


def write_documents(path: Path, size: int, documents: Iterator[str]) -> tuple[int, int]:
    """jsonl of `size` bytes or a little more; how many documents, and characters of text."""
    written = rows = characters = 0
    with path.open("wb") as file:
        while written < size:
            page = "".join(f"<p>{paragraph}</p>" for paragraph in islice(documents, 3))
            row = {"id": f"r{rows}", "page": page, "text": next(documents)}
            written += file.write(json.dumps(row).encode() + b"\n")
            rows, characters = rows + 1, characters + len(row["text"])
    return rows, characters


class Watched:
    """`emhrnn predict` within the limit. `peaks` are the highest resident bytes of the process that reads, and of any
    worker."""

    def __init__(self, limit: int, workers: int) -> None:
        self.limit, self.workers = limit, workers
        self.peaks: dict[str, int] = defaultdict(int)

    def predict(self, run: Path, data: Path, out: Path, *, kill_after: int | None = None) -> bool:
        """True when it came to its end; False when it was killed, once so many chunks were in the journal."""
        arguments = ["predict", run, data, "--out", out, "--workers", self.workers, "--quiet"]
        process = subprocess.Popen(
            [sys.executable, "-m", "emhrnn", *map(str, arguments)],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (self.limit, self.limit)),
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        journal = out.with_name(out.name + ".unfinished") / "journal.jsonl"
        while process.poll() is None:
            children = _children(process.pid)
            self._look("main", process.pid)
            for child in children:
                self._look("worker", child)
            if kill_after is not None and _lines(journal) >= kill_after:
                process.send_signal(signal.SIGKILL)
                process.wait()
                _wait_for_end(children)
                return False
            time.sleep(POLL)
        if process.returncode:
            raise AssertionError(f"it ended with {process.returncode}")
        return True

    def _look(self, role: str, process: int) -> None:
        with suppress(OSError, StopIteration):  # it has ended
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
            self.peaks[role] = max(self.peaks[role], peak)


def _children(process: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


def _wait_for_end(processes: list[int]) -> None:
    """Workers end by themselves when the process that feeds them is gone."""
    began = time.monotonic()
    while any(Path(f"/proc/{process}").exists() for process in processes):
        if time.monotonic() - began > 60:
            raise AssertionError("workers are left behind")
        time.sleep(POLL)


def _lines(path: Path) -> int:
    with suppress(OSError):
        return path.read_bytes().count(b"\n")
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=float, default=2e9, help="of the file")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--limit", type=float, default=500e6, help="bytes of each process")
    parser.add_argument("--words", type=int, default=100_000, help="of the model")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as name:
        folder = Path(name)
        run, data, whole, out = (folder / name for name in ("run", "data.jsonl", "whole.csv", "out.csv"))
        words = make_words(options.words, rng)
        make_run(run, words)
        rows, characters = write_documents(data, int(options.bytes), make_documents(words, rng))
        print(f"{rows:,} documents, {data.stat().st_size:,} bytes, {len(words):,} words known", flush=True)

        watched = Watched(int(options.limit), options.workers)
        began = time.monotonic()
        watched.predict(run, data, whole)
        seconds = time.monotonic() - began
        print(f"uninterrupted: {seconds:,.0f} s, {rows / seconds:,.0f} documents/s, start-up included", flush=True)
        chunks = characters // CHARACTERS
        for moment in np.sort(rng.integers(1, max(2, chunks - 9), options.kills)).tolist():
            if watched.predict(run, data, out, kill_after=moment):
                raise AssertionError("it was done before it was killed; give more --bytes")
            print(f"killed after {moment:,} of about {chunks:,} chunks", flush=True)
        watched.predict(run, data, out)
        same = filecmp.cmp(whole, out, shallow=False)
        digest = hashlib.sha256(whole.read_bytes()).hexdigest()
        told = {role: f"{peak / 1e6:,.0f} MB" for role, peak in watched.peaks.items()}
        print(f"{options.kills} kills: {'the same' if same else 'OTHER'} bytes, sha256 {digest}; peak memory {told}")
        if not same or max(watched.peaks.values()) > options.limit:
            sys.exit(1)


if __name__ == "__main__":
    main()
