"""What the E-steps cost: against enumeration by full passes, and as blocks and documents grow.

All times are CPU seconds per document for one E-step, measured in one process, each the best of a few repetitions.
Enumeration is timed where it is short and beyond that counted: passes times the seconds of one.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.models.output import log_likelihood
from emhrnn.models.segmentation import random as random_z
from emhrnn.paper.em.blocks import EXACT_LIMIT, Blocks, bit_table, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.likelihood import batch_labels, configuration_likelihood
from emhrnn.paper.em.posterior import log_prior
from emhrnn.paper.em.steps import m_step_pi, marginal_loss
from emhrnn.paper.jobs import report_progress
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.settings import PAPER_NETWORK
from emhrnn.paper.provenance import commit
from emhrnn.paper.simulation.generator import CLASSES, LENGTH, SIZE

BLOCK_LENGTHS = tuple(range(1, 9))
DOCUMENT_LENGTHS = tuple(range(10, 41, 5))
LARGEST = 1 << 20  # configurations of one measurement: documents are as many as fit, at least one


@dataclass(frozen=True)
class Cost:
    """Seconds per document."""

    method: str
    words: int  # of a document
    block_length: int  # free positions that are enumerated together
    seconds: float
    counted: bool = False  # not measured, but passes times the seconds of one


def enumerate_by_full_passes(model: EMHRNN, batch: Batch) -> Float[Tensor, "documents configurations"]:
    """log p(y, Z | w) of every Z, the plain way: the whole network once for each of the 2^free segmentations."""
    blocks = exact_blocks(batch)
    y = batch_labels(batch)
    columns = []
    for bits in bit_table(blocks.length):
        z = batch.sentence_final.copy()
        z[blocks.positions] = bits
        columns.append(log_likelihood(model.encode(batch, model.words(batch), z).logits, y))
    return log_prior(model.words(batch).a, blocks) + torch.stack(columns, dim=1)


def cost_job(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """For `run_jobs`: arguments documents and repeats."""
    torch.set_num_threads(1)
    documents, repeats = arguments["documents"], arguments["repeats"]
    report_progress(folder, 0.0, "exact against full passes")
    speed = exact_speed(documents, repeats)
    report_progress(folder, 0.3, "block lengths")
    by_block = [cost for length in BLOCK_LENGTHS for cost in block_costs(length, documents, repeats)]
    report_progress(folder, 0.6, "document lengths")
    by_length = [cost for words in DOCUMENT_LENGTHS for cost in length_costs(words, documents, repeats)]
    return {
        "commit": commit(),
        "exact_speed": speed,
        "by_block_length": [asdict(cost) for cost in by_block],
        "by_document_length": [asdict(cost) for cost in by_length],
    }


def exact_speed(documents: int, repeats: int) -> dict[str, float]:
    """Exact EM on 2 x 5 tokens against 256 full passes of the same kernels: the E-step alone, an epoch of E-step and
    M-step as the simulation runs it, and the gradient of the likelihood with all 256 segmentations summed out."""
    model, batch = _model(), _documents(10, documents)
    blocks = exact_blocks(batch)

    def ours() -> Tensor:
        return marginal_loss(model, batch, model.words(batch), batch.sentence_final, blocks)

    def naive() -> Tensor:
        return -torch.logsumexp(enumerate_by_full_passes(model, batch), dim=1).mean()

    def m_step() -> None:  # what joint.py does: one posterior sample for theta, gamma for pi
        states = model.words(batch)
        theta = -log_likelihood(model.encode(batch, states, z, None).logits, batch_labels(batch)).mean()
        (theta + m_step_pi(states.a, gamma, ~torch.from_numpy(batch.sentence_final))).backward()  # type: ignore[no-untyped-call]

    z, gamma = random_z(batch, 0.5, _random()), torch.full((batch.n_words,), 0.5)
    best = _best_in_turn(
        {
            "m_step": m_step,
            "ours_e_step": torch.no_grad()(ours),
            "full_passes_e_step": torch.no_grad()(naive),
            "ours_gradient": partial(_with_gradients, ours),
            "full_passes_gradient": partial(_with_gradients, naive),
        },
        repeats,
    )
    seconds = {name: value / documents for name, value in best.items()}
    for name in ("ours", "full_passes"):
        seconds[f"{name}_epoch"] = seconds[f"{name}_e_step"] + seconds["m_step"]
    ratios = {
        f"{part}_ratio": seconds[f"full_passes_{part}"] / seconds[f"ours_{part}"]
        for part in ("e_step", "epoch", "gradient")
    }
    return {**seconds, **ratios}


def block_costs(length: int, documents: int, repeats: int, words: int = 40) -> list[Cost]:
    """Windows and local blocks of one length in documents of `words` words."""
    batch = _documents(words, documents)
    passes = len(window_blocks(batch, length)) / documents * 2**length
    return [
        _e_step_cost("windows", batch, window_blocks(batch, length), length, repeats),
        _e_step_cost("local", batch, local_blocks(batch, 10, length, generator=_random()), length, repeats),
        Cost("windows by full passes", words, length, passes * _pass_seconds(batch, repeats), counted=True),
    ]


def length_costs(words: int, documents: int, repeats: int) -> list[Cost]:
    """All E-steps on documents of `words` words; exact ones where they can be enumerated."""
    batch = _documents(words, documents)
    free = words - words // LENGTH
    costs = [
        _e_step_cost("window-5", batch, window_blocks(batch, 5), 5, repeats),
        _e_step_cost("local", batch, local_blocks(batch, generator=_random()), 5, repeats),
        Cost("exact by full passes", words, free, 2.0**free * _pass_seconds(batch, repeats), counted=True),
    ]
    if free <= EXACT_LIMIT:
        few = _documents(words, max(1, min(documents, LARGEST >> free)))
        costs.append(_e_step_cost("exact", few, exact_blocks(few), free, 1 if free > 12 else repeats))
    return costs


@torch.no_grad()
def _e_step_cost(method: str, batch: Batch, blocks: Blocks, length: int, repeats: int) -> Cost:
    model = _model()

    def call() -> None:
        states = model.words(batch)
        configuration_likelihood(model, batch, states, batch.sentence_final, blocks)

    return Cost(method, batch.n_words // batch.n_documents, length, _best(call, repeats) / batch.n_documents)


@torch.no_grad()
def _pass_seconds(batch: Batch, repeats: int) -> float:
    """Of one full pass over one document of the batch."""
    model = _model()
    return _best(lambda: model.encode(batch, model.words(batch), batch.sentence_final), repeats) / batch.n_documents


def _with_gradients(loss: Callable[[], Tensor]) -> None:
    loss().backward()  # type: ignore[no-untyped-call]


def _best(call: Callable[[], object], repeats: int) -> float:
    return _best_in_turn({"": call}, repeats)[""]


def _best_in_turn(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """A/B/A/B: a moment in which the machine is slow hits all of them."""
    for call in calls.values():
        call()  # compile, allocate
    seconds = [{name: _seconds(call) for name, call in calls.items()} for _ in range(repeats)]
    return {name: min(turn[name] for turn in seconds) for name in calls}


def _seconds(call: Callable[[], object]) -> float:
    began = process_time()
    call()
    return process_time() - began


def _model() -> EMHRNN:
    generator = torch.Generator().manual_seed(0)
    return EMHRNN(
        PAPER_NETWORK, table=torch.randn(100, SIZE, generator=generator), classes=CLASSES, generator=generator
    )


def _documents(words: int, documents: int) -> Batch:
    """Documents of sentences of five words."""
    return Batch(
        words=_random().integers(1, 100, documents * words),
        sentence_offsets=np.arange(documents * words // LENGTH + 1) * LENGTH,
        document_offsets=np.arange(documents + 1) * (words // LENGTH),
        rows=np.arange(documents),
        labels=_random().integers(0, CLASSES, documents),
    )


def _random() -> np.random.Generator:
    return np.random.default_rng(0)
