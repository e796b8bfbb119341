"""Training by two processes of one thread each, against one: words per second and efficiency.

    python -m benchmarks.distributed [--quick] [--json]

starts torchrun with two processes, which take turns: the first alone while the other waits, then both on the same
batches (strong scaling), then both on batches of twice the words (weak scaling); so a slow patch of the machine hits
all three. An efficiency of 1 is twice the words per second. The clock is wall time: it needs two idle cores. `warm_up`
is a step with given phrase ends, `em` one with the E-step.

    em_alone_words_per_second    of one process
    em_strong_efficiency         words/s of two processes / (2 * words/s of one), same batches
    em_weak_efficiency           the same with batches of twice the words
"""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.documents import review_lengths
from benchmarks.timing import fix_threads, options, report
from emhrnn.corpus import Corpus
from emhrnn.training.config import Config, make_config
from emhrnn.training.data import embedding_table
from emhrnn.training.distributed import ALONE, Processes, joined, launched
from emhrnn.training.loop import make_objective, steps
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.progress import Step
from emhrnn.training.run import new_run
from emhrnn.training.schedule import Position

BATCH = 4000  # words
STEPS = 3  # of each candidate in a round
PHASES = {"warm_up": ["em.estep=none"], "em": ["em.warmup_epochs=0"]}


def config_of(*assignments: str) -> Config:
    """Settings of em-hrnn."""
    return make_config(assignments=assignments, model="em-hrnn")


def make_corpus(documents: int = 1500) -> Corpus:
    """Documents with the lengths of real reviews, of words that are as frequent as real ones."""
    rng = np.random.default_rng(0)
    texts = []
    for sentences in review_lengths(rng, documents):
        words = np.minimum(rng.zipf(1.3, sum(sentences)), 20_000)
        pieces = np.split(words, np.cumsum(sentences)[:-1])
        texts.append(" ".join("W" + " w".join(map(str, piece)) + "." for piece in pieces))
    return Corpus.from_texts(texts, rng.integers(0, 5, documents).tolist())


def training(corpus: Corpus, config: Config, job: Processes) -> Iterator[Step]:
    """The steps of the real loop."""
    table = embedding_table(config, corpus, None)
    run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
    objective = make_objective(run.model, config, corpus, job)
    return steps(objective, Optimizer(run.model, config.training), corpus, config.training, Position(), job=job)


def speed(candidate: Iterator[Step]) -> float:
    """Words per second of some steps."""
    done = [next(candidate) for _ in range(STEPS)]
    return sum(step.words for step in done) / sum(step.seconds for step in done)


def measure(group: Processes, rounds: int) -> dict[str, float]:
    fix_threads(1)
    corpus, figures = make_corpus(), {}
    for phase, settings in PHASES.items():
        candidates = {
            name: (job, training(corpus, config_of(*settings, f"training.batch_words={words}"), job))
            for name, job, words in (("alone", ALONE, BATCH), ("strong", group, BATCH), ("weak", group, 2 * BATCH))
        }
        speeds: dict[str, list[float]] = {name: [] for name in candidates}
        for turn in range(-1, rounds):  # the first is for warming up
            for name, (job, candidate) in candidates.items():
                words_per_second = speed(candidate) if job is group or group.first else 0.0
                group.largest([0])  # who has no part in it waits
                if turn >= 0:
                    speeds[name].append(words_per_second)
        if group.first:
            figures |= _figures(phase, speeds)
    return figures


def _figures(phase: str, speeds: dict[str, list[float]]) -> dict[str, float]:
    def efficiency(name: str) -> float:
        return statistics.median(two / (2 * one) for two, one in zip(speeds[name], speeds["alone"], strict=True))

    return {
        f"{phase}_alone_words_per_second": statistics.median(speeds["alone"]),
        f"{phase}_strong_efficiency": efficiency("strong"),
        f"{phase}_weak_efficiency": efficiency("weak"),
    }


def main() -> None:
    arguments = options(__doc__, quick="fewer rounds, under 50 seconds").parse_args()
    if not launched():
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        sys.exit(subprocess.run([*torchrun, "-m", "benchmarks.distributed", *sys.argv[1:]], env=environment).returncode)
    with joined() as group:
        figures = measure(group, rounds=5 if arguments.quick else 20)
        if group.first:
            report(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
