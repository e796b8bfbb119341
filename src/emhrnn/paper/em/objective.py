"""One step of Algorithm 1 on a batch: E-step for the boundaries, then the two terms of Q with r frozen.

    states = word layer                           once; does not depend on z
    zhat   = imputed boundaries                   outside the blocks
    E      = responsibilities of the blocks       pure, no gradient
    theta  : - log p(y | z, w), z most probable   (or one drawn, or all of them, weighted by r)
    pi     : - sum_t gamma_t log pi_t + (1 - gamma_t) log(1 - pi_t)

Phases: `warm-up` trains theta on random segmentations, so that it cannot lean on one of them; `em` trains theta and pi.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.scores import PhraseLengths
from emhrnn.models import segmentation
from emhrnn.models.settings import EMConfig
from emhrnn.paper.em.blocks import Blocks, exact_blocks
from emhrnn.paper.em.steps import STRATEGIES, EStep, above, m_step_pi, m_step_theta, rate_shift, rate_threshold
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.shapes import Bool, Float
from emhrnn.training.config import Config
from emhrnn.training.distributed import ALONE, Processes
from emhrnn.training.loop import TINY, LabelLoss, label_part
from emhrnn.training.progress import FitResult
from emhrnn.training.schedule import Purpose, is_latent, numpy_generator, phase, torch_generator

COUNTED, AT_ONCE = 50_000, 1000  # documents whose pauses are counted, and how many at a time
LOW_RATE, HIGH_RATE = 0.02, 0.9  # of the free positions: below and above, phrases are sentences or words
WITNESSES = 200  # documents, from all over the corpus, on which the threshold is set at the end of an epoch


class EMObjective:
    """Algorithm 1, with the threshold on pi that is kept between steps (in the model)."""

    def __init__(
        self,
        model: EMHRNN,
        config: EMConfig,
        label_loss: LabelLoss,
        seed: int,
        witness: Batch,
        job: Processes = ALONE,
        *,
        known: int = 0,
    ) -> None:
        """`witness` is some documents of the corpus (`witnesses`). `known` documents, which came before and are not in
        the corpus, count beside it for the threshold."""
        self.model = model
        self.config = config
        self.label_loss = label_loss
        self.seed = seed
        self.job = job
        self.known = known
        self.monitor = Monitor()
        self.witness = witness

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Float[Tensor, ""], dict[str, float]]:
        dropout = self.job.noise(torch_generator(self.seed, Purpose.DROPOUT, step))
        generator = self.job.numbers(numpy_generator(self.seed, Purpose.BLOCKS, step))
        states, notes = self.model.words(batch, dropout), dict[str, float]()
        if self.model.rule is not None:
            return self._theta(batch, states, self.model.rule(batch), dropout), notes
        whole, a = self.job.whole(batch), self.job.gather(states.a.detach())  # the rate is that of the whole batch
        self._follow_rate(whole, a, step)
        if phase(self.config, epoch) == "warm-up":
            loss = self._theta(batch, states, segmentation.random(batch, self.config.rate, generator), dropout)
        else:
            zhat = self._impute(batch, states)
            e = STRATEGIES[self.config.estep](self.model, batch, states.detach(), zhat, self.config, generator)
            loss, notes = self._m_step(batch, states, zhat, e, a, dropout)
        self._hold_rate(whole, a, step)
        return loss, notes

    def _m_step(
        self,
        batch: Batch,
        states: WordStates,
        zhat: Bool[np.ndarray, " words"],
        e: EStep,
        a: Float[Tensor, " words_of_whole"],
        dropout: torch.Generator,
    ) -> tuple[Float[Tensor, ""], dict[str, float]]:
        """Both terms of Q, given the posterior."""
        rate = self._observe(batch, e, a)
        pi_loss = self._pi(batch, states, e)
        documents = batch.n_documents, self.job.whole(batch).n_documents
        means = {"log_evidence": e.log_evidence.mean(), "boundary_rate": rate}
        notes = {name: float(self.job.part(mean, *documents)) for name, mean in means.items()}
        if self.config.theta == "all":
            weights = _of_blocks(self.label_loss.weights(batch), e.posterior.blocks)
            theta_loss = m_step_theta(self.model, batch, states, zhat, e.posterior, weights=weights)
            amount = weights.sum()
            theta_loss = self.job.part(theta_loss, float(amount), float(self.job.sum(amount)))
        else:
            z = e.z_sample if self.config.theta == "sample" else self._most_probable(zhat, e)
            theta_loss = self._theta(batch, states, z, dropout)
        return theta_loss + pi_loss, {**notes, "label_loss": float(theta_loss.detach())}

    def end_epoch(self) -> dict[str, float]:
        """Sets the threshold by what the model says without dropout. The degeneracy monitor's numbers of the epoch."""
        if self.config.impute != "prior" and self.model.rule is None:
            with torch.no_grad():
                a = self.model.words(self.witness).a
            self._move(rate_threshold(self.witness, a, self.config.rate), self._share(self.witness))
        if self.monitor.empty:
            return {}
        return {name: value for name, value in self.monitor.summary().items() if np.isfinite(value)}

    def settled(self, epoch: int) -> bool:
        return self.model.rule is not None or self.config.estep == "none" or phase(self.config, epoch) == "em"

    def state_dict(self) -> dict[str, Tensor]:
        """What is not in the model: the monitor's sums of the epoch so far."""
        return self.monitor.state_dict()

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.monitor.load_state_dict(state)

    def _theta(
        self, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"], dropout: torch.Generator
    ) -> Float[Tensor, ""]:
        return label_part(self.label_loss, self.job, self.model.encode(batch, states, z, dropout).logits, batch)

    def _pi(self, batch: Batch, states: WordStates, e: EStep) -> Float[Tensor, ""]:
        weights = _of_words(self.label_loss.weights(batch), batch)
        # Q sums over words, and is averaged over documents
        documents = self._amount(batch)
        words = float(e.mask.sum() if weights is None else weights[e.mask].sum())
        loss = (words / documents) * m_step_pi(states.a, e.gamma, e.mask, weights=weights)
        return self.job.part(loss, documents, self._amount(self.job.whole(batch)))

    def _amount(self, batch: Batch) -> float:
        """How many documents there are, by weight."""
        return max(self.label_loss.amount(batch), TINY)

    def _impute(self, batch: Batch, states: WordStates) -> Bool[np.ndarray, " words"]:
        if self.config.impute == "prior":
            return above(batch, states.a)
        return above(batch, states.a, float(self.model.threshold))

    def _follow_rate(self, batch: Batch, a: Float[Tensor, " words"], step: int) -> None:
        """The threshold of `segment` follows the quantile that keeps the rate; the first batch that knows one sets
        it."""
        if self.config.impute != "prior":
            unset = float(self.model.threshold) == 0
            self._move(rate_threshold(batch, a, self.config.rate), 1.0 if unset else self._pace(batch, step, 0.1))

    def _move(self, wanted: float | None, weight: float) -> None:
        """An exponential moving average: one batch is a noisy witness of the corpus."""
        if wanted is not None:
            self.model.threshold.fill_((1 - weight) * float(self.model.threshold) + weight * wanted)

    def _pace(self, batch: Batch, step: int, least: float) -> float:
        """How far a batch moves what is followed from batch to batch: at first all the way; but never further than its
        share where other documents came before."""
        return min(least, self._share(batch)) if self.known else max(least, 1 / (step + 1))

    def _share(self, batch: Batch) -> float:
        """Of the documents in all that is known."""
        return batch.n_documents / (self.known + batch.n_documents)

    @torch.no_grad()
    def _hold_rate(self, batch: Batch, a: Float[Tensor, " words"], step: int) -> None:
        """Move the indicator's bias to where the mean of pi is the rate, and the threshold with it. After the E-step,
        which must see logits and threshold of the same bias."""
        if self.config.hold_rate:
            shift = self._pace(batch, step, 0.2) * rate_shift(batch, a, self.config.rate)
            self.model.indicator.bias.sub_(shift)
            if self.config.impute != "prior":
                self.model.threshold.sub_(shift)

    def _most_probable(self, zhat: Bool[np.ndarray, " words"], e: EStep) -> Bool[np.ndarray, " words"]:
        """Boundaries where the posterior exceeds the threshold that holds for the prior, so that the rate is kept."""
        over = (torch.logit(e.gamma.clamp(1e-6, 1 - 1e-6)) > self.model.threshold).numpy()
        return np.where(e.mask.numpy(), over, zhat)

    def _observe(self, batch: Batch, e: EStep, a: Float[Tensor, " words_of_whole"]) -> Tensor:
        """Give the monitor what the E-step found in the whole batch. The boundary rate."""
        whole, found = self.job.whole(batch), self.job.gather(torch.from_numpy(e.z_sample)).numpy()
        self.monitor.update(whole, found, torch.sigmoid(a).numpy())
        return torch.tensor(found[~whole.sentence_final].mean() if not whole.sentence_final.all() else 0.0)


