"""Training as a job: from the start, or on from where an earlier process was stopped, telling how far it is."""

import time
from pathlib import Path

from emhrnn.api import Trained, train
from emhrnn.paper.jobs import report_progress
from emhrnn.training.config import Config
from emhrnn.training.data import Named
from emhrnn.training.progress import Epoch, Step
from emhrnn.training.run import is_run

RUN = "run"
EVERY = 1.0  # seconds between two reports within an epoch


def train_or_resume(
    folder: Path, data: Named, config: Config, *, vectors: str | None, valid: Path | None = None
) -> Trained:
    """The run is in the job's folder, under `RUN`."""
    out, watch = folder / RUN, _Watch(folder, config.training.epochs)
    report_progress(folder, 0.0, "reading")
    if is_run(out):
        return train(None, out, resume=True, progress=False, on_epoch=watch.epoch, on_step=watch.step)
    return train(
        data, out, config=config, valid=valid, vectors=vectors, progress=False, on_epoch=watch.epoch, on_step=watch.step
    )  # fmt: skip


class _Watch:
    """The share of the work that is done: of all epochs, and one more for what comes after them."""

    def __init__(self, folder: Path, epochs: int) -> None:
        self.folder = folder
        self.epochs = epochs
        self.valid = ""  # of the last epoch
        self.told = 0.0

    def step(self, step: Step) -> None:
        now = time.monotonic()
        if now - self.told >= EVERY:
            self.told = now
            self._tell(step.epoch + (step.batch + 1) / step.batches, step.epoch)

    def epoch(self, epoch: Epoch) -> None:
        self.valid = f", valid {epoch.valid['accuracy']:.1%}"
        self._tell(epoch.epoch + 1.0, epoch.epoch)

    def _tell(self, done: float, epoch: int) -> None:
        report_progress(self.folder, done / (self.epochs + 1), f"epoch {epoch + 1} of {self.epochs}{self.valid}")
