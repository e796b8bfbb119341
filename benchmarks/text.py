"""Is reading text the bottleneck of scoring? Words a second of each step, one core.

    python -m benchmarks.text [--quick] [--json]

Every round reads documents that the encoders have not seen, so the cost of new words is in it. The model is EM-HRNN
with the paper's sizes as it scores: native kernels, one thread. Text is generated from a seed; film
reviews are added where ../shared/data has them. With --json the last line is one JSON object of ratios, each also per
source; without its name, a ratio is the worst of the sources:

    text_over_inference     splitting, tokenising and encoding / the model's inference, in words/s: must be 1.5 or more
    native_over_python      encoding with the compiled table / with the one in Python
    regex_over_tokenizers   our pattern / `Whitespace` of `tokenizers`, its fastest that parts words from marks
    encode_over_document    ids only / words with character offsets
    long_over_short         time per word, documents of 100,000 words / of 100 words (1 is linear)
"""

import gzip
import json
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
from tests.oracles.text import count_words

from benchmarks.timing import Times, fix_threads, interleave, options, report
from emhrnn.corpus.batch import Batch
from emhrnn.text import Vocabulary, WordEncoder, read_document, split_sentences, tokenise
from emhrnn.text.words import token_spans

REVIEWS = Path(__file__).parents[2] / "shared" / "data" / "imdb_aclImdb_train.jsonl.gz"
BATCH_DOCUMENTS = 64
WARM_UP = 1
INSIDE = ("", ",", ",", ",", "n't", "'s", "'s", ";", ")", "-like", " 3.5")
FINAL = (".", ".", ".", ".", ".", "!", "?", "...")
BOUNDARY_RATE = 0.23  # phrases of the paper's usual length: an untrained model would have other ones

SENTENCES = "sentences"
PATTERN = "tokens: our pattern"
WORDS = "words: pattern, normal form"
LIBRARY = "tokens: tokenizers"
DOCUMENT = "document: sentences, words, offsets"
PYTHON = "encode: sentences, words, ids, in Python"
ENCODE = "encode: sentences, words, ids"
INFERENCE = "inference of EM-HRNN"
RATIOS = {  # name: what takes longer, what is quicker
    "text_over_inference": (INFERENCE, ENCODE),
    "native_over_python": (PYTHON, ENCODE),
    "encode_over_document": (DOCUMENT, ENCODE),
    "regex_over_tokenizers": (LIBRARY, PATTERN),
}


def main() -> None:
    arguments = options(__doc__, quick="fewer documents and rounds").parse_args()
    fix_threads()
    rounds, documents, seen = (5, 256, 2_000) if arguments.quick else (15, 512, 10_000)
    needed = seen + (WARM_UP + rounds) * documents
    sources = {"generated": generated_texts(needed)}
    if REVIEWS.exists():
        sources["reviews"] = read_reviews(needed)
    figures: dict[str, float] = {}
    for source, texts in sources.items():
        times, words = measure(texts[:seen], texts[seen:], rounds, documents)
        print(f"\n{source}: words/s on one core")
        for step in times.seconds:
            print(f"  {step:<45} {words / times.median(step) / 1e6:8.2f} M")
        figures |= {
            f"{name}_{source}": times.ratio(*pair) for name, pair in RATIOS.items() if times.seconds.keys() >= {*pair}
        }
    for name in RATIOS:
        if values := [value for key, value in figures.items() if key.startswith(f"{name}_")]:
            figures[name] = min(values)
    figures["long_over_short"] = long_over_short(1 if arguments.quick else 3)
    print("\nratios")
    report(figures, as_json=arguments.json)


def measure(seen: list[str], fresh: list[str], rounds: int, documents: int) -> tuple[Times, float]:
    """Times of the steps on `documents` fresh texts a round, and the mean number of words in them. The texts that were
    seen before fill the vocabulary and the encoders' tables."""
    vocabulary = Vocabulary.from_counts(count_words(seen), min_count=2)
    native, python, untimed = (WordEncoder(vocabulary, native=native) for native in (True, False, True))
    for encoder in (native, python):
        encoder.encode(seen)
    parts = [
        [texts[i : i + BATCH_DOCUMENTS] for i in range(0, documents, BATCH_DOCUMENTS)]
        for texts in (fresh[i : i + documents] for i in range(0, len(fresh), documents))
    ]
    batches = [[as_batch(untimed, texts) for texts in part] for part in parts]
    infer, split = inference(len(vocabulary)), library_splitter()

    def each_text(step: Callable[[str], object]) -> Callable[[], object]:
        turns = iter(parts)
        return lambda: [step(text) for texts in next(turns) for text in texts]

    def each_batch(step: Callable[[list[str]], object]) -> Callable[[], object]:
        turns = iter(parts)
        return lambda: [step(texts) for texts in next(turns)]

    inference_turns = iter(batches)
    candidates: dict[str, Callable[[], object]] = {
        SENTENCES: each_text(split_sentences),
        PATTERN: each_text(token_spans),
        WORDS: each_text(tokenise),
        DOCUMENT: each_text(read_document),
        PYTHON: each_batch(python.encode),
        ENCODE: each_batch(native.encode),
        INFERENCE: lambda: [infer(batch) for batch in next(inference_turns)],
    }
    if split is not None:
        candidates[LIBRARY] = each_text(split)
    words = float(np.mean([sum(batch.n_words for batch in part) for part in batches[WARM_UP:]]))
    return interleave(candidates, rounds=rounds, warm_up=WARM_UP), words


def as_batch(encoder: WordEncoder, texts: list[str]) -> Batch:
    encoded = encoder.encode(texts)
    return Batch(
        words=encoded.words.astype(np.int64),
        sentence_offsets=encoded.sentence_offsets,
        document_offsets=encoded.document_offsets,
        rows=np.arange(len(encoded)),
    )


def inference(words: int) -> Callable[[Batch], object]:
    """The paper's model with its sizes, ready to predict, warmed up."""
    import torch

    from emhrnn.paper.models.em_hrnn import EMHRNN
    from emhrnn.paper.models.rows import PAPER_NETWORK

    generator = torch.Generator().manual_seed(0)
    boundaries = np.random.default_rng(0)
    table = torch.randn(words, 100, generator=generator)
    model = EMHRNN(PAPER_NETWORK, table=table, classes=5, generator=generator).eval()
    model.rule = lambda batch: (boundaries.random(batch.n_words) < BOUNDARY_RATE) | batch.sentence_final

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
    encoder = WordEncoder(Vocabulary.from_counts(count_words(short)))
    encoder.encode(short)

    def read(texts: list[str]) -> Callable[[], object]:
        return lambda: (encoder.encode(texts), [read_document(text) for text in texts])

    return interleave({"long": read(long), "short": read(short)}, rounds=rounds, warm_up=0).ratio("long", "short")


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
