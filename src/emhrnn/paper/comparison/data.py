"""A set of data, split and tokenised once; every row of a comparison trains on the same three corpora.

Which documents are trained on, validated and tested on is the same for every row and every seed:

- A folder with files named train..., test... and perhaps dev... or valid...: these.
- A split column that says train, test and perhaps dev or valid: these rows.
- Otherwise 80 %, 10 % and 10 % of the rows, drawn once, with the same mix of classes in each.

Where there is no validation part, 10 % of the training rows are it. Test data of its own (`test`) is used whole.

With `folds`, the rows of all parts are pooled and dealt into K folds with the same mix of classes. Each fold makes a
set of its own: the fold is tested; of the other rows, 10 % are for validation and the rest for training.
"""

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus import Columns, Corpus, Source, is_corpus, prepare
from emhrnn.corpus.dataset import stratified_split
from emhrnn.corpus.readers.source import check_readable
from emhrnn.errors import DataError
from emhrnn.paper.jobs import JobSpec, job_name, report_progress
from emhrnn.shapes import Bool, Int64
from emhrnn.training.config import Config
from emhrnn.training.data import checksum, text_settings

NAMES = {
    "train": ("train", "training"),
    "valid": ("dev", "valid", "validation", "val"),
    "test": ("test", "testing"),
}
PARTS = tuple(NAMES)
FRACTION = 0.1
Mask = Bool[np.ndarray, " rows"]


@dataclass(frozen=True)
class Fold:
    """One of K folds, counted from 1."""

    number: int
    of: int


@dataclass(frozen=True)
class DataSet:
    """Data under a name. `path`: a file, a folder per class, or a folder with a file for each part."""

    name: str
    path: Path
    test: Path | None = None
    valid: Path | None = None
    format: str | None = None
    columns: Columns = field(default_factory=Columns)
    limit: tuple[int, int, int] | None = None  # most rows of train, valid and test: a slice
    settings: tuple[str, ...] = ()  # as `--set` takes them, the same for all rows on this set
    folds: int | None = None  # K of a cross-validation
    fold: Fold | None = None  # set by `split_sets` alone

    def split_sets(self) -> list["DataSet"]:
        """The set itself, or with `folds` one set for each fold."""
        if self.folds is None:
            return [self]
        folds = [Fold(number + 1, self.folds) for number in range(self.folds)]
        return [replace(self, name=f"{self.name}.fold-{one.number}-of-{one.of}", fold=one) for one in folds]


@dataclass(frozen=True, eq=False)
class SplitPart:
    """The rows of a file that belong to a part."""

    path: Path
    rows: Mask


@dataclass(frozen=True, eq=False)
class Split:
    """The three parts of a set."""

    train: SplitPart
    valid: SplitPart
    test: SplitPart
    how: str  # in words
    left_out: dict[str, int] = field(default_factory=dict)  # rows of other values of the split column


@dataclass(frozen=True, eq=False)
class _Scan:
    """Labels and splits of all rows of a file. Texts are read past."""

    path: Path
    groups: Int64[np.ndarray, " rows"]  # by label; rows without label or with several are one group
    splits: list[str | None]
    labels: dict[str | None, int]  # the group of each label

    def counts(self) -> Counter[str]:
        return Counter(name for name in self.splits if name is not None)

    def part(self, rows: Mask) -> SplitPart:
        return SplitPart(self.path, rows)

    def of(self, part: str) -> Mask:
        return np.array([name is not None and name.lower() in NAMES[part] for name in self.splits], dtype=bool)


def plan_split(data: DataSet) -> Split:
    """Reads the data once. A `limit` keeps at most so many rows of each part, the same at every call. With a `fold`,
    that fold of all rows is the test part.

    Raises:
        DataError: there are no rows to test on or to train on.
    """
    files = part_files(data.path) if data.path.is_dir() and data.fold is None else {}
    if data.valid is not None and data.test is not None:
        files = {"train": data.path, "valid": data.valid, "test": data.test}
    elif files and data.test is not None:
        files = {**files, "test": data.test}
    if files:
        split = _of_files({part: _scan(file, data) for part, file in files.items()})
    elif data.fold is not None:
        split = _of_fold(_scan(data.path, data), data.fold)
    else:
        split = _of_rows(_scan(data.path, data), None if data.test is None else _scan(data.test, data))
    return split if data.limit is None else _limited(split, data.limit)


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


def _of_files(scans: dict[str, _Scan]) -> Split:
    scan, how = scans["train"], f"files {', '.join(scan.path.name for scan in scans.values())}"
    train = _whole(scan, "train").rows
    if "valid" in scans:
        valid = _whole(scans["valid"], "valid")
    else:
        train, mask = _divide(scan, train)
        valid, how = scan.part(mask), f"{how}; 10 % of the training rows for validation"
    return Split(scan.part(train), valid, _whole(scans["test"]), how)


