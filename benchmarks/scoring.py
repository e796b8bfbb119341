"""How fast are files scored? Documents a second on two cores, against the bare model and against other people's tools.

    python -m benchmarks.scoring [--quick] [--json]

Every candidate gets two processes of one thread. `emhrnn predict` is timed as a whole, from file to file, on many
documents and on few: documents more over seconds more, so that what is counted is what each further document costs
(reading, scoring, writing), and starting processes is not. The others are timed on texts or
word ids in memory, when their models are loaded and warm. Text is film reviews where ../shared/data has them, else
generated from a seed; labels and weights are random, which changes no time. Rates are wall time and need both cores
idle. Each is also told by processor time, of all its processes together (`_cpu`), which other jobs on the machine
change little; on idle cores that are never waited for, the ratios are the same. With --json the last line is one JSON
object:

    local_docs_s                   `emhrnn predict` from file to file, by worker processes
    local_over_bare                the same over the bare forward pass on word ids in memory: must be 0.8
    local_over_tfidf               over scikit-learn: TfidfVectorizer and LogisticRegression, `predict` of strings
    local_over_fasttext            over fastText: `predict` of strings (word pairs, 100 numbers a word)
    local_over_minilm              at 512 tokens a document: must be 20. The transformer has MiniLM's shape (6 layers
                                   of 384 numbers, 12 heads) and random weights; it gets its word pieces for nothing.
                                   Ours reads 512 words from a file
    local_start_s                  what the first document costs: the time of a call less that of its documents
    X_docs_cpu_s                   documents of a second of processor time, that is, of one core
    read_docs_cpu_s                reading alone, which one process does for all workers
    local_over_X_cpu               ratios of these
"""

import json
import multiprocessing
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.descendants import Descendants
from benchmarks.text import REVIEWS, generated_texts, read_reviews
from benchmarks.timing import options, report

WORKERS = 2
CLASSES = 5
FEW = 5_000  # documents of a call that is mostly starting; enough that all workers get some

Work = Callable[[], object]


class Rate(NamedTuple):
    """Documents a second of wall time, and of processor time; seconds before the first."""

    wall: float
    cpu: float
    start: float = 0.0


def main() -> None:
    arguments = options(__doc__, quick="fewer documents and rounds").parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    count, rounds = (24_000, 1) if arguments.quick else (50_000, 3)
    texts = read_reviews(25_000) if REVIEWS.exists() else generated_texts(4_000)
    texts = [texts[i % len(texts)] for i in range(count)]
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        folder = Path(scratch)
        words = make_run(folder / "run", texts[:5_000])
        for name, some in (("many", texts), ("few", texts[:FEW])):
            lines = (json.dumps({"text": text}) + "\n" for text in some)
            (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        figures = measure(folder, texts, words, rounds)
    report(figures, as_json=arguments.json)


def measure(folder: Path, texts: list[str], words: Callable[[list[str]], int], rounds: int) -> dict[str, float]:
    rounds_of: dict[str, list[Rate]] = defaultdict(list)
    for _ in range(rounds):  # side by side within a round, so that a slow patch of the machine hits all
        rounds_of["bare"].append(in_two_processes(bare, folder, texts))
        rounds_of["local"].append(scoring_rate(folder, len(texts)))
        rounds_of["tfidf"].append(in_two_processes(tfidf, folder, texts))
        rounds_of["fasttext"].append(in_two_processes(fasttext, folder, texts))
        rounds_of["minilm"].append(in_two_processes(minilm, folder, texts[:32]))

    def told(name: str, what: str) -> float:
        return float(np.median([getattr(rate, what) for rate in rounds_of[name]]))

    def ratio(one: str, other: str, what: str = "wall") -> float:
        pairs = zip(rounds_of[one], rounds_of[other], strict=True)
        return float(np.median([getattr(a, what) / getattr(b, what) for a, b in pairs]))

    words_each = words(texts[:1_000]) / 1_000
    figures = {"words_per_document": words_each}
    figures["read_docs_cpu_s"] = reading_rate(folder / "many.jsonl", len(texts))
    for name in rounds_of:
        figures |= {f"{name}_docs_s": told(name, "wall"), f"{name}_docs_cpu_s": told(name, "cpu")}
    figures["local_start_s"] = told("local", "start")
    for name, scale in (("bare", 1.0), ("tfidf", 1.0), ("fasttext", 1.0), ("minilm", words_each / 512)):
        figures[f"local_over_{name}"] = ratio("local", name) * scale
        figures[f"local_over_{name}_cpu"] = ratio("local", name, "cpu") * scale
    return figures


def make_run(folder: Path, texts: list[str]) -> Callable[[list[str]], int]:
    """An EM-HRNN of the default sizes with random boundaries at the paper's rate; and how to count words."""
    import torch
    from tests.oracles.text import count_words

    from emhrnn.corpus import TextSettings
    from emhrnn.text import Vocabulary, WordEncoder
    from emhrnn.training.config import make_config
    from emhrnn.training.run import describe, new_run, save_weights

    vocabulary = Vocabulary.from_counts(count_words(texts), min_count=2)
    table = torch.randn(len(vocabulary), 100, generator=torch.Generator().manual_seed(0))
    config = make_config(assignments=["model.segmentation=random"], model="em-hrnn")
    classes = tuple(str(star) for star in range(1, CLASSES + 1))
    run = new_run(config, vocabulary, classes, table, multi_label=False, text=TextSettings())
    folder.mkdir()
    describe(folder, run)
    save_weights(folder, run, 0)
    encoder = WordEncoder(vocabulary)
    return lambda some: len(encoder.encode(some).words)


def scoring_rate(folder: Path, documents: int) -> Rate:
    """From file to file."""
    from emhrnn.scoring import score
    from emhrnn.scoring.chunks import Data

    seconds, cpu = {}, {}
    for name in ("few", "many"):
        began, before = time.perf_counter(), time.process_time()
        data = Data(paths=(folder / f"{name}.jsonl",))
        with Descendants() as seen:
            score(folder / "run", data, folder / "out.jsonl", workers=WORKERS, progress=False)
        seconds[name], cpu[name] = time.perf_counter() - began, time.process_time() - before + seen.seconds
    wall = (documents - FEW) / max(seconds["many"] - seconds["few"], 1e-3)
    return Rate(wall, (documents - FEW) / (cpu["many"] - cpu["few"]), seconds["few"] - FEW / wall)


def reading_rate(file: Path, documents: int) -> float:
    from emhrnn.scoring.chunks import Data, read_chunks

    before = time.process_time()
    for _ in read_chunks(Data(paths=(file,))):
        pass
    return documents / (time.process_time() - before)


# ---------------------------------------------------------------------- candidates: texts -> work to be timed


def bare(folder: Path, texts: list[str]) -> Iterator[Work]:
    """The forward pass alone, on batches like those of scoring."""
    import torch

    from emhrnn.evaluation.predict import predict
    from emhrnn.paper.models.em_hrnn import EMHRNN
    from emhrnn.training.run import load_run

    torch.set_num_threads(1)
    run = load_run(folder / "run")
    assert isinstance(run.model, EMHRNN)
    parts = [run.encoder.encode_usable(texts[i : i + 1_500]) for i in range(0, len(texts), 1_500)]
    batches = [part for part in parts if part is not None]
    predict(run.model, batches[0], multi_label=False)
    yield lambda: [predict(run.model, part, multi_label=False) for part in batches]


def tfidf(folder: Path, texts: list[str]) -> Iterator[Work]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    sample = texts[:2_000]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=20, tol=1.0))
    model.fit(sample, np.random.default_rng(0).integers(0, CLASSES, len(sample)))
    yield lambda: model.predict(texts)


