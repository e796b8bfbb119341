"""Training on a corpus that does not fit into the memory this process may have; run by `test_memory.py`.

    python -m tests.training.memory SMALL LARGE

trains some steps on a small prepared corpus, then forbids itself to get more than `ROOM` bytes of memory besides, and
trains some steps on a large one, whose word ids alone take more than that. At the end it shows that the limit is real:
all documents at once do not fit. Files that are mapped for reading are no memory of the process: the system takes their
pages away when it needs them.
"""

import json
import resource
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from emhrnn.corpus import Corpus
from emhrnn.training.config import make_config
from emhrnn.training.data import embedding_table
from emhrnn.training.loop import make_objective, steps
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.run import new_run
from emhrnn.training.schedule import Position

ROOM = 32 << 20
SETTINGS = ["em.warmup_epochs=0", "training.batch_words=1000", "model.embedding_size=8"]


def used(what: str = "VmData") -> int:
    """Bytes of memory that this process has for itself."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what + ":"))
    return int(line.split()[1]) * 1024


def train_some(path: Path) -> Corpus:
    config = make_config(assignments=SETTINGS, model="em-hrnn")
    corpus, _ = Corpus.open(path).split(0.01, np.random.default_rng(0))
    table = embedding_table(config, corpus, None)
    run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
    objective = make_objective(run.model, config, corpus)
    optimizer = Optimizer(run.model, config.training)
    for _ in islice(steps(objective, optimizer, corpus, config.training, Position()), 4):
        pass
    return corpus


def main() -> None:
    torch.set_num_threads(1)
    small, large = map(Path, sys.argv[1:])
    train_some(small)
    before = used()
    resource.setrlimit(resource.RLIMIT_DATA, (before + ROOM, before + ROOM))
    corpus = train_some(large)
    grown = used() - before
    try:
        corpus.batch(np.arange(len(corpus)))
        all_at_once = "fits"
    except MemoryError:
        all_at_once = "does not fit"
    print(json.dumps({"grown": grown, "words": int(corpus.lengths.sum()), "all at once": all_at_once}))


if __name__ == "__main__":
    main()