def _of_rows(scan: _Scan, test: _Scan | None) -> Split:
    counts = scan.counts()
    everything = np.ones(len(scan.groups), dtype=bool)
    if not counts:
        if test is not None:
            train, valid = _divide(scan, everything)
            return Split(scan.part(train), scan.part(valid), _whole(test), "10 % for validation, test given")
        train, tested = _divide(scan, everything)
        train, valid = _divide(scan, train, FRACTION / (1 - FRACTION))
        how = "80 %, 10 % and 10 % of the rows, drawn with seed 0, each with the same mix of classes"
        return Split(scan.part(train), scan.part(valid), scan.part(tested), how)
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
    tests = scan.part(tested) if test is None else _whole(test)
    return Split(scan.part(train), scan.part(valid), tests, how, _left_out(counts))


def _of_fold(scan: _Scan, fold: Fold) -> Split:
    """Rows without a part are left out where a split column names the part of other rows."""
    counts, path = scan.counts(), scan.path
    named = np.any([scan.of(part) for part in PARTS], axis=0) if counts else np.ones(len(scan.groups), dtype=bool)
    rows, groups = np.flatnonzero(named), scan.groups[named]
    if len(rows) < fold.of:
        of_parts = f" that its split column calls {', '.join(PARTS)}" if counts else ""
        raise DataError(f"{path} has {len(rows):,} rows{of_parts}: too few for --folds {fold.of}; give fewer folds")
    for label, group in scan.labels.items():
        if label is not None and (groups == group).sum() == 1:
            raise DataError(
                f"{path} has only one document of the class {label!r}, so the fold that tests it has none to train on; "
                "remove the class, or leave out --folds"
            )
    order = np.random.default_rng(0).permutation(len(rows))
    order = order[np.argsort(groups[order], kind="stable")]  # shuffled within each class, then dealt like cards
    tested = _mask(len(named), rows[order[fold.number - 1 :: fold.of]])
    train, valid = _divide(scan, named & ~tested)
    how = f"{fold.of}-fold cross-validation of all {len(rows):,} rows"
    how += f" (those that the split column calls {', '.join(PARTS)}, pooled)" if counts else ""
    how += "; folds drawn with seed 0, each with the same mix of classes; 10 % of the other rows for validation"
    return Split(scan.part(train), scan.part(valid), scan.part(tested), how, _left_out(counts))


def _left_out(counts: Counter[str]) -> dict[str, int]:
    known = {name for names in NAMES.values() for name in names}
    return {name: count for name, count in sorted(counts.items()) if name.lower() not in known}


def _scan(path: Path, data: DataSet) -> _Scan:
    numbers: dict[str | None, int] = {}
    groups = array("q")
    splits: list[str | None] = []
    for record in Source(path, format=data.format, columns=data.columns):
        label = record.label if isinstance(record.label, str) else None
        groups.append(numbers.setdefault(label, len(numbers)))
        splits.append(record.split)
    return _Scan(path, np.array(groups, dtype=np.int64), splits, numbers)


def _whole(scan: _Scan, part: str = "test") -> SplitPart:
    """All rows; of a file with a split column that knows rows of the part, these."""
    marked = scan.of(part)
    return SplitPart(scan.path, marked if marked.any() else np.ones(len(scan.groups), dtype=bool))


def _divide(scan: _Scan, mask: Mask, fraction: float = FRACTION) -> tuple[Mask, Mask]:
    """The marked rows in two: the rest, and the held-out fraction."""
    rows = np.flatnonzero(mask)
    rest, held_out = stratified_split(scan.groups[rows], fraction, np.random.default_rng(0))
    return _mask(len(mask), rows[rest]), _mask(len(mask), rows[held_out])


def _limited(split: Split, limit: Sequence[int]) -> Split:
    def some(part: SplitPart, most: int) -> SplitPart:
        kept = np.random.default_rng(0).permutation(np.flatnonzero(part.rows))[:most]
        return SplitPart(part.path, _mask(len(part.rows), kept))

    told = ", ".join(f"{most:,}" for most in limit)
    how = f"{split.how}; of these, at most {told} rows of train, valid and test, drawn with seed 0"
    train, valid, test = map(some, (split.train, split.valid, split.test), limit)
    return Split(train, valid, test, how, split.left_out)


def _mask(length: int, rows: Int64[np.ndarray, " some"]) -> Mask:
    mask = np.zeros(length, dtype=bool)
    mask[rows] = True
    return mask


