"""Is reading text the bottleneck of scoring? Words a second of each step, one core.

    python -m benchmarks.text [--quick] [--json]

Times are CPU seconds of this process on one thread; steps take turns, and each number is a median over rounds. Every
round reads documents that the encoder has not seen, so the cost of new words is in it. Text is generated from a seed;
film reviews are added where ../shared/data has them. With --json the last line is one JSON object of ratios:

    text_over_inference     splitting, tokenising and encoding / the model's inference, in words/s: must be 1.5 or more
    regex_over_tokenizers   our pattern / `Whitespace` of `tokenizers`, its fastest that parts words from marks
    encode_over_document    ids only / words with character offsets
    long_over_short         time per word, documents of 100,000 words / of 100 words (1 is linear)
"""

import argparse
import gzip
import json
import time
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from statistics import median

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.text import Encoder, Vocabulary, count_words, read_document, split_sentences, tokenise
from emhrnn.text.words import token_spans

REVIEWS = Path(__file__).parents[2] / "shared" / "data" / "imdb_aclImdb_train.jsonl.gz"
BATCH_DOCUMENTS = 64
INSIDE = ("", ",", ",", ",", "n't", "'s", "'s", ";", ")", "-like", " 3.5")
FINAL = (".", ".", ".", ".", ".", "!", "?", "...")
BOUNDARY_RATE = 0.23  # phrases of the paper's usual length: an untrained model would have other ones


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer documents and rounds")
    parser.add_argument("--json", action="store_true", help="print the ratios as the last line")
    arguments = parser.parse_args()
    rounds, documents, seen = (3, 256, 2_000) if arguments.quick else (9, 512, 10_000)
    sources = {"generated": generated_texts(seen + rounds * documents)}
    if REVIEWS.exists():
        sources["reviews"] = read_reviews(seen + rounds * documents)
    ratios: dict[str, float] = {}
    for name, texts in sources.items():
        rates = measure(texts, rounds, documents)
        print(f"\n{name}: words/s on one core")
        for step, rate in rates.items():
            print(f"  {step:<45} {rate / 1e6:8.2f} M")
        for ratio, value in ratios_of(rates).items():
            ratios[f"{ratio}_{name}"] = value
    for ratio in ratios_of(dict.fromkeys(STEPS, 1.0)):  # over the sources, the worst
        ratios[ratio] = min(value for key, value in ratios.items() if key.startswith(f"{ratio}_"))
    ratios["long_over_short"] = long_over_short(1 if arguments.quick else 3)
    print("\nratios")
    for ratio, value in ratios.items():
        print(f"  {ratio:<45} {value:8.2f}")
    if arguments.json:
        print(json.dumps({ratio: round(value, 3) for ratio, value in ratios.items()}))


SENTENCES, PATTERN, WORDS, LIBRARY = (
    "sentences",
    "tokens: our pattern",
    "words: pattern, normal form",
    "tokens: tokenizers",
)
DOCUMENT, ENCODE, INFERENCE = (
    "document: sentences, words, offsets",
    "encode: sentences, words, ids",
    "inference of EM-HRNN",
)
STEPS = (SENTENCES, PATTERN, WORDS, LIBRARY, DOCUMENT, ENCODE, INFERENCE)


def ratios_of(rates: dict[str, float]) -> dict[str, float]:
    ratios = {
        "text_over_inference": rates[ENCODE] / rates[INFERENCE],
        "encode_over_document": rates[ENCODE] / rates[DOCUMENT],
    }
    if LIBRARY in rates:
        ratios["regex_over_tokenizers"] = rates[PATTERN] / rates[LIBRARY]
    return ratios


def measure(texts: list[str], rounds: int, documents: int) -> dict[str, float]:
    """Median words/s of each step. The first texts fill the vocabulary and the encoder's table."""
    seen, fresh = texts[: -rounds * documents], texts[-rounds * documents :]
    vocabulary = Vocabulary.from_counts(count_words(seen), min_count=2)
    encoder = Encoder(vocabulary)
    encoder.encode_many(seen)
    infer = inference(len(vocabulary))
    split = library_splitter()
    rates: dict[str, list[float]] = {}
    for texts_now in (fresh[i * documents : (i + 1) * documents] for i in range(rounds)):
        parts = [texts_now[i : i + BATCH_DOCUMENTS] for i in range(0, documents, BATCH_DOCUMENTS)]
        seconds = {ENCODE: timed(lambda parts=parts: [encoder.encode_many(part) for part in parts])}
        batches = [as_batch(encoder, part) for part in parts]
        words = sum(batch.n_words for batch in batches)
        steps: dict[str, Callable[[], object]] = {
            SENTENCES: lambda texts_now=texts_now: [split_sentences(text) for text in texts_now],
            PATTERN: lambda texts_now=texts_now: [token_spans(text) for text in texts_now],
            WORDS: lambda texts_now=texts_now: [tokenise(text) for text in texts_now],
            DOCUMENT: lambda texts_now=texts_now: [read_document(text) for text in texts_now],
            INFERENCE: lambda batches=batches: [infer(batch) for batch in batches],
        }
        if split is not None:
            steps[LIBRARY] = lambda texts_now=texts_now: [split(text) for text in texts_now]
        seconds |= {step: timed(run) for step, run in steps.items()}
        for step, elapsed in seconds.items():
            rates.setdefault(step, []).append(words / elapsed)
    return {step: median(rates[step]) for step in STEPS if step in rates}


def timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def as_batch(encoder: Encoder, texts: list[str]) -> Batch:
    encoded = encoder.encode_many(texts)
    return Batch(
        words=encoded.words.astype(np.int64),
        sentence_offsets=encoded.sentence_offsets,
        document_offsets=encoded.document_offsets,
        rows=np.arange(len(encoded)),
    )


def inference(words: int) -> Callable[[Batch], object]:
    """The paper's model with its sizes, ready to predict, warmed up."""
    import torch

    from emhrnn.models.em_hrnn import EMHRNN

    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    boundaries = np.random.default_rng(0)
    model = EMHRNN(
        table=torch.randn(words, 100, generator=generator),
        classes=5,
        generator=generator,
        rule=lambda batch: (boundaries.random(batch.n_words) < BOUNDARY_RATE) | batch.sentence_final,
    ).eval()
    model.precompute_words()

    def infer(batch: Batch) -> object:
        with torch.inference_mode():
            return model(batch)

    warm_up = [[list(range(1, 20)) for _ in range(12)] for _ in range(BATCH_DOCUMENTS)]
    infer(Batch.from_lists([[[word % words for word in sentence] for sentence in document] for document in warm_up]))
    return infer


def library_splitter() -> Callable[[str], object] | None:
    """Words with offsets by `tokenizers`: no contractions, numbers or URLs, so less work than ours."""
    try:
        from tokenizers.pre_tokenizers import Whitespace
    except ImportError:
        return None
    return Whitespace().pre_tokenize_str  # type: ignore[no-any-return]


def long_over_short(rounds: int) -> float:
    """Time per word to encode and to read one document of 100,000 words, over 1,000 documents of 100."""
    words = " ".join(generated_texts(600)).split()[:100_000]
    long, short = [" ".join(words)], [" ".join(words[i : i + 100]) for i in range(0, len(words), 100)]
    encoder = Encoder(Vocabulary.from_counts(count_words(short)))
    encoder.encode_many(short)
    times: dict[int, list[float]] = {id(long): [], id(short): []}
    for _ in range(rounds):
        for texts in (long, short):
            times[id(texts)].append(
                timed(lambda texts=texts: (encoder.encode_many(texts), [read_document(text) for text in texts]))
            )
    return median(times[id(long)]) / median(times[id(short)])


def read_reviews(count: int) -> list[str]:
    with gzip.open(REVIEWS, "rt", encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in islice(file, count)]


def generated_texts(count: int, seed: int = 0) -> list[str]:
    """English-like text: Zipf's law over 60,000 made-up words, contractions, numbers, capitals, punctuation."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    lengths = np.clip(rng.poisson(3 + np.log(np.arange(1, 60_001)) / 3), 1, 14)
    words = ["".join(rng.choice(letters, length)) for length in lengths]
    share = np.cumsum(1 / np.arange(1, len(words) + 1))
    texts = []
    for n_sentences in rng.integers(4, 20, count):
        lengths = rng.integers(5, 36, n_sentences)
        chosen = np.searchsorted(share, rng.random(lengths.sum()) * share[-1]).tolist()
        marks = rng.choice(len(INSIDE), lengths.sum(), p=[0.85, *[0.15 / (len(INSIDE) - 1)] * (len(INSIDE) - 1)])
        written = [words[i] + INSIDE[mark] for i, mark in zip(chosen, marks.tolist(), strict=True)]
        ends = np.cumsum(lengths).tolist()
        for first, last in pairwise([0, *ends]):
            written[first] = written[first].capitalize()
            written[last - 1] += str(rng.choice(FINAL))
        texts.append(" ".join(written))
    return texts


if __name__ == "__main__":
    main()
