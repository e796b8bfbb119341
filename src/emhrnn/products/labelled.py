"""Labelled data in the words and classes of a run, for as long as they are looked at."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emhrnn.corpus import Corpus
from emhrnn.errors import DataError
from emhrnn.training.data import Named, check_ids, check_same_kind, other_corpus
from emhrnn.training.run import Run


@contextmanager
def labelled_corpus(run: Run, data: Named, *, why: str, progress: bool) -> Iterator[Corpus]:
    """`why` tells what the labels are for. A label that the run has never seen is an error: no prediction could be
    right about it."""
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        corpus = other_corpus(
            data, Path(scratch) / "corpus",
            vocabulary=run.vocabulary, classes=run.classes, text=run.text,
            users=run.users, products=run.products, progress=progress,
        )  # fmt: skip
        if not corpus.labelled:
            raise DataError(f"{data.path} has no labels {why}")
        check_same_kind(data.path, corpus, multi_label=run.multi_label)
        check_ids(run.config, data.path, corpus.report.columns)
        yield corpus
