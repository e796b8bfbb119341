"""How good is each cheap E-step on real text, and what does it cost?

    python -m benchmarks.estep_quality IMDB.jsonl.gz VECTORS [--documents 2000] [--epochs 5] [--json]

Trains theta on random segmentations of movie reviews (the warm-up of EM), then asks every E-step for gamma on held-out
reviews and compares its news, gamma - pi, over all words that it reaches, with two references:

    given z       exact posterior of all windows of five words, the rest of z as imputed: what block E-steps estimate
    marginal      the mean of that over 24 imputed z: what theory asks for
    coverage      share of the free words that it reaches
    cost          its time over that of a training step with fixed z, on one core
"""

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from benchmarks.documents import random_z
from benchmarks.estep import training_step
from benchmarks.timing import fix_threads, interleave
from emhrnn.corpus.batch import Batch
from emhrnn.models.model import log_likelihood
from emhrnn.models.settings import EMConfig
from emhrnn.paper.em.steps import STRATEGIES
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.rows import PAPER_NETWORK
from emhrnn.text import read_document
from emhrnn.text.vectors import read_vectors
from emhrnn.text.vocabulary import Vocabulary

BATCH, WORDS = 64, 200  # documents per batch, and where long ones are cut
REFERENCES = 25  # imputed z: one for `given z`, the others for `marginal`
RUNS = {
    "blocks, windows of 5": ("blocks", EMConfig()),
    "blocks, windows of 2": ("blocks", EMConfig(block_length=2)),
    "local, 10 x 5": ("local", EMConfig(focus=False)),
    "local, 10 x 5, focused": ("local", EMConfig(focus=True)),
}


def read_reviews(path: Path, count: int) -> list[tuple[list[list[str]], int]]:
    """Sentences of words and the label, of reviews spread over the file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = rows[:: max(len(rows) // count, 1)][:count]
    return [(cut(read_document(row["text"]).sentences), int(row["label"])) for row in rows]


def cut(sentences: list[list[str]]) -> list[list[str]]:
    """The first WORDS words."""
    kept: list[list[str]] = []
    left = WORDS
    for sentence in sentences:
        if left > 0 and sentence:
            kept.append(sentence[:left])
            left -= len(sentence)
    return kept


def batches(reviews: list[tuple[list[list[str]], int]], vocabulary: Vocabulary) -> list[Batch]:
    return [
        Batch.from_lists(
            [[vocabulary.encode(sentence).tolist() for sentence in sentences] for sentences, _ in part],
            [label for _, label in part],
        )
        for part in (reviews[i : i + BATCH] for i in range(0, len(reviews), BATCH))
    ]


def warm_up(model: EMHRNN, training: list[Batch], epochs: int, rng: np.random.Generator) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for _ in range(epochs):
        for i in rng.permutation(len(training)):
            batch = training[i]
            optimizer.zero_grad()
            logits = model.encode(batch, model.words(batch), random_z(rng, batch)).logits
            (-log_likelihood(logits, torch.from_numpy(batch.labels)).mean()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()


def news(
    model: EMHRNN, held_out: list[Batch], name: str, settings: EMConfig, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """gamma - pi, and where it is known, over all held-out words."""
    shifts, masks = [], []
    for number, batch in enumerate(held_out):
        rng = np.random.default_rng([seed, number])
        states, z = model.words(batch).detach(), random_z(rng, batch)
        result = STRATEGIES[name](model, batch, states, z, settings, rng)
        shifts.append((result.gamma - torch.sigmoid(states.a)).numpy())
        masks.append(result.mask.numpy())
    return np.concatenate(shifts), np.concatenate(masks)


def quality(path: Path, vectors: Path, documents: int, epochs: int) -> list[dict[str, float | str]]:
    fix_threads(1)
    reviews = read_reviews(path, documents + 2 * BATCH)
    rng = np.random.default_rng(0)
    rng.shuffle(reviews)
    counts = Counter(word for sentences, _ in reviews for sentence in sentences for word in sentence)
    vocabulary = Vocabulary.from_counts(counts, min_count=2)
    *training, first, second = batches(reviews[: len(reviews) // BATCH * BATCH], vocabulary)
    generator = torch.Generator().manual_seed(0)
    table = torch.from_numpy(read_vectors(vectors).lookup(vocabulary, generator=rng))
    model = EMHRNN(PAPER_NETWORK, table=table, classes=2, generator=generator)
    warm_up(model, training, epochs, rng)
    held_out = [first, second]
    with torch.no_grad():
        right = [
            (model.encode(b, model.words(b), random_z(rng, b)).logits.argmax(1).numpy() == b.labels) for b in held_out
        ]
    print(f"accuracy on {2 * BATCH} held-out reviews, random phrases: {np.concatenate(right).mean():.2f}")

    by_seed = [news(model, held_out, "blocks", EMConfig(), seed) for seed in range(REFERENCES)]
    (given_z, free), marginal = by_seed[0], np.mean([shift for shift, _ in by_seed[1:]], axis=0)
    states, z = model.words(first).detach(), random_z(rng, first)
    times = interleave(
        {
            "training step": training_step(model, first, z),
            **{
                run: lambda name=name, settings=settings: STRATEGIES[name](
                    model, first, states, z, settings, np.random.default_rng(0)
                )
                for run, (name, settings) in RUNS.items()
            },
        },
        rounds=5,
        warm_up=1,
    )
    table_rows: list[dict[str, float | str]] = []
    for run, (name, settings) in RUNS.items():
        shift, mask = news(model, held_out, name, settings)
        table_rows.append(
            {
                "E-step": run,
                "given z": float(np.corrcoef(shift[mask], given_z[mask])[0, 1]),
                "marginal": float(np.corrcoef(shift[mask], marginal[mask])[0, 1]),
                "coverage": float(mask.sum() / free.sum()),
                "cost": times.ratio(run, "training step"),
            }
        )
    return table_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reviews", type=Path, help="aclImdb as gzipped JSON lines with text and label")
    parser.add_argument("vectors", type=Path, help="pretrained word vectors")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="the last line is one JSON array")
    arguments = parser.parse_args()
    rows = quality(arguments.reviews, arguments.vectors, arguments.documents, arguments.epochs)
    print("| E-step | given z | marginal | coverage | cost |\n|---|---|---|---|---|")
    for row in rows:
        numbers = " | ".join(f"{row[name]:.2f}" for name in ("given z", "marginal", "coverage", "cost"))
        print(f"| {row['E-step']} | {numbers} |")
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
