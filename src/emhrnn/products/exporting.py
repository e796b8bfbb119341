"""Export a run folder, and measure it on named data."""

import tempfile
from pathlib import Path

from emhrnn.errors import DataError
from emhrnn.export.onnx_file import Exported, export_onnx
from emhrnn.training.data import Named, other_corpus
from emhrnn.training.run import load_run


def export_run(
    folder: Path, out: Path, *, int8: bool = False, check: Named | None = None, overwrite: bool = False
) -> Exported:
    run = load_run(folder)
    if check is None:
        return export_onnx(run, out, int8=int8, overwrite=overwrite)
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        corpus = other_corpus(
            check, Path(scratch) / "corpus", vocabulary=run.vocabulary, classes=run.classes, text=run.text,
            users=run.users, products=run.products,
        )  # fmt: skip
        if not corpus.labelled:
            raise DataError(f"{check.path} has no labels to compare with; leave --check out, or give labelled data")
        return export_onnx(run, out, int8=int8, check=corpus, overwrite=overwrite)
