"""Training steps of HM-RNN and MHS-RNN, which find their units word by word, on one core.

    python -m benchmarks.multiscale [--quick] [--json]

The batch is 64 documents of about 150 words in 9 sentences, all layers 50. Ratios, each within one run:

    hm_rnn_over_han    a training step of hm-rnn / one of our own HAN (hn-att)
    mhs_rnn_over_han   the same of mhs-rnn
    public_over_ours   the usual public HM-LSTM, padded to the longest document, so that both read all words / hm-rnn
    torch_over_native  hm-rnn without the native kernels / with them
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.documents import CLASSES, VOCABULARY, make_batch, review_lengths
from benchmarks.public_hm_lstm import PublicHMLSTM, padded
from benchmarks.timing import fix_threads, interleave, options, report
from emhrnn.layers.native import native_kernels
from emhrnn.paper.models.han import HAN
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN


def training_step(
    model: nn.Module, logits: Callable[[], torch.Tensor], labels: torch.Tensor, *, native: bool = True
) -> Callable[[], None]:
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=1e-6, momentum=0.9)

    def step() -> None:
        with native_kernels(native):
            optimizer.zero_grad()
            cross_entropy(logits(), labels).backward()
            optimizer.step()

    return step


def figures(rounds: int) -> dict[str, float]:
    fix_threads(1)
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    batch = make_batch(rng, review_lengths(rng))
    labels = torch.from_numpy(batch.labels)
    table = torch.randn(VOCABULARY, 100, generator=generator) * 0.4
    han, hm_rnn, mhs_rnn = (model(table=table, classes=CLASSES, generator=generator) for model in (HAN, HMRNN, MHSRNN))
    public, ids = PublicHMLSTM(table, CLASSES), padded(batch)
    times = interleave(
        {
            "HAN": training_step(han, lambda: han(batch).logits, labels),
            "hm-rnn": training_step(hm_rnn, lambda: hm_rnn(batch).logits, labels),
            "hm-rnn, torch": training_step(hm_rnn, lambda: hm_rnn(batch).logits, labels, native=False),
            "mhs-rnn": training_step(mhs_rnn, lambda: mhs_rnn(batch).logits, labels),
            "public HM-LSTM": training_step(public, lambda: public(ids), labels),
        },
        rounds=rounds,
        warm_up=1,
    )
    times.show()
    return {
        "hm_rnn_over_han": times.ratio("hm-rnn", "HAN"),
        "mhs_rnn_over_han": times.ratio("mhs-rnn", "HAN"),
        "public_over_ours": times.ratio("public HM-LSTM", "hm-rnn"),
        "torch_over_native": times.ratio("hm-rnn, torch", "hm-rnn"),
    }


def main() -> None:
    arguments = options(__doc__, quick="fewer rounds, under 50 seconds").parse_args()
    report(figures(rounds=7 if arguments.quick else 25), as_json=arguments.json)


if __name__ == "__main__":
    main()
