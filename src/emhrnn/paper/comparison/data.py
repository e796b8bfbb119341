"""A set of data, read, split and tokenised once; every row of the table trains on the same three corpora."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus import Columns, Corpus, is_corpus, prepare
from emhrnn.corpus.readers.source import check_readable
from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison.splits import PARTS, Part, plan_split
from emhrnn.paper.job_process import report_progress
from emhrnn.paper.job_records import Job, job_name
from emhrnn.training.config import Config
from emhrnn.training.data import checksum, text_settings


@dataclass(frozen=True)
class DataSet:
    """Data under a name. `path`: a file, a folder per class, or a folder with a file for each part."""

    name: str
    path: Path
    test: Path | None = None
    valid: Path | None = None
    format: str | None = None
    columns: Columns = field(default_factory=Columns)
    limit: int | None = None  # rows of each part, for a quick look
    settings: tuple[str, ...] = ()  # as `--set` takes them, the same for all rows on this set


def named(text: str) -> tuple[str | None, Path]:
    """`name=path`, or a path alone. What is a path as it stands is one, whatever it contains."""
    name, equals, path = text.partition("=")
    if equals and name and not Path(text).exists():
        return job_name(name), Path(path)
    return None, Path(text)


def name_of(path: Path) -> str:
    """reviews.jsonl.gz -> reviews"""
    return job_name(path.resolve().name.partition(".")[0])


def data_job(data: DataSet, config: Config) -> Job:
    """With checksums, so that data which was changed meanwhile is noticed.

    Raises:
        DataError: a file is missing, or is of a kind that cannot be split.
    """
    for path in filter(None, (data.path, data.test, data.valid)):
        check_readable(path)
        if is_corpus(path):
            raise DataError(f"{path} is a prepared corpus, in which rows cannot be split any more; give the raw file")
    paths = {"path": data.path, "test": data.test, "valid": data.valid}
    return Job(
        data.name,
        {
            "sha256": {name: None if path is None else checksum(path) for name, path in paths.items()},
            "format": data.format,
            "columns": {"text": data.columns.text, "label": data.columns.label},
            "limit": data.limit,
            "text": config.data.model_dump(include={"lowercase", "max_sentence_words", "max_sentences"}),
        },
        {name: None if path is None else str(path.resolve()) for name, path in paths.items()},
    )


def has_corpora(folder: Path) -> bool:
    """Whether the job's folder still holds what it prepared; a kept table has only the records."""
    return all(is_corpus(folder / name) for name in PARTS)


def prepare_data(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The job: train, valid and test as corpora in its folder; classes, users and products are those of train."""
    columns = Columns(**arguments["columns"])
    test, valid = (None if arguments[name] is None else Path(arguments[name]) for name in ("test", "valid"))
    report_progress(folder, 0.0, "reading labels")
    split = plan_split(
        Path(arguments["path"]),
        test=test,
        valid=valid,
        format=arguments["format"],
        columns=columns,
        limit=arguments["limit"],
    )
    text = text_settings(Config.model_validate({"data": arguments["text"]}).data)
    corpora: dict[str, Corpus] = {}
    for step, name in enumerate(PARTS):
        if is_corpus(folder / name):  # from before it was stopped
            corpora[name] = Corpus.open(folder / name)
            continue
        report_progress(folder, (step + 1) / 4, f"preparing {name}")
        part: Part = getattr(split, name)
        train = corpora.get("train")
        corpora[name] = prepare(
            part.path,
            folder / name,
            format=arguments["format"],
            columns=columns,
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


def _majority(train: Corpus, test: Corpus) -> float | None:
    """Accuracy of always saying the commonest class of the training data."""
    if train.multi_label:
        return None
    return float(test.class_counts[int(np.argmax(train.class_counts))] / len(test))


def data_sets(data: Sequence[str], tests: Sequence[str], *, format: str | None, columns: Columns) -> list[DataSet]:
    """From what stands on the command line. Test data without a name belongs to the only set.

    Raises:
        ConfigError: it is not clear to which set test data belong.
    """
    paths = {name or name_of(path): path for name, path in map(named, data)}
    if len(paths) < len(data):
        raise ConfigError("two sets have the same name; name them apart: NAME=PATH")
    test_of: dict[str, Path] = {}
    for name, path in map(named, tests):
        if name is None and len(paths) > 1:
            raise ConfigError(
                f"it is not clear whose test data {path} is; write NAME={path} with one of {', '.join(paths)}"
            )
        if name is not None and name not in paths:
            raise ConfigError(f"test data is given for {name!r}, which is none of the sets {', '.join(paths)}")
        test_of[name or next(iter(paths))] = path
    return [DataSet(name, path, test=test_of.get(name), format=format, columns=columns) for name, path in paths.items()]
