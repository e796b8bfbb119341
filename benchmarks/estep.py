"""The E-step on one core: all 10 x 2^5 configurations of every document, against what people would do.

    python -m benchmarks.estep [--quick] [--json]

The batch is 64 documents of about 150 words in 9 sentences, all layers 50. Ratios, each within one run:

    naive_packed_over_native   320 passes of the same model on packed nn.LSTM / our E-step, word layer included
    naive_packed_over_torch    the same without the native kernels
    estep_over_train           E-step, given the word states of the step / a training step with fixed z
    em_over_public_han         (training step + E-step) / a training step of the usual public HAN
    exact_naive_over_ours      2 x 5 words: 256 packed passes / exact E-step, word layer included
    exact_epoch_over_ours      the same with one training step on either side: what an epoch of exact EM saves
    growth_train, growth_estep time per word in documents of 10,000 words / of 100 words
"""

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.documents import CLASSES, VOCABULARY, make_batch, random_z, review_lengths, sentences_of
from benchmarks.peers import PackedEMHRNN, PublicHAN, cube
from benchmarks.timing import Times, fix_threads, interleave, options, report
from emhrnn.corpus.batch import Batch
from emhrnn.layers.native import native_kernels
from emhrnn.models.model import log_likelihood
from emhrnn.paper.em.blocks import exact_blocks, local_blocks
from emhrnn.paper.em.plan import make_plan
from emhrnn.paper.em.steps import e_step
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.rows import PAPER_NETWORK

BLOCKS, LENGTH = 10, 5
PASSES = BLOCKS << LENGTH


def make_model(embedding_size: int = 100) -> EMHRNN:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(VOCABULARY, embedding_size, generator=generator) * 0.4
    return EMHRNN(PAPER_NETWORK, table=table, classes=CLASSES, generator=generator)


def training_step(model: EMHRNN, batch: Batch, z: np.ndarray) -> Callable[[], None]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)
    labels = torch.from_numpy(batch.labels)

    def step() -> None:
        optimizer.zero_grad()
        output = model.encode(batch, model.words(batch), z)
        (-log_likelihood(output.logits, labels).mean()).backward()
        optimizer.step()

    return step


def han_step(batch: Batch) -> Callable[[], None]:
    han = PublicHAN(torch.randn(VOCABULARY, 100), CLASSES)
    optimizer = torch.optim.SGD((p for p in han.parameters() if p.requires_grad), lr=1e-6, momentum=0.9)
    ids, labels = cube(batch), torch.from_numpy(batch.labels)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(han(ids), labels).backward()
        optimizer.step()

    return step


def without_kernels(run: Callable[[], object]) -> Callable[[], object]:
    def torch_only() -> None:
        with native_kernels(False):
            run()

    return torch_only


def local_times(rounds: int) -> Times:
    """Everything on the batch of 64 reviews."""
    rng = np.random.default_rng(0)
    batch = make_batch(rng, review_lengths(rng))
    model, z = make_model(), random_z(rng, batch)
    blocks = local_blocks(batch, BLOCKS, LENGTH, generator=rng)
    packed, states = PackedEMHRNN(model), model.words(batch).detach()

    @torch.inference_mode()
    def estep_and_words() -> None:
        e_step(model, batch, model.words(batch), z, blocks)

    return interleave(
        {
            "packed pass": torch.inference_mode()(lambda: packed(batch, z)),
            "E-step and words, native": estep_and_words,
            "E-step and words, torch": without_kernels(estep_and_words),
            "E-step": lambda: e_step(model, batch, states, z, blocks),
            "plan": lambda: make_plan(batch, z, blocks),
            "training step": training_step(model, batch, z),
            "public HAN step": han_step(batch),
        },
        rounds=rounds,
    )


def exact_times(rounds: int) -> Times:
    """The simulation's documents: two sentences of five words."""
    rng = np.random.default_rng(1)
    batch = make_batch(rng, [[5, 5]] * 64)
    model, z = make_model(embedding_size=50), random_z(rng, batch)
    packed, blocks = PackedEMHRNN(model), exact_blocks(batch)
    return interleave(
        {
            "packed pass, 2 x 5": torch.inference_mode()(lambda: packed(batch, z)),
            "exact E-step, 2 x 5": torch.inference_mode()(lambda: e_step(model, batch, model.words(batch), z, blocks)),
            "training step, 2 x 5": training_step(model, batch, z),
        },
        rounds=rounds,
    )


def growth_times(rounds: int) -> Times:
    """The same number of words in long and in short documents."""
    rng = np.random.default_rng(2)
    model = make_model()
    runs: dict[str, Callable[[], object]] = {}
    for words, documents in ((100, 400), (10_000, 4)):
        batch = make_batch(rng, [sentences_of(rng, words) for _ in range(documents)])
        z, states = random_z(rng, batch), model.words(batch).detach()
        blocks = local_blocks(batch, BLOCKS, LENGTH, generator=rng)
        runs[f"train, {words} words"] = training_step(model, batch, z)
        runs[f"E-step, {words} words"] = (
            lambda batch=batch, states=states, z=z, blocks=blocks: e_step(model, batch, states, z, blocks)
        )  # fmt: skip
    return interleave(runs, rounds=rounds)


def figures(rounds: int) -> dict[str, float]:
    fix_threads(1)
    local, exact, growth = local_times(rounds), exact_times(rounds), growth_times(max(rounds // 3, 3))
    for times in (local, exact, growth):
        times.show()
    estep, train = local.ratio("E-step", "training step"), "training step"
    passes, step = (exact.ratio(f"{what}, 2 x 5", "exact E-step, 2 x 5") for what in ("packed pass", "training step"))
    return {
        "naive_packed_over_native": PASSES * local.ratio("packed pass", "E-step and words, native"),
        "naive_packed_over_torch": PASSES * local.ratio("packed pass", "E-step and words, torch"),
        "estep_over_train": estep,
        "plan_over_estep": local.ratio("plan", "E-step"),
        "em_over_public_han": (1 + estep) * local.ratio(train, "public HAN step"),
        "exact_naive_over_ours": 256 * passes,
        "exact_epoch_over_ours": (256 * passes + step) / (1 + step),
        "growth_train": growth.ratio("train, 10000 words", "train, 100 words"),
        "growth_estep": growth.ratio("E-step, 10000 words", "E-step, 100 words"),
    }


def main() -> None:
    arguments = options(__doc__, quick="fewer rounds, under 50 seconds").parse_args()
    report(figures(rounds=7 if arguments.quick else 25), as_json=arguments.json)


if __name__ == "__main__":
    main()
