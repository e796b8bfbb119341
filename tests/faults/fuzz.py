"""Damaged and made-up inputs for everything that reads: files of all formats, settings, runs, texts and HTTP.

    python -m tests.faults.fuzz --minutes 10 [--seed N] [--targets csv,texts] [--record [--add]]

A file is damaged at random: bits flipped, bytes replaced, cut, copied or put in. Reading it must end well or with an
EmhrnnError. Where the format has a checksum, it must not end well with other content. Each target runs in processes of
its own: a crash of native code, and an input that takes longer than LIMIT seconds, are found and named by number.
"""

import argparse
import gzip
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

from emhrnn.corpus import Corpus, Source
from emhrnn.corpus.preparation import prepare
from emhrnn.errors import EmhrnnError
from emhrnn.text import Vocabulary, WordEncoder, read_document, read_vectors
from emhrnn.training.config import make_config
from emhrnn.training.run import Run, load_run, read_metrics
from tests.behaviour.commands import SMALL, known, rows, write_reviews
from tests.faults.report import record, recorded
from tests.oracles.text import count_words
from tests.text.strategies import FRAGMENTS, texts

LIMIT = 60  # seconds for one input; on a busy machine, most of them go to others
ODD = (
    b"\x00", b"\xff", b"\n", b'"', b",", b"{", b"[", b"9" * 400, b"9" * 5000, b"0x" + b"f" * 5000, b"-1",
    b"[" * 5000, b"[" * 900 + b"]" * 900, b'{"":' * 5000, b"\x80\x80\x80\x80", b"nan", b"\r", b"\t",
)  # fmt: skip
Check = Callable[[Path], Any]
Tell = Callable[..., None]  # what came of an input, and of how many


@dataclass(frozen=True)
class Target:
    """A file that is read; with a checksum, other content than that of the whole file is a silent difference."""

    make: Callable[[Path], Path]
    read: Check
    checksum: bool = False


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with one to three changes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(content) + 1) if content else 0
        if rng.random() < 0.3:
            place = min(place, 64)  # headers
        kind = rng.randrange(6)
        if kind == 0 and place < len(content):
            content = content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]
        elif kind == 1:
            content = content[:place]
        elif kind == 2:
            content = content[:place] + rng.choice(ODD) + content[place:]
        elif kind == 3:
            content = content[:place] + content[place + rng.randrange(1, 16) :]
        elif kind == 4:
            content = content[:place] + rng.randbytes(rng.randrange(1, 9)) + content[place + 4 :]
        else:
            start = rng.randrange(len(content) + 1)
            content = content[:place] + content[start : start + rng.randrange(1, 200)] + content[place:]
    return content


def read_source(path: Path) -> list[str]:
    """The records of a data file, broken rows included."""
    with closing(iter(Source([path], lenient=True))) as records:
        return [repr(record) for record in records]


def _table(path: Path) -> Any:
    import pyarrow as pa

    texts_and_labels = rows(30)
    return pa.table({"text": [text for text, _ in texts_and_labels], "label": [label for _, label in texts_and_labels]})


def make_parquet(path: Path) -> Path:
    from pyarrow import parquet

    parquet.write_table(_table(path), path, write_page_checksum=True)
    return path


def make_compressed(path: Path) -> Path:
    plain = write_reviews(path.with_name("plain.jsonl"), 30).read_bytes()
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(plain))
    else:
        import zstandard

        path.write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(plain))
    return path


def make_xlsx(path: Path) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in [("text", "label"), *rows(10)]:
        book.active.append(row)
    book.save(path)
    return path


def make_vectors(path: Path) -> Path:
    words, matrix = ["soup", "good", "bad"], np.arange(12, dtype=np.float32).reshape(3, 4)
    if path.suffix == ".npz":
        np.savez_compressed(path, words="\n".join(words), vectors=matrix)
    elif path.suffix == ".bin":
        lines = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(words, matrix, strict=True)]
        path.write_bytes(b"3 4\n" + b"".join(lines))
    else:
        lines = [f"{word} {' '.join(map(str, row))}\n".encode() for word, row in zip(words, matrix, strict=True)]
        path.write_bytes(b"3 4\n" + b"".join(lines))
    return path


def make_settings(path: Path) -> Path:
    path.write_text('[training]\nepochs = 3\nlearning_rate = 0.01\n[model]\nname = "evidence"\nembedding_size = 8\n')
    return path


def make_run(path: Path) -> Path:
    """A run; the path is one of its files."""
    from emhrnn.api import train

    data = write_reviews(path.parents[1] / "reviews.csv", 24)
    small = [f"{name}={value}" for name, value in known("evidence", SMALL).items()]
    train(data, path.parent, config=make_config(assignments=small), progress=False)
    return path


def make_corpus(path: Path) -> Path:
    prepare(write_reviews(path.parents[1] / "reviews.csv", 24), path.parent, progress=False)
    return path


