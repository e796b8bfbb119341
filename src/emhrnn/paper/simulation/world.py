r"""The paper's simulation, section 4.1, in the readings that its text allows (docs/paper.md 1.10; docs/simulation.md).

Documents of two sentences of five tokens; the fifth is one common token, and z = 1 there. Labels come from a teacher:
an EM-HRNN with random parameters that reads the true z.

    independent   every token a fresh random vector, z a coin toss: the paper, read literally
    state         every token a fresh random vector, z_t = 1[v . h1_t > its median], h1 the teacher's word states
    vocabulary    tokens drawn from a finite set of random vectors; each type has its own z

Then all 256 segmentations of every simulated document at once, and what follows from them.

With theta fixed, log p(y | Z, w) of all of them is computed once, as a table; every E-step, by whatever blocks, then
only reads it. The oracle knows the teacher, the tokens and the label, but no rule for z. To it p(Z | x) = 1 / 256, so

    p(y | x)      = mean over Z of p(y | Z, x)
    I(z; y | x)   = H(y | x) - H(y | Z, x)                 bits that a label carries about the boundaries of a document
    p(Z | y, x)   = p(y | Z, x) / (256 p(y | x))           the oracle says 1 where E[z_t | y, x] > 1/2

Recovery is the measure of Table 1: which share of the indicators is right. Without the label a model says
z = 1[pi > 1/2], as at test time. With it, z = 1[E[z | y, w] > 1/2] by Bayes' rule over all segmentations. Forced
positions (the last token of each sentence) are always right; the paper counts them.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.layers.recurrent import LSTM
from emhrnn.paper.em.blocks import Blocks, bit_table, current, exact_blocks
from emhrnn.paper.em.likelihood import batch_labels, document_logits, sentence_vectors
from emhrnn.paper.em.plan import make_plan
from emhrnn.paper.em.steps import weigh
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.paper.models.rows import PAPER_NETWORK
from emhrnn.shapes import Bool, Float, Int64

READINGS = ("independent", "state", "vocabulary")
SENTENCES, LENGTH, SIZE, CLASSES = 2, 5, 50, 5
END, FIRST = 1, 2  # word ids; 0 stands for unknown words, of which there are none


@dataclass(frozen=True)
class WorldSetting:
    """What the paper leaves open."""

    types: int = 30  # vocabulary: how many tokens there are besides the common one
    # The teacher's weights, times what a new network has. Were its word states to hold the sentence so far, or its
    # attentions weak, so that a phrase is the mean of its words, then phrase ends would hardly matter for the label.
    word_gain: float = 2.0  # word LSTM, of the word
    word_recurrence: float = 0.2  # word LSTM, of the state before
    word_memory: float = -4.0  # bias of its forget gate
    attention_gain: float = 8.0
    sharpness: float = 8.0  # standard deviation of its logits


@dataclass(frozen=True, eq=False)
class World:
    """Documents, their true boundaries, and the teacher that labelled them."""

    reading: str
    teacher: EMHRNN
    train: Batch
    test: Batch
    z_train: Bool[np.ndarray, " train_words"]
    z_test: Bool[np.ndarray, " test_words"]


def make_world(reading: str, seed: int, *, train: int, test: int, setting: WorldSetting | None = None) -> World:
    """Training and test documents of one reading; the same for the same seed.

    Raises:
        ConfigError: there is no such reading.
    """
    if reading not in READINGS:
        raise ConfigError(f"unknown reading {reading!r}; use one of {', '.join(READINGS)}")
    setting = setting or WorldSetting()
    generator = torch.Generator().manual_seed(seed)
    numbers = np.random.default_rng([seed, READINGS.index(reading)])
    words, types = _draw_words(reading, train + test, setting, numbers)
    teacher = _teacher(torch.randn(FIRST + types, SIZE, generator=generator), setting, generator)
    batch = _batch(words)
    z = _true_z(reading, teacher, batch, types, generator, numbers)
    _balance(teacher, batch, z, setting)
    labels = _labels(teacher, batch, z, numbers)
    cut = train * SENTENCES * LENGTH
    return World(
        reading, teacher, _batch(words[:train], labels[:train]), _batch(words[train:], labels[train:]), z[:cut], z[cut:]
    )


def _draw_words(
    reading: str, documents: int, setting: WorldSetting, numbers: np.random.Generator
) -> tuple[Int64[np.ndarray, "documents words"], int]:
    """Word ids, and how many types besides the common one they are drawn from."""
    shape = (documents, SENTENCES, LENGTH)
    types = setting.types if reading == "vocabulary" else documents * SENTENCES * LENGTH
    fresh = np.arange(types).reshape(shape) if reading != "vocabulary" else numbers.integers(types, size=shape)
    words = fresh + FIRST
    words[:, :, -1] = END
    return words.reshape(documents, -1), types


def _teacher(table: Float[Tensor, "vocabulary size"], setting: WorldSetting, generator: torch.Generator) -> EMHRNN:
    """A random network in which boundaries matter: as first drawn, it gives all documents one label."""
    teacher = EMHRNN(PAPER_NETWORK, table=table, classes=CLASSES, generator=generator)
    word_layer = teacher.word_layer
    assert isinstance(word_layer, LSTM)
    with torch.no_grad():
        word_layer.input_weight.mul_(setting.word_gain)
        word_layer.state_weight.mul_(setting.word_recurrence)
        word_layer.bias[SIZE : 2 * SIZE] = setting.word_memory
        for attention in (teacher.word_attention, teacher.phrase_attention, teacher.sentence_attention):
            for parameter in attention.parameters():
                parameter.mul_(setting.attention_gain)
    return teacher.requires_grad_(False)


@torch.no_grad()
def _true_z(
    reading: str, teacher: EMHRNN, batch: Batch, types: int, generator: torch.Generator, numbers: np.random.Generator
) -> Bool[np.ndarray, " words"]:
    if reading == "independent":
        z = numbers.random(batch.n_words) < 0.5
    elif reading == "state":
        along = teacher.words(batch).h1 @ torch.randn(SIZE, generator=generator)
        z = (along > along[torch.from_numpy(~batch.sentence_final)].median()).numpy()
    else:
        ends = np.zeros(FIRST + types, dtype=bool)
        ends[FIRST + numbers.permutation(types)[: types // 2]] = True  # half of the types, so that chance is 50 %
        z = ends[batch.words]
    z |= batch.sentence_final
    return z


@torch.no_grad()
def _balance(teacher: EMHRNN, batch: Batch, z: Bool[np.ndarray, " words"], setting: WorldSetting) -> None:
    """Centre and scale the logits over documents, then move the biases until all classes are equally frequent."""
    logits = teacher.encode(batch, teacher.words(batch), z).logits
    scale = setting.sharpness / float((logits - logits.mean(0)).std())
    teacher.output.weight.mul_(scale)
    logits = (logits - logits.mean(0)) * scale
    shift = torch.zeros(CLASSES)
    for _ in range(100):
        share = torch.softmax(logits + shift, dim=1).mean(0)
        shift -= torch.log(share * CLASSES)
    now = teacher.encode(batch, teacher.words(batch), z).logits
    teacher.output.bias.add_((logits + shift - now).mean(0))


@torch.no_grad()
def _labels(
    teacher: EMHRNN, batch: Batch, z: Bool[np.ndarray, " words"], numbers: np.random.Generator
) -> Int64[np.ndarray, " documents"]:
    p = torch.softmax(teacher.encode(batch, teacher.words(batch), z).logits.double(), dim=1).numpy()
    cumulative = p.cumsum(1)[:, :-1]  # without the last, which may be one rounding below 1
    drawn: np.ndarray = (cumulative < numbers.random(len(p))[:, None]).sum(1)
    return drawn


def _batch(words: Int64[np.ndarray, "documents words"], labels: Int64[np.ndarray, " documents"] | None = None) -> Batch:
    documents = len(words)
    return Batch(
        words=words.reshape(-1),
        sentence_offsets=np.arange(documents * SENTENCES + 1) * LENGTH,
        document_offsets=np.arange(documents + 1) * SENTENCES,
        rows=np.arange(documents),
        labels=labels,
    )


def take(batch: Batch, documents: Int64[np.ndarray, " n"]) -> Batch:
    """Some documents of a simulated batch, in this order."""
    words = batch.words.reshape(batch.n_documents, -1)[documents]
    assert batch.labels is not None
    return _batch(words, batch.labels[documents])


DOCUMENTS = 500  # at a time: their states stay in the cache


@torch.no_grad()
def all_log_p(model: EMHRNN, batch: Batch, states: WordStates) -> Float[Tensor, "documents configurations classes"]:
    """log p(y | Z, w) of every class y and every Z. Configuration c sets the document's j-th free word to bit j."""
    parts = []
    for begin in range(0, batch.n_documents, DOCUMENTS):
        end = min(begin + DOCUMENTS, batch.n_documents)
        part, words = batch.part(begin, end), slice(*batch.word_offsets[[begin, end]].tolist())
        plan = make_plan(part, part.sentence_final, exact_blocks(part))
        s = sentence_vectors(model, states.part(words), plan.sentences)
        logits = document_logits(model, s, plan.documents)  # (variants, classes)
        parts.append(torch.log_softmax(logits, dim=1)[torch.from_numpy(plan.documents.configurations)])
    return torch.cat(parts)


