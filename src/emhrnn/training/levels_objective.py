"""EM-HRNN with several levels, bottom-up: Algorithm 1 for each level in its share of the epochs, on the phrases of the
frozen levels below it."""

import numpy as np
from jaxtyping import Int64
from torch import Tensor

from emhrnn.corpus import BatchPlan, Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.models.em_hrnn_levels import EMHRNNLevels
from emhrnn.training.config import Config
from emhrnn.training.em_objective import EMObjective, witnesses
from emhrnn.training.label_loss import LabelLoss
from emhrnn.training.schedule import stage


class LevelsObjective:
    """The objective of the level that learns. The model says which that is, so a checkpoint of it is enough."""

    def __init__(
        self, model: EMHRNNLevels, config: Config, label_loss: LabelLoss, corpus: Corpus, known: int = 0
    ) -> None:
        self.model = model
        self.config = config
        self.label_loss = label_loss
        self.corpus = corpus
        self.objective = self._of_top(known)

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]:
        level, first, _ = self._stage(epoch)
        while int(self.model.level) < level:
            self.model.rise()
            self.objective = self._of_top()
        return self.objective.loss(self.model.units(batch), epoch - first, step)

    def end_epoch(self) -> dict[str, float]:
        return self.objective.end_epoch()

    def settled(self, epoch: int) -> bool:
        level, first, _ = self._stage(epoch)
        return level + 1 == self.config.model.levels and self.objective.settled(epoch - first)

    def state_dict(self) -> dict[str, Tensor]:
        return self.objective.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.objective = self._of_top()  # the model was put back before
        self.objective.load_state_dict(state)

    def _stage(self, epoch: int) -> tuple[int, int, int]:
        return stage(self.config.training.epochs, self.config.model.levels, epoch)

    def _of_top(self, known: int = 0) -> EMObjective:
        em = self.config.em
        if self.model.level:
            em = em.model_copy(update={"rate": em.upper_rate})
        witness = self.model.units(witnesses(self.corpus))
        return EMObjective(
            self.model.top, em, self.label_loss, self.config.training.seed, self._lengths(), witness, known=known
        )  # fmt: skip

    def _lengths(self) -> Int64[np.ndarray, " rows"]:
        """Units of each document."""
        if not self.model.level:
            return self.corpus.lengths
        lengths = np.empty(len(self.corpus), dtype=np.int64)
        for rows in BatchPlan(self.corpus.lengths).in_order():
            lengths[rows] = self.model.units(self.corpus.batch(rows)).document_lengths
        return lengths
