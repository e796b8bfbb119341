"""The numbers of training for TensorBoard: `tensorboard --logdir RUN/tensorboard`. Hooked to `fit` from outside."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from emhrnn.errors import ConfigError
from emhrnn.training.history import Epoch
from emhrnn.training.loop import Step

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FOLDER = "tensorboard"
EVERY = 10  # steps between points of the training loss


class TensorBoard:
    """Give `step` and `epoch` to training as on_step and on_epoch, and leave the block when it is done.

    The x axis is the number of steps since the start, so that a resumed run goes on where it was.
    """

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise ConfigError(
                "--tensorboard needs TensorBoard, which is not installed; leave it out, or install it with: "
                "pip install 'emhrnn[tensorboard]'"
            )
        self.folder = folder
        self._writer: SummaryWriter | None = None
        self._last = 0

    def __enter__(self) -> "TensorBoard":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def step(self, step: Step) -> None:
        self._last = step.number
        if step.number % EVERY == 0:
            self._add("step/loss", step.notes.get("label_loss", step.loss))
            self._add("step/learning_rate", step.learning_rate)

    def epoch(self, epoch: Epoch) -> None:
        self._add("train/loss", epoch.train_loss)
        self._add("train/words_per_second", epoch.words_per_second)
        self._add("train/waiting", epoch.waiting)
        for name, value in epoch.valid.items():
            self._add(f"valid/{name}", value)
        for name, value in epoch.boundaries.items():
            self._add(f"boundaries/{name}", float(value))
        if self._writer is not None:
            self._writer.flush()

    def _add(self, name: str, value: float) -> None:
        """The files are made with the first number: before that, the place of the run must stay empty."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # What a killed run wrote after its last checkpoint is hidden: those steps are taken again.
            self._writer = SummaryWriter(str(self.folder), purge_step=self._last)
        self._writer.add_scalar(name, value, self._last)
