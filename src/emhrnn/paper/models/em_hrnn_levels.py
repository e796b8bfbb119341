r"""EM-HRNN with N latent levels, of the authors' follow-up (docs/paper.md 6.1): level k cuts the units of k - 1.

    x   x   x   x   x   x   x   x   x      word vectors
    h1--h1--h1--h1--h1--h1--h1--h1--h1     word LSTM;           pi^1 = sigmoid(W^1 h1 + b^1): a phrase ends here
    \___/   \___/   |   \___/   \___/      word attention
      h2------h2----h2----h2------h2       LSTM over phrases;   pi^2 = sigmoid(W^2 h2 + b^2): a group of them ends here
      \_______/     \_____________/        phrase attention
          h3--------------h3               LSTM over groups; and so on, then sentences and document as in EM-HRNN
          \_______________/
                  s

To level k the phrases of level k - 1 are what words are to the first: `Units` in the place of words. So each level is
an EM-HRNN, and every E-step and M-step serves it as it is. Levels are trained bottom-up; while one learns, those below
are frozen, and so are their phrases. A new level begins with what the one below knows: `rise`.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from emhrnn.corpus import BatchPlan, Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.layers.attention import attend
from emhrnn.layers.dropout import dropout
from emhrnn.layers.packing import pack
from emhrnn.models.em_hrnn import EMHRNN, EMHRNNConfig, WordStates
from emhrnn.models.model import DocumentModel
from emhrnn.models.output import Output
from emhrnn.models.row import Facts
from emhrnn.training.config import Config
from emhrnn.training.distributed import Processes
from emhrnn.training.em_objective import EMObjective, witnesses
from emhrnn.training.objective import LabelLoss
from emhrnn.training.schedule import stage


@dataclass(frozen=True, eq=False)
class PhraseUnits(Batch):
    """Documents as the phrases of a level, one vector each; `words` are their numbers and mean nothing."""

    x: Float[Tensor, "words size"] | None = None


class UpperLevel(EMHRNN):
    """An EM-HRNN that reads `Units`."""

    def __init__(
        self, config: EMHRNNConfig, *, size: int, classes: int, generator: torch.Generator, rate: float
    ) -> None:
        super().__init__(config, table=torch.zeros(1, size), classes=classes, generator=generator, rate=rate)
        del self.embedding

    def words(self, batch: Batch, generator: torch.Generator | None = None) -> WordStates:
        assert isinstance(batch, PhraseUnits)
        assert batch.x is not None
        x = dropout(batch.x, self.dropout, generator)  # (units, size)
        h = dropout(self.word_layer(x, pack(batch.sentence_offsets)), self.dropout, generator)  # (units, word_size)
        return self.word_states(batch, h, None)

    @torch.no_grad()
    def begin_with(self, below: EMHRNN) -> None:
        """All layers that the level below has, too. The indicator, and the LSTM and attention over what it cuts, are
        new."""
        for mine, theirs in (
            (self.word_layer, below.phrase_layer),
            (self.word_attention, below.phrase_attention),
            (self.sentence_forward, below.sentence_forward),
            (self.sentence_backward, below.sentence_backward),
            (self.sentence_attention, below.sentence_attention),
            (self.output, below.output),
        ):
            mine.load_state_dict(theirs.state_dict())


class LevelsObjective:
    """Algorithm 1 for each level in its share of the epochs, on the phrases of the frozen levels below it.
    The model says which level learns, so a checkpoint of it is enough."""

    def __init__(
        self, model: "EMHRNNLevels", config: Config, label_loss: LabelLoss, corpus: Corpus, known: int = 0
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
        return level + 1 == self.config.levels and self.objective.settled(epoch - first)

    def state_dict(self) -> dict[str, Tensor]:
        return self.objective.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.objective = self._of_top()  # the model was put back before
        self.objective.load_state_dict(state)

    def _stage(self, epoch: int) -> tuple[int, int, int]:
        return stage(self.config.training.epochs, self.config.levels, epoch)

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


class EMHRNNLevels(DocumentModel):
    """The levels that have learned and the one that learns, `level`; those above wait."""

    level: Int64[Tensor, ""]

    def __init__(self, first: EMHRNN, uppers: list[UpperLevel]) -> None:
        super().__init__()
        self.levels = nn.ModuleList([first, *uppers])
        self.register_buffer("level", torch.zeros((), dtype=torch.int64))

    @property
    def top(self) -> EMHRNN:
        """The level that learns, or has learned last."""
        return self._levels()[-1]

    def rise(self) -> None:
        """Freeze the top and go on with the next level."""
        below = self.top
        self.level += 1
        upper = self.top
        assert isinstance(upper, UpperLevel)
        upper.begin_with(below)

    @torch.no_grad()
    def units(self, batch: Batch) -> Batch:
        """What the top reads."""
        for level in self._levels()[:-1]:
            batch = _cut(level, batch).units
        return batch

    def make_objective(
        self, config: Config, label_loss: LabelLoss, corpus: Corpus, job: Processes, *, known: int
    ) -> LevelsObjective:
        """Bottom-up training.

        Raises:
            ConfigError: several processes are to train it.
        """
        if job.size > 1:
            raise ConfigError(f"{config.levels} levels are trained in one process; start it without torchrun")
        return LevelsObjective(self, config, label_loss, corpus, known)

    def forward(self, batch: Batch) -> Output:
        """As EM-HRNN: z, alpha and pi are of the words, beta is the weight of each phrase of the first level, which is
        its weight in its group times that of the group in the next, up to the sentence."""
        cuts, units = [], batch
        for level in self._levels()[:-1]:
            cuts.append(_cut(level, units))
            units = cuts[-1].units
        output: Output = self.top(units)
        if not cuts:
            return output
        assert output.z is not None
        assert output.alpha is not None
        assert output.beta is not None
        beta = output.alpha * output.beta[_segment_of(output.z)]  # of the top's units in their sentences
        for cut in reversed(cuts[1:]):
            beta = cut.alpha * beta[_segment_of(cut.z)]
        return replace(output, z=cuts[0].z, alpha=cuts[0].alpha, beta=beta, pi=cuts[0].pi)

    def _levels(self) -> list[EMHRNN]:
        return [level for level in self.levels[: int(self.level) + 1] if isinstance(level, EMHRNN)]


def with_upper_levels(first: EMHRNN, config: EMHRNNConfig, facts: Facts, generator: torch.Generator) -> EMHRNNLevels:
    """A model of `config.levels` levels above the words, of which `first` is the lowest."""
    size = config.word_size * (1 + config.bidirectional_words)  # of the first level's phrase vectors
    upper = config.model_copy(
        update={"word_size": config.phrase_size, "bidirectional_words": False, "segmentation": "learned"}
    )
    uppers = [
        UpperLevel(upper, size=below, classes=facts.classes, generator=generator, rate=facts.upper_rate)
        for below in (size, *[config.phrase_size] * (config.levels - 2))
    ]
    return EMHRNNLevels(first, uppers)


@dataclass(frozen=True, eq=False)
class _Cut:
    """What a level makes of its units: phrases, which are the units of the next."""

    units: PhraseUnits
    z: Bool[np.ndarray, " words"]
    alpha: Float[Tensor, " words"]
    pi: Float[Tensor, " words"]


def _cut(level: EMHRNN, batch: Batch) -> _Cut:
    states = level.words(batch)
    z = level.segment(batch, states)
    q, alpha = attend(states.h1, states.scores, torch.from_numpy(np.concatenate([[0], np.flatnonzero(z) + 1])))
    same = {field.name: getattr(batch, field.name) for field in fields(Batch)}
    phrases_before = np.concatenate([[0], np.cumsum(z)])[batch.sentence_offsets]  # (sentences + 1,)
    units = PhraseUnits(**{**same, "words": np.arange(len(q)), "sentence_offsets": phrases_before}, x=q)
    return _Cut(units, z, alpha, torch.sigmoid(states.a))


def _segment_of(z: Bool[np.ndarray, " words"]) -> Int64[Tensor, " words"]:
    """The segment of each unit, where z marks the last unit of each."""
    return torch.from_numpy(np.cumsum(z) - z)