def fasttext(folder: Path, texts: list[str]) -> Iterator[Work]:
    import fasttext as library

    file = folder / f"fasttext-{os.getpid()}.txt"
    lines = [" ".join(text.split()) for text in texts]
    labels = np.random.default_rng(0).integers(0, CLASSES, 2_000)
    file.write_text("".join(f"__label__{label} {line}\n" for label, line in zip(labels, lines, strict=False)))
    model = library.train_supervised(str(file), dim=100, wordNgrams=2, epoch=1, thread=1, verbose=0, bucket=200_000)
    yield lambda: model.predict(lines)


def minilm(folder: Path, texts: list[str]) -> Iterator[Work]:
    import torch
    from transformers import BertConfig, BertModel

    torch.set_num_threads(1)
    shape = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    model = BertModel(shape).eval()
    batches = torch.randint(1_000, 30_000, (len(texts), 512), generator=torch.Generator().manual_seed(0)).split(8)

    @torch.inference_mode()
    def work() -> object:
        return [model(input_ids=batch).pooler_output for batch in batches]

    yield work


# ---------------------------------------------------------------------- two processes


def in_two_processes(candidate: Callable[[Path, list[str]], Iterator[Work]], folder: Path, texts: list[str]) -> Rate:
    """Each of two processes has half of the documents; from a common start to the last end."""
    context = multiprocessing.get_context("spawn")
    barrier, times = context.Barrier(WORKERS), context.Queue()
    processes = [
        context.Process(target=_timed, args=(candidate, folder, texts[i::WORKERS], barrier, times))
        for i in range(WORKERS)
    ]
    for process in processes:
        process.start()
    spans = [times.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    wall = max(end for _, end, _ in spans) - min(start for start, _, _ in spans)
    return Rate(len(texts) / wall, len(texts) / sum(cpu for _, _, cpu in spans))


def _timed(candidate: Any, folder: Path, texts: list[str], barrier: Any, times: Any) -> None:
    (work,) = candidate(folder, texts)
    barrier.wait()
    start, before = time.perf_counter(), time.process_time()
    work()
    times.put((start, time.perf_counter(), time.process_time() - before))


if __name__ == "__main__":
    main()