def read_run(path: Path) -> Any:
    """What the run answers: it reads, and it predicts."""
    run: Run = load_run(path.parent)
    batch = run.encoder.encode([text for text, _ in rows(2)])
    return run.predict(batch).probabilities.tolist(), run.classes


def read_corpus(path: Path) -> Any:
    corpus = Corpus.open(path.parent)
    batch = corpus.batch(np.arange(len(corpus)))
    return batch.words.tolist(), None if batch.labels is None else batch.labels.tolist()


FILES: dict[str, Target] = {
    "data.csv": Target(lambda path: write_reviews(path, 30), read_source),
    "data.tsv": Target(lambda path: path.write_text("text\tlabel\n" + "a b\tgood\n" * 9) and path, read_source),
    "data.jsonl": Target(lambda path: write_reviews(path, 30), read_source),
    "data.xlsx": Target(make_xlsx, read_source),
    "data.parquet": Target(make_parquet, read_source),
    "data.jsonl.gz": Target(make_compressed, read_source, checksum=True),
    "data.jsonl.zst": Target(make_compressed, read_source, checksum=True),
    "vectors.txt": Target(make_vectors, lambda path: len(read_vectors(path))),
    "vectors.bin": Target(make_vectors, lambda path: len(read_vectors(path))),
    "vectors.npz": Target(make_vectors, lambda path: len(read_vectors(path))),
    "settings.toml": Target(make_settings, lambda path: make_config(file=path).model_dump()),
    "run/config.json": Target(make_run, read_run),
    "run/vocabulary.txt": Target(make_run, read_run, checksum=True),
    "run/model.safetensors": Target(make_run, read_run, checksum=True),
    "run/metrics.json": Target(make_run, lambda path: read_metrics(path.parent)),
    "corpus/data.arrow": Target(make_corpus, read_corpus, checksum=True),
    "corpus/vocabulary.txt": Target(make_corpus, read_corpus, checksum=True),
    "corpus/corpus.json": Target(make_corpus, read_corpus),
}
TARGETS = [*FILES, "texts", "assignments"]
CHEAP = {"texts": 60, "assignments": 4, "settings.toml": 4, "vectors.bin": 4}  # get more of the time
COUNTS = ("inputs", "refused", "as before", "different", "silent", "finds")


class DamagedFile:
    """A file of one target, to be damaged again and again."""

    def __init__(self, name: str, folder: Path, seed: int) -> None:
        self.name, self.seed, self.target = name, seed, FILES[name]
        self.path = self.target.make(folder / name)
        self.original, self.expected = self.path.read_bytes(), self.target.read(self.path)

    def outcome(self, number: int) -> str:
        """What reading the file with damage of this number comes to."""
        content = damaged(self.original, random.Random(f"{self.name} {self.seed} {number}"))
        self.path.write_bytes(content)
        checked = self.target.checksum and content != self.original
        return _outcome(lambda: self.target.read(self.path), self.expected, silent=checked)


def fuzz_file(name: str, seed: int, first: int, seconds: float, tell: Tell) -> None:
    """Damage a file until the time is over; `tell` is given what each input came to."""
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        file, number = DamagedFile(name, Path(folder), seed), first
        until = time.process_time() + seconds  # only now: some take their time to be made
        while time.process_time() < until:
            tell("begin")
            tell(file.outcome(number))
            number += 1


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _outcome(read: Callable[[], Any], expected: Any, *, silent: bool) -> str:
    signal.alarm(LIMIT)
    try:
        same = read() == expected
    except EmhrnnError:
        return "refused"
    except Exception as error:
        return f"find {type(error).__name__}: {' '.join(str(error).split())[:150]}"
    finally:
        signal.alarm(0)
    return "as before" if same else "silent" if silent else "different"


def fuzz_texts(seed: int, until: float, tell: Tell) -> None:
    """Texts by Hypothesis and at random: ids and places must agree, and lie in the text."""
    encoder = WordEncoder(Vocabulary.from_counts(count_words(FRAGMENTS)))
    rng = random.Random(seed)

    def read(*some: str) -> None:
        tell("begin", len(some))
        signal.alarm(LIMIT)
        document, encoded = read_document(some[0]), encoder.encode(some)
        first = encoded.document_offsets[1]
        assert document.n_sentences == first
        assert sum(map(len, document.sentences)) == encoded.sentence_offsets[first]
        assert len(encoded.document_offsets) == len(some) + 1
        signal.alarm(0)
        tell("as before", len(some))

    def odd() -> str:
        parts = rng.choices(FRAGMENTS, k=rng.randrange(1, 24))
        for place in range(0, len(parts), 3):
            parts[place] += chr(rng.randrange(0x110000))
        return "".join(parts)

    while time.process_time() < until:
        health = list(HealthCheck)
        options = settings(
            max_examples=100, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=health
        )
        try:
            for _ in range(100):
                read(*(odd() for _ in range(100)))
            options(given(texts)(lambda text: read(text)))()
        except Exception as error:
            tell(f"find {type(error).__name__}: {' '.join(str(error).split())[:150]}")


