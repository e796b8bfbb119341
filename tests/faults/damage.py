"""200 corruptions of every kind of file that has a checksum: none may be read as other content without an error.

    python -m tests.faults.damage [--count 200] [--seed N] [--record]

*no effect*: read with the same content, because the damage undid itself, or because it lies where nothing is read.
"""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any

from emhrnn.compiler import _fault, load_library
from emhrnn.errors import DataError
from emhrnn.scoring.output import RowCounts, ScoredPart, Unfinished
from emhrnn.training.pack import pack
from tests.behaviour.commands import rows
from tests.faults.fuzz import FILES, DamagedFile, Target, make_run
from tests.faults.report import record

CHUNKS = [f"{number},good\n".encode() * (number + 1) for number in range(5)]


def make_packed(path: Path) -> Path:
    run = make_run(path.parent / "run" / "config.json").parent
    pack(run, path)
    return path


def read_packed(path: Path) -> Any:
    """What a packed run answers."""
    from emhrnn.api import load

    return load(path).predict_proba([text for text, _ in rows(2)]).tolist()


def make_kernel(path: Path) -> Path:
    """A compiled library with its checksum beside it, copied from the cache: this process has that one open."""
    source = path.with_suffix(".cpp")
    source.write_text('extern "C" int answer() { return 42; }\n')
    library = Path(load_library(source)._name)
    shutil.copy(library.with_suffix(".json"), path.with_suffix(".json"))
    return Path(shutil.copy(library, path))


def read_kernel(path: Path) -> str:
    """As the loader does before it loads a library."""
    if fault := _fault(path):
        raise DataError(fault)
    return "loaded"


def make_journal(path: Path) -> Path:
    """The folder of a `predict` that was stopped after some chunks; the path is its journal."""
    unfinished = Unfinished(path.parent.with_suffix(""))
    try:
        with unfinished.opened({"data": "a"}, restart=True) as opened:
            for number, content in enumerate(CHUNKS):
                files = {"rows": content, "errors": b"", "mistakes": b""}
                opened.add(str(number), ScoredPart(files, RowCounts(*[number] * len(fields(RowCounts)))))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return path


def read_journal(path: Path) -> str:
    """Resuming: what is kept must be the first chunks, as they were."""
    folder = path.parent
    (folder / "rows").write_bytes(b"".join(CHUNKS))
    unfinished = Unfinished(folder.with_suffix(""))
    try:
        with unfinished.opened({"data": "a"}, restart=False):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        kept = len(unfinished.sizes)
    make_journal(path)  # resuming has cut it, or removed it
    first = unfinished.sizes == [len(content) for content in CHUNKS[:kept]] and set(astuple(unfinished.totals)) == {
        sum(range(kept))
    }
    if first and kept < len(CHUNKS):
        raise DataError("the damaged line and all after it are scored again")
    return "the first chunks" if first else "other chunks"


KINDS = {
    **{name: target for name, target in FILES.items() if target.checksum},
    "data.parquet": FILES["data.parquet"],
    "run/metrics.json": FILES["run/metrics.json"],
    "run.emhrnn": Target(make_packed, read_packed),
    "kernel.so": Target(make_kernel, read_kernel),
    "out.csv.unfinished/journal.jsonl": Target(make_journal, read_journal),
}


def corrupt(name: str, count: int, seed: int) -> dict[str, Any]:
    """A row of the report."""
    with tempfile.TemporaryDirectory() as folder:
        FILES[name] = replace(KINDS[name], checksum=True)
        file = DamagedFile(name, Path(folder), seed)
        outcomes = Counter(file.outcome(number) for number in range(1, count + 1))
    finds = {what: n for what, n in outcomes.items() if what.startswith("find")}
    for what, number in finds.items():
        print(f"{name}: {number} x {what}", flush=True)
    return {
        "file": name, "corruptions": count, "refused": outcomes["refused"], "no effect": outcomes["as before"],
        "silent": outcomes["silent"], "finds": sum(finds.values()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="corruptions of each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the counts to results/reliability.md and .json")
    options = parser.parse_args()
    found = []
    for name in KINDS:
        found.append(corrupt(name, options.count, options.seed))
        print(found[-1], flush=True)
    if options.record:
        command = f"python -m tests.faults.damage --count {options.count} --seed {options.seed} --record"
        remarks = ["*no effect*: the same content, in spite of the damage. *silent*: other content, without an error."]
        record("damage", {"command": command, "remarks": remarks, "rows": found})
    sys.exit(any(row["silent"] or row["finds"] for row in found))


if __name__ == "__main__":
    main()
