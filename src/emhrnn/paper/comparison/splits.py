"""Which documents are trained on, validated and tested on: the same for every row and every seed.

- A folder with files named train..., test... and perhaps dev... or valid...: these.
- A split column that says train, test and perhaps dev or valid: these rows.
- Otherwise 80 %, 10 % and 10 % of the rows, drawn once, with the same mix of classes in each.

Where there is no validation part, 10 % of the training rows are it. Test data of its own (`test`) is used whole.
"""

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.corpus import Columns, Source
from emhrnn.corpus.splitting import stratified_split
from emhrnn.errors import DataError

NAMES = {
    "train": ("train", "training"),
    "valid": ("dev", "valid", "validation", "val"),
    "test": ("test", "testing"),
}
PARTS = tuple(NAMES)
FRACTION = 0.1
Mask = Bool[np.ndarray, " rows"]


@dataclass(frozen=True, eq=False)
class Part:
    path: Path
    rows: Mask


@dataclass(frozen=True, eq=False)
class Split:
    train: Part
    valid: Part
    test: Part
    how: str  # in words
    left_out: dict[str, int] = field(default_factory=dict)  # rows of other values of the split column


@dataclass(frozen=True, eq=False)
class _Scan:
    """Labels and splits of all rows of a file. Texts are read past."""

    path: Path
    groups: Int64[np.ndarray, " rows"]  # by label; rows without label or with several are one group
    splits: list[str | None]

    def counts(self) -> Counter[str]:
        return Counter(name for name in self.splits if name is not None)

    def of(self, part: str) -> Mask:
        return np.array([name is not None and name.lower() in NAMES[part] for name in self.splits], dtype=bool)


def plan_split(
    path: Path,
    *,
    test: Path | None,
    valid: Path | None = None,
    format: str | None,
    columns: Columns,
    limit: int | None = None,
) -> Split:
    """Reads the data once. `limit` keeps at most so many rows of each part, the same at every call.

    Raises:
        DataError: there are no rows to test on or to train on.
    """
    files = part_files(path) if path.is_dir() else {}
    if valid is not None and test is not None:
        files = {"train": path, "valid": valid, "test": test}
    elif files and test is not None:
        files = {**files, "test": test}
    if files:
        split = _of_files(files, format, columns)
    else:
        split = _of_rows(_scan(path, format, columns), None if test is None else _scan(test, format, columns))
    return split if limit is None else _limited(split, limit)


def part_files(folder: Path) -> dict[str, Path]:
    """The files of a folder that holds one for each part; empty for any other folder."""
    found: dict[str, Path] = {}
    for file in sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")):
        words = re.split(r"[^a-z]+", file.name.lower())
        for part in [part for part in PARTS if any(name in words for name in NAMES[part])]:
            if part in found:
                raise DataError(
                    f"{folder} has two files of the part {part}, {found[part].name} and {file.name}; keep one"
                )
            found[part] = file
    return found if "train" in found and "test" in found else {}


def _of_files(files: dict[str, Path], format: str | None, columns: Columns) -> Split:
    scans = {part: _scan(file, format, columns) for part, file in files.items()}
    train, how = _whole(scans["train"], "train").rows, f"files {', '.join(f.name for f in files.values())}"
    if "valid" in scans:
        valid = _whole(scans["valid"], "valid")
    else:
        train, mask = _divide(scans["train"], train)
        valid, how = Part(files["train"], mask), f"{how}; 10 % of the training rows for validation"
    return Split(Part(files["train"], train), valid, _whole(scans["test"]), how)


def _of_rows(scan: _Scan, test: _Scan | None) -> Split:
    counts = scan.counts()
    everything = np.ones(len(scan.groups), dtype=bool)
    if not counts:
        if test is not None:
            train, valid = _divide(scan, everything)
            return Split(
                Part(scan.path, train), Part(scan.path, valid), _whole(test), "10 % for validation, test given"
            )
        train, tested = _divide(scan, everything)
        train, valid = _divide(scan, train, FRACTION / (1 - FRACTION))
        how = "80 %, 10 % and 10 % of the rows, drawn with seed 0, each with the same mix of classes"
        return Split(Part(scan.path, train), Part(scan.path, valid), Part(scan.path, tested), how)
    train, valid, tested = (scan.of(part) for part in PARTS)
    told = ", ".join(f"{name!r} ({count:,})" for name, count in sorted(counts.items()))
    if not train.any():
        raise DataError(f"no rows to train on: the split column of {scan.path} has {told}; one must be 'train'")
    if test is None and not tested.any():
        raise DataError(
            f"no rows to test on: the split column of {scan.path} has {told}; name one of them 'test', or give test "
            "data of its own (--test)"
        )
    how = "the split column"
    if not valid.any():
        train, valid = _divide(scan, train)
        how += "; 10 % of the training rows for validation"
    known = {name for names in NAMES.values() for name in names}
    left_out = {name: count for name, count in sorted(counts.items()) if name.lower() not in known}
    tests = Part(scan.path, tested) if test is None else _whole(test)
    return Split(Part(scan.path, train), Part(scan.path, valid), tests, how, left_out)


def _scan(path: Path, format: str | None, columns: Columns) -> _Scan:
    numbers: dict[object, int] = {}
    groups = array("q")
    splits: list[str | None] = []
    for record in Source(path, format=format, columns=columns):
        label = record.label if isinstance(record.label, str) else None
        groups.append(numbers.setdefault(label, len(numbers)))
        splits.append(record.split)
    return _Scan(path, np.array(groups, dtype=np.int64), splits)


def _whole(scan: _Scan, part: str = "test") -> Part:
    """All rows; of a file with a split column that knows rows of the part, these."""
    marked = scan.of(part)
    return Part(scan.path, marked if marked.any() else np.ones(len(scan.groups), dtype=bool))


def _divide(scan: _Scan, mask: Mask, fraction: float = FRACTION) -> tuple[Mask, Mask]:
    """The marked rows in two: the rest, and the held-out fraction."""
    rows = np.flatnonzero(mask)
    rest, held_out = stratified_split(scan.groups[rows], fraction, np.random.default_rng(0))
    return _mask(len(mask), rows[rest]), _mask(len(mask), rows[held_out])


def _limited(split: Split, limit: int) -> Split:
    def some(part: Part) -> Part:
        kept = np.random.default_rng(0).permutation(np.flatnonzero(part.rows))[:limit]
        return Part(part.path, _mask(len(part.rows), kept))

    how = f"{split.how}; at most {limit:,} rows of each part"
    return Split(some(split.train), some(split.valid), some(split.test), how, split.left_out)


def _mask(length: int, rows: Int64[np.ndarray, " some"]) -> Mask:
    mask = np.zeros(length, dtype=bool)
    mask[rows] = True
    return mask