def make_em_objective(
    model: EMHRNN, config: Config, label_loss: LabelLoss, corpus: Corpus, job: Processes, *, known: int
) -> EMObjective:
    """The objective of a network with latent phrase ends. `known` documents came before the corpus.

    Raises:
        DataError: a document has too many free positions to be enumerated (em.estep = exact).
    """
    if is_latent(config) and config.em.estep == "exact":  # now, not after the warm-up
        most_free = int(np.argmax(corpus.lengths - corpus.sentence_counts))
        exact_blocks(corpus.batch(np.array([most_free])))
    if model.pauses is not None and (known or model.pauses.empty):
        model.pauses.add(_portions(corpus, label_loss))
    return EMObjective(model, config.em, label_loss, config.training.seed, witnesses(corpus), job, known=known)


def _portions(corpus: Corpus, label_loss: LabelLoss) -> Iterator[Batch]:
    """Some documents, from all over the corpus: enough to know its words. They count as they do in the loss."""
    rows = corpus.spread(COUNTED)
    for first in range(0, len(rows), AT_ONCE):
        yield label_loss.weigh(corpus.batch(rows[first : first + AT_ONCE]))


def witnesses(corpus: Corpus) -> Batch:
    """Some documents that count, from all over the corpus."""
    counted = corpus if corpus.weights is None else corpus.select(np.flatnonzero(corpus.weights))
    return counted.batch(counted.spread(WITNESSES))