def of_labels(
    log_p: Float[Tensor, "documents configurations classes"], batch: Batch
) -> Float[Tensor, "documents configurations"]:
    """log p(y | Z, w) of the labels that the documents have."""
    y = batch_labels(batch)[:, None, None].expand(-1, log_p.shape[1], 1)
    return log_p.gather(2, y).squeeze(2)


def block_likelihood(
    table: Float[Tensor, "documents all_configurations"], batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks
) -> Float[Tensor, "blocks configurations"]:
    """What `configuration_likelihood` computes, read from the table of a whole document."""
    whole = exact_blocks(batch)
    slot = np.zeros(batch.n_words, dtype=np.int64)  # which bit of the table's number a word is
    slot[whole.positions] = np.arange(whole.length)
    present = blocks.positions >= 0
    bit = np.where(present, 1 << slot[blocks.positions], 0)  # (blocks, length)
    outside = current(whole, z)[blocks.documents] & ~bit.sum(axis=1)
    number = np.arange(1 << blocks.length)  # configurations of the block
    inside = ((number[None, :, None] >> np.arange(blocks.length)) & 1) @ bit[:, :, None]  # (blocks, configurations, 1)
    rows = table[torch.from_numpy(blocks.documents)]
    likelihood = rows.gather(1, torch.from_numpy(outside[:, None] + inside[:, :, 0]))
    exists = torch.from_numpy(number < (1 << blocks.free)[:, None])
    return torch.where(exists, likelihood, -torch.inf)