def fuzz_assignments(seed: int, until: float, tell: Tell) -> None:
    """`--set` with values of all kinds."""
    rng = random.Random(seed)
    names = ["training.epochs", "model.name", "model.dropout", "em.estep", "data.min_count", "training.x", "x", "a.b.c"]
    while time.process_time() < until:
        value = damaged(rng.choice([b"3", b"true", b"0.5", b"'a'", b"[1, 2]", b"{a = 1}", b"1e400"]), rng)
        assignment = f"{rng.choice(names)}={value.decode('latin-1')}"
        tell("begin")
        tell(_outcome(lambda given=assignment: make_config(assignments=[given]) and None, None, silent=False))


def _work(name: str, seed: int, first: int, seconds: float, pipe: int, begun: Any) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # an input that hangs ends the process
    counts: Counter[str] = Counter()
    told = time.monotonic()

    def tell(what: str, inputs: int = 1) -> None:
        nonlocal told
        if what == "begin":
            begun.value += inputs  # in shared memory: right even after a crash
            return
        counts[what] += inputs
        if what.startswith("find") or time.monotonic() - told > 1:
            told = time.monotonic()
            os.pwrite(pipe, json.dumps(counts).encode().ljust(60_000), 0)

    until = time.process_time() + seconds
    if name == "texts":
        fuzz_texts(seed, until, tell)
    elif name == "assignments":
        fuzz_assignments(seed, until, tell)
    else:
        fuzz_file(name, seed, first, seconds, tell)
    os.pwrite(pipe, json.dumps(counts).encode().ljust(60_000), 0)


def children_seconds() -> float:
    """Processor time of the processes that have ended."""
    return sum(os.times()[2:4])


def fuzz(name: str, seed: int, seconds: float) -> dict[str, Any]:
    """All inputs of one target: a row of the report."""
    total: Counter[str] = Counter()
    context = get_context("fork")
    until = children_seconds() + seconds
    while (left := until - children_seconds()) > 0.5:
        begun = context.Value("q", 0, lock=False)
        with tempfile.TemporaryFile() as shared:
            process = context.Process(
                target=_work, args=(name, seed, total["inputs"] + 1, left, shared.fileno(), begun)
            )
            process.start()
            process.join()
            counts = Counter(json.loads(os.pread(shared.fileno(), 60_000, 0) or b"{}"))
            total.update(counts)
            total["inputs"] += begun.value
        if process.exitcode == 1:
            raise AssertionError(f"{name} cannot be tried")
        if process.exitcode:
            what = "hang" if process.exitcode == -signal.SIGALRM else f"crash {process.exitcode}"
            total[f"find {what} at input {total['inputs']}"] += 1
    finds = {what: count for what, count in total.items() if what.startswith("find")}
    for what, count in finds.items():
        print(f"{name}: {count} x {what}", flush=True)
    row = {"target": name, **{kind: total[kind] for kind in COUNTS[:-1]}, "finds": sum(finds.values())}
    if name not in FILES:
        row |= {"silent": "-"}
    elif not FILES[name].checksum:
        row |= {"silent": "no checksum"}
    print(row, flush=True)
    return row


def added(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The counts of both campaigns, by target."""
    rows = {row["target"]: dict(row) for row in before}
    for row in now:
        sofar = rows.setdefault(row["target"], {})
        rows[row["target"]] = {
            name: value + sofar.get(name, 0) if isinstance(value, int) else value for name, value in row.items()
        }
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="of processor time, whatever else runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--record", action="store_true", help="write the counts to results/reliability.md and .json")
    parser.add_argument("--add", action="store_true", help="with --record: add them to those of earlier seeds")
    options = parser.parse_args()
    names = options.targets.split(",")
    shares = {name: CHEAP.get(name, 1) for name in names}
    found = [
        fuzz(name, options.seed, 60 * options.minutes * share / sum(shares.values())) for name, share in shares.items()
    ]
    if options.record:
        command = f"python -m tests.faults.fuzz --minutes {options.minutes:g} --seed {options.seed} --record"
        if len(names) < len(TARGETS):
            command += f" --targets {options.targets}"
        if before := recorded("fuzz") if options.add or len(names) < len(TARGETS) else None:
            command = f"{before['command']}`, `{command}{' --add' if options.add else ''}"
            kept = [row for row in before["rows"] if options.add or row["target"] not in names]
            found = added(kept, found)
        remarks = [
            f"{sum(row['inputs'] for row in found):,} inputs. *refused*: an error in one line; *as before*: the same "
            "content; *different*: other content, where no checksum covers it; *silent*: other content in spite of a "
            "checksum; *finds*: other exceptions, crashes and hangs."
        ]
        record("fuzz", {"command": command, "remarks": remarks, "rows": found})
    sys.exit(any(row["finds"] or row["silent"] not in (0, "-", "no checksum") for row in found))


if __name__ == "__main__":
    main()
