"""A training step of EM-HRNN with fixed z, and inference, on one core.

    python -m benchmarks.train_step [--quick] [--json]

The batch is 64 documents of about 150 words in 9 sentences, all layers 50. Ratios, each within one run:

    packed_over_native            training step of the same model on packed nn.LSTM / ours
    packed_over_torch             the same without the native kernels
    roofline_share                our flop rate (212 kflop per word) / that of a large matrix product
    inference_packed_over_native  inference on packed nn.LSTM / ours
"""

import numpy as np
import torch

from benchmarks.documents import make_batch, random_z, review_lengths
from benchmarks.estep import make_model, training_step, without_kernels
from benchmarks.peers import PackedEMHRNN
from benchmarks.timing import Times, fix_threads, interleave, matrix_peak, options, report

FLOP_PER_WORD = 212e3


def step_times(rounds: int) -> tuple[Times, int]:
    rng = np.random.default_rng(0)
    batch = make_batch(rng, review_lengths(rng))
    model, z = make_model(), random_z(rng, batch)
    packed = PackedEMHRNN(make_model())
    optimizer = torch.optim.SGD(packed.parameters(), lr=1e-6, momentum=0.9)
    labels = torch.from_numpy(batch.labels)

    def packed_step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(packed(batch, z), labels).backward()
        optimizer.step()

    fast = make_model()

    @torch.inference_mode()
    def infer() -> None:
        fast.encode(batch, fast.words(batch), z)

    ours = training_step(model, batch, z)
    product, _ = matrix_peak()
    times = interleave(
        {
            "matrix product": product,
            "training step, packed": packed_step,
            "training step, torch": without_kernels(ours),
            "training step, native": ours,
            "inference, packed": torch.inference_mode()(lambda: packed(batch, z)),
            "inference, native": infer,
        },
        rounds=rounds,
    )
    return times, batch.n_words


def figures(rounds: int) -> dict[str, float]:
    fix_threads(1)
    times, words = step_times(rounds)
    times.show()
    _, peak_flop = matrix_peak()
    native = "training step, native"
    return {
        "packed_over_native": times.ratio("training step, packed", native),
        "packed_over_torch": times.ratio("training step, packed", "training step, torch"),
        "roofline_share": words * FLOP_PER_WORD / peak_flop / times.ratio(native, "matrix product"),
        "inference_packed_over_native": times.ratio("inference, packed", "inference, native"),
    }


def main() -> None:
    arguments = options(__doc__, quick="fewer rounds, under 50 seconds").parse_args()
    report(figures(rounds=15 if arguments.quick else 60), as_json=arguments.json)


if __name__ == "__main__":
    main()