@dataclass(frozen=True)
class Oracle:
    """Entropies in bits, recoveries as shares."""

    label_entropy: float  # H(y)
    information: float  # I(z; y | x)
    free: float  # recovery of the free positions
    all: float  # of all positions, the forced ones included


@torch.no_grad()
def consult(teacher: EMHRNN, batch: Batch, z: Bool[np.ndarray, " words"]) -> Oracle:
    """`z` is used only to see how often the oracle is right."""
    log_p = all_log_p(teacher, batch, teacher.words(batch)).double()  # (documents, configurations, classes)
    p = log_p.exp()
    information = _entropy(p.mean(1)) - _entropy(p)
    r = torch.softmax(of_labels(log_p, batch), dim=1)  # (documents, configurations)
    blocks = exact_blocks(batch)
    gamma = r @ torch.from_numpy(bit_table(blocks.length).astype(float))  # (documents, free words)
    right = (gamma.numpy() > 0.5) == z[blocks.positions]
    free = float(right.mean())
    share = right.size / batch.n_words
    assert batch.labels is not None
    counts = torch.bincount(torch.from_numpy(batch.labels)).double()
    return Oracle(_entropy((counts / counts.sum())[None]), information, free, share * free + 1 - share)


def _entropy(p: torch.Tensor) -> float:
    """Mean entropy of the distributions in the last dimension, in bits."""
    return float(torch.special.entr(p).sum(-1).mean()) / math.log(2)


@dataclass(frozen=True)
class Recovery:
    """Shares of positions: of the free ones, and of all."""

    free: float
    all: float


def recovered(batch: Batch, found: Bool[np.ndarray, " words"], z: Bool[np.ndarray, " words"]) -> Recovery:
    """How often `found` is `z`."""
    right = (found == z) | batch.sentence_final
    return Recovery(free=float(right[~batch.sentence_final].mean()), all=float(right.mean()))


@torch.no_grad()
def without_label(model: EMHRNN, batch: Batch) -> Bool[np.ndarray, " words"]:
    """z as the model says it at test time."""
    z: np.ndarray = (model.words(batch).a > 0).numpy() | batch.sentence_final
    return z


@torch.no_grad()
def with_label(model: EMHRNN, batch: Batch) -> tuple[Bool[np.ndarray, " words"], Float[Tensor, "documents classes"]]:
    """And log p(y | w) of every class, all segmentations summed out."""
    states = model.words(batch)
    log_p = all_log_p(model, batch, states)  # (documents, configurations, classes)
    posterior = weigh(batch, states, exact_blocks(batch), of_labels(log_p, batch))
    of_classes = torch.logsumexp(posterior.log_prior[:, :, None] + log_p, dim=1)
    return (posterior.marginals() > 0.5).numpy(), of_classes