def _of_words(weights: Float[Tensor, " documents"] | None, batch: Batch) -> Float[Tensor, " words"] | None:
    """The weight of each word's document."""
    return None if weights is None else weights.repeat_interleave(torch.from_numpy(batch.document_lengths))


def _of_blocks(weights: Float[Tensor, " documents"] | None, blocks: Blocks) -> Float[Tensor, " blocks"]:
    """The blocks of a document share its weight, however many they are."""
    shares = torch.from_numpy(1 / np.bincount(blocks.documents)[blocks.documents]).float()
    return shares if weights is None else shares * weights[torch.from_numpy(blocks.documents)]


class Monitor:
    """Is the segmentation alive? EM with latent boundaries dies in two ways: no phrase ends anywhere, or one ends at
    every word. Both look healthy in the loss; the training history records these numbers epoch by epoch. It adds up
    batches; `summary` gives the epoch's numbers and starts again."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._words = self._free = self._boundaries = self._phrases = self._longest = 0
        self._pi = self._entropy = 0.0

    def state_dict(self) -> dict[str, Tensor]:
        """The sums since the last summary, for a checkpoint."""
        counts = [self._words, self._free, self._boundaries, self._phrases, self._longest]
        return {"counts": torch.tensor(counts), "sums": torch.tensor([self._pi, self._entropy], dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        counts = state["counts"].tolist()[:5]  # version 0.1 counted more
        self._words, self._free, self._boundaries, self._phrases, self._longest = counts
        self._pi, self._entropy = state["sums"].tolist()

    def update(self, batch: Batch, z: Bool[np.ndarray, " words"], pi: Float[np.ndarray, " words"]) -> None:
        """Add a batch with the phrase ends z that an E-step found."""
        free = ~batch.sentence_final
        self._words += batch.n_words
        self._free += int(free.sum())
        self._boundaries += int(z[free].sum())
        self._phrases += int(z.sum())
        self._longest = max(self._longest, int(np.diff(np.flatnonzero(z), prepend=-1).max()))
        p = pi[free].astype(np.float64)
        self._pi += float(p.sum())
        self._entropy -= float((_x_log_x(p) + _x_log_x(1 - p)).sum())

    @property
    def empty(self) -> bool:
        """True while there is nothing to sum up, as in epochs that learn no boundaries."""
        return self._words == 0

    def summary(self) -> dict[str, float]:
        """Of the words since the last one; free positions are all words but the ends of sentences."""
        free = max(self._free, 1)
        result = {
            "boundary_rate": self._boundaries / free,  # share of free positions with z = 1
            "mean_phrase_length": self._words / max(self._phrases, 1),
            "max_phrase_length": self._longest,
            "pi_mean": self._pi / free,
            "pi_entropy": self._entropy / free,  # nats per free position; log 2 = 0.69 is undecided, 0 is certain
        }
        self._reset()
        return result


def _x_log_x(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    y: np.ndarray = x * np.log(np.maximum(x, 1e-300))
    return y


def collapse(phrases: PhraseLengths, sentences: int) -> str | None:
    """What is wrong with phrases in so many sentences, or None. Where a sentence ends, a phrase always does."""
    free = round(phrases.mean * phrases.phrases) - sentences
    rate = (phrases.phrases - sentences) / max(free, 1)
    if free and rate < LOW_RATE:
        return f"phrases are whole sentences: only {rate:.1%} of the words within sentences end one"
    if free and rate > HIGH_RATE:
        return f"phrases are single words: {rate:.1%} of the words within sentences end one"
    return None


def phrase_remarks(config: Config, fitted: FitResult, valid: Corpus) -> list[str]:
    """What went wrong with learned phrases, if anything, and what to do about it."""
    if not is_latent(config):
        return []
    remarks, epochs, phrases = [], fitted.epochs, fitted.scores.phrases
    if config.em.estep != "none" and "em" not in {epoch.phase for epoch in epochs}:
        remarks.append(
            f"phrases were not learned: {len(epochs)} epoch{'s' * (len(epochs) != 1)} leave none for EM; raise "
            f"training.epochs, or lower em.warmup_epochs ({config.em.warmup_epochs})"
        )
    sentences = int(valid.sentence_counts.sum())
    if phrases is not None and (wrong := collapse(phrases, sentences)):
        remarks.append(f"{wrong}; {advice(config.em, sentences / float(valid.lengths.sum()))}")
    return remarks


def advice(em: EMConfig, ends: float) -> str:
    """What gives phrases a length again, where `ends` is the share of words that end a sentence, and so a phrase."""
    if em.impute != "rate" or not em.hold_rate:
        return "--set em.impute=rate --set em.hold_rate=true keeps em.rate of them"
    if em.rate - ends < LOW_RATE * (1 - ends):
        return f"sentence ends alone are {ends:.1%} of the words, so em.rate = {em.rate:g} leaves no others; raise it"
    return f"em.rate is {em.rate:g}; give another"