def name_of(path: Path) -> str:
    """reviews.jsonl.gz -> reviews"""
    return job_name(path.resolve().name.partition(".")[0])


def data_job(data: DataSet, config: Config) -> JobSpec:
    """With checksums, so that data which was changed meanwhile is noticed.

    Raises:
        DataError: a file is missing, or is of a kind that cannot be split.
    """
    for path in filter(None, (data.path, data.test, data.valid)):
        check_readable(path)
        if is_corpus(path):
            raise DataError(f"{path} is a prepared corpus, in which rows cannot be split any more; give the raw file")
    if data.folds is not None and data.path.is_dir() and part_files(data.path):
        raise DataError(
            f"{data.path} has a file for each part, and --folds splits one file; give one file with all rows"
        )
    paths = {"path": data.path, "test": data.test, "valid": data.valid}
    return JobSpec(
        data.name,
        {
            "sha256": {name: None if path is None else checksum(path) for name, path in paths.items()},
            "format": data.format,
            "columns": {"text": data.columns.text, "label": data.columns.label},
            "limit": None if data.limit is None else list(data.limit),
            "text": config.data.model_dump(include={"lowercase", "max_sentence_words", "max_sentences"}),
            **({} if data.fold is None else {"fold": asdict(data.fold)}),  # older records have no such key
        },
        {name: None if path is None else str(path.resolve()) for name, path in paths.items()},
    )


def has_corpora(folder: Path) -> bool:
    """Whether the job's folder still holds what it prepared; a kept table has only the records."""
    return all(is_corpus(folder / name) for name in PARTS)


def prepare_data(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The job: train, valid and test as corpora in its folder; classes, users and products are those of train."""
    test, valid = (None if arguments[name] is None else Path(arguments[name]) for name in ("test", "valid"))
    data = DataSet(
        folder.name,
        Path(arguments["path"]),
        test=test,
        valid=valid,
        format=arguments["format"],
        columns=Columns(**arguments["columns"]),
        limit=arguments["limit"],
        fold=Fold(**arguments["fold"]) if "fold" in arguments else None,
    )
    report_progress(folder, 0.0, "reading labels")
    split = plan_split(data)
    text = text_settings(Config.model_validate({"data": arguments["text"]}).data)
    corpora: dict[str, Corpus] = {}
    for step, name in enumerate(PARTS):
        if is_corpus(folder / name):  # from before it was stopped
            corpora[name] = Corpus.open(folder / name)
            continue
        report_progress(folder, (step + 1) / 4, f"preparing {name}")
        part: SplitPart = getattr(split, name)
        train = corpora.get("train")
        corpora[name] = prepare(
            part.path,
            folder / name,
            format=data.format,
            columns=data.columns,
            rows=part.rows,
            text=text,
            classes=None if train is None else train.classes,
            users=None if train is None else train.users,
            products=None if train is None else train.products,
            progress=False,
        )
        if name == "train":
            corpora[name].check_trainable()
    return {
        "how": split.how,
        "left_out": split.left_out,
        "classes": list(corpora["train"].classes),
        "language": corpora["train"].text.language,
        "users": len(corpora["train"].users),
        "products": len(corpora["train"].products),
        "multi_label": corpora["train"].multi_label,
        "majority": _majority(corpora["train"], corpora["test"]),
        "parts": {
            name: {
                "documents": len(corpus),
                "words": int(corpus.lengths.sum()),
                "sha256": checksum(folder / name),
                "skipped": corpus.report.skipped,
            }
            for name, corpus in corpora.items()
        },
    }


def pooled(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `prepare_data` found of the folds of a set, as of one set. Test documents are those of all folds; documents
    to train on and to validate are counted for one fold, on average."""
    if len(found) == 1:
        return found[0]
    parts = {}
    for name in PARTS:
        own, share = [one["parts"][name] for one in found], 1 if name == "test" else len(found)
        sums = {key: round(sum(part[key] for part in own) / share) for key in ("documents", "words")}
        digest = hashlib.sha256("".join(part["sha256"] for part in own).encode()).hexdigest()
        parts[name] = {**sums, "sha256": digest, "skipped": {}}
    shares = [one["majority"] for one in found]
    tested = [one["parts"]["test"]["documents"] for one in found]
    majority = None if None in shares else float(np.average(shares, weights=tested))
    return {**found[0], "majority": majority, "parts": parts, "folds": len(found)}


def _majority(train: Corpus, test: Corpus) -> float | None:
    """Accuracy of always saying the commonest class of the training data."""
    if train.multi_label:
        return None
    return float(test.class_counts[int(np.argmax(train.class_counts))] / len(test))
