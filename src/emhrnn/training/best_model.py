"""The weights of the best epoch: in the run folder, or in memory where there is none."""

from pathlib import Path

from torch import Tensor

from emhrnn.errors import CheckpointError
from emhrnn.training.checkpoint import load_tensors
from emhrnn.training.checkpointing import Progress
from emhrnn.training.run import WEIGHTS, Run, save_weights


class BestModel:
    def __init__(self, run: Run, folder: Path | None) -> None:
        self.run = run
        self.folder = folder
        self.weights: dict[str, Tensor] | None = None

    def keep(self, epoch: int) -> None:
        """The model as it is now is the best."""
        self.weights = {name: t.clone() for name, t in self.run.model.state_dict().items()}
        if self.folder is not None:
            save_weights(self.folder, self.run, epoch)

    def find(self, now: Progress) -> None:
        """After a resume. What is on disk may be older than the checkpoint, when training was killed between the two:
        then the checkpoint, at the end of the best epoch, is it. Or newer, when an older checkpoint had to do: then
        training comes by that epoch again."""
        if now.best.epoch < 0:
            return
        if now.position.batch == 0 and now.best.epoch == now.position.epoch - 1:
            self.keep(now.best.epoch)
        elif self.folder is not None and (self.folder / WEIGHTS).is_file():
            weights, note = load_tensors(self.folder / WEIGHTS)
            if note.get("epoch") == now.best.epoch:
                self.weights = weights

    def restore(self) -> None:
        """Put the best weights into the model."""
        if self.weights is None:
            raise CheckpointError(
                f"the weights of the best epoch are not in {self.folder}; copy {WEIGHTS} there again, or train anew"
            )
        self.run.model.load_state_dict(self.weights)
