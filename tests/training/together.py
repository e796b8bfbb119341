"""What the tests of several processes start, as `torchrun ... -m tests.training.together`.

DATA OUT              train every system below into OUT
--kill RANK STEP ...  `emhrnn ...`, in which that process is killed at its so-manieth step, at the first attempt
--fail RANK STEP ...  ... in which that process fails instead
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from emhrnn.api import train
from emhrnn.cli import leave_at_once, main
from emhrnn.errors import DataError
from emhrnn.training import loop
from emhrnn.training.config import make_config
from emhrnn.training.distributed import joined
from tests.behaviour.commands import TINY

COMMON = [
    *[assignment for assignment in TINY if assignment != "--set"],
    "training.epochs=2", "training.batch_words=300", "training.seed=5", "training.threads=1",
    "data.validation=0.4",  # fewer documents fit no temperature
]  # fmt: skip
EM = ["em.warmup_epochs=1", "em.blocks=3", "em.block_length=3"]
SYSTEMS = {
    "local": EM,
    "balanced": [*EM, "em.theta=sample", "training.class_weight=balanced"],
    "all": [*EM, "em.theta=all", "model.tune_embedding=false", "training.optimizer=sgd"],
    "sample": [*EM, "em.theta=sample", "training.label_smoothing=0.1"],
    "one by one": [*EM, "training.batch_documents=1"],  # batches of fewer documents than processes
    "hn-att": ["model.name=hn-att"],
    "conv-grnn": ["model.name=conv-grnn"],
    "evidence": [
        "model.name=evidence",
        "model.encoder_size=3",
        "model.sentence_weights=2",
        "model.dropout=0.2",
        "training.class_weight=balanced",
    ],
}


def train_all(data: Path, out: Path) -> None:
    with joined():
        for name, settings in SYSTEMS.items():
            train(data, out / name, config=make_config(assignments=settings, shared=COMMON), progress=False)


def spoil(what: str, rank: str, step: int) -> None:
    """Let a process of the first attempt come to grief at a step."""
    if os.environ["RANK"] != rank or os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
        return
    steps, left = loop.learning_rate, step

    def counted(*arguments: Any) -> float:
        nonlocal left
        left -= 1
        if left == 0 and what == "--kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif left == 0:
            raise DataError("process 1 has a reason of its own")
        return steps(*arguments)

    loop.learning_rate = counted


if __name__ == "__main__":
    if sys.argv[1].startswith("--"):
        _, what, rank, step, *arguments = sys.argv
        sys.argv[1:] = arguments
        spoil(what, rank, int(step))
        main()
    else:
        train_all(Path(sys.argv[1]), Path(sys.argv[2]))
        leave_at_once(0)
