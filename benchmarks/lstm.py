"""The word LSTM (100 -> 50) on one core: training and inference, against torch's own LSTM as people use it.

    python -m benchmarks.lstm [--quick] [--json]

The batch is 64 documents of about 150 words in 9 sentences, and the LSTM starts again at each sentence. `packed` is
nn.LSTM on a PackedSequence; `padded` is nn.LSTM on zero-padded sentences in 8 buckets of similar length, the best that
can be done with it. `roofline_share_train` is the flop rate of a training step over that of a large matrix product.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from benchmarks.timing import fix_threads, interleave, matrix_peak, options, report
from emhrnn.layers.native import kernels, native_kernels
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import LSTM

INPUT, HIDDEN = 100, 50
# Multiply-adds of a word: projection and recurrence; then the gradients of both weights and of the state.
FORWARD_FLOP = 2 * 4 * HIDDEN * (INPUT + HIDDEN)
TRAIN_FLOP = FORWARD_FLOP + 2 * 4 * HIDDEN * (INPUT + 2 * HIDDEN)


def sentence_lengths(rng: np.random.Generator, documents: int = 64) -> np.ndarray:
    """About 9 sentences a document, 17 words on average, at least 2 and at most 60."""
    return np.clip(rng.gamma(3.0, 17 / 3.0, size=9 * documents), 2, 60).astype(np.int64)


def candidates(lengths: np.ndarray, vocabulary: int = 20_000) -> dict[str, Callable[[], object]]:
    generator = torch.Generator().manual_seed(0)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    table = torch.randn(vocabulary, INPUT, generator=generator)
    words = torch.randint(vocabulary, (int(offsets[-1]),), generator=generator)
    gradient = torch.randn(len(words), HIDDEN, generator=generator)
    ours = LSTM(INPUT, HIDDEN, generator=generator)
    theirs = nn.LSTM(INPUT, HIDDEN)
    projections = ours.project(table).detach()
    order = Order(offsets)
    packed_gradient = gradient[order.rows]
    buckets = padded_buckets(words, lengths)

    def train(h: Tensor, gradient: Tensor, layer: nn.Module) -> None:
        layer.zero_grad()
        h.backward(gradient)

    def train_ours() -> None:
        train(ours(table.index_select(0, words), Order(offsets)), gradient, ours)

    def train_packed() -> None:
        order = Order(offsets)
        x = PackedSequence(table.index_select(0, words[order.rows]), torch.from_numpy(order.batch_sizes))
        train(theirs(x)[0].data, packed_gradient, theirs)

    def train_padded() -> None:
        theirs.zero_grad()
        for ids in buckets:
            h, _ = theirs(table[ids])
            h.backward(torch.ones_like(h))

    @torch.no_grad()
    def infer_ours() -> None:
        ours.forward_projected(projections, Order(offsets), words)

    @torch.no_grad()
    def infer_packed() -> None:
        order = Order(offsets)
        theirs(PackedSequence(table.index_select(0, words[order.rows]), torch.from_numpy(order.batch_sizes)))

    @torch.no_grad()
    def infer_padded() -> None:
        for ids in buckets:
            theirs(table[ids])

    product, _ = matrix_peak()
    runs: dict[str, Callable[[], object]] = {
        "matrix product": product,
        "train packed": train_packed,
        "train padded": train_padded,
        "train torch": without_kernels(train_ours),
        "infer packed": infer_packed,
        "infer padded": infer_padded,
        "infer torch": without_kernels(infer_ours),
    }
    if kernels():
        runs |= {"train native": train_ours, "infer native": infer_ours}
    return runs


def padded_buckets(words: Tensor, lengths: np.ndarray, count: int = 8) -> list[Tensor]:
    """Word ids (steps, sentences) of sentences of similar length, padded with 0."""
    sentences = sorted(torch.split(words, lengths.tolist()), key=len)
    size = -(-len(sentences) // count)
    return [nn.utils.rnn.pad_sequence(sentences[i : i + size]) for i in range(0, len(sentences), size)]


def without_kernels(run: Callable[[], object]) -> Callable[[], object]:
    def torch_only() -> None:
        with native_kernels(False):
            run()

    return torch_only


def figures(rounds: int) -> dict[str, float]:
    fix_threads(1)
    lengths = sentence_lengths(np.random.default_rng(0))
    times = interleave(candidates(lengths), rounds=rounds)
    times.show()
    _, peak_flop = matrix_peak()
    best = "native" if "train native" in times.seconds else "torch"
    work = {"train": TRAIN_FLOP * float(lengths.sum()), "infer": FORWARD_FLOP * float(lengths.sum())}
    result = {"roofline_share_train": work["train"] / peak_flop / times.ratio(f"train {best}", "matrix product")}
    for phase in work:
        for peer in ("packed", "padded"):
            for our in ("torch", "native") if best == "native" else ("torch",):
                result[f"{phase}_{peer}_over_{our}"] = times.ratio(f"{phase} {peer}", f"{phase} {our}")
    return result


def main() -> None:
    arguments = options(__doc__, quick="fewer rounds, under 50 seconds").parse_args()
    report(figures(rounds=9 if arguments.quick else 60), as_json=arguments.json)


if __name__ == "__main__":
    main()
