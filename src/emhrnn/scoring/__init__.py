"""Score files of any size: each row in gives one row out, in the same order, in constant memory, and a kill at any
moment costs only the chunks that were being scored.

    chunks.py     rows -> chunks, as bytes                    the reading process
    scorer.py     chunk -> part of the output                 every worker process
    output.py     parts -> OUT, with a journal to resume from
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from emhrnn.corpus.readers.arrow_formats import is_dataset
from emhrnn.errors import DataError
from emhrnn.files import sha256
from emhrnn.scoring.chunks import CHARACTERS, ROWS, Data, read_chunks
from emhrnn.scoring.output import MISTAKES, RowCounts, Unfinished, check_suffix
from emhrnn.scoring.scorer import Task, score_chunks
from emhrnn.training.config import Config, validated
from emhrnn.training.data import Named, check_ids, prepared
from emhrnn.training.run import CONFIG, IDS, VOCABULARY, WEIGHTS, read_description, trained_columns
from emhrnn.version import __version__


@dataclass(frozen=True)
class ScoringResult(RowCounts):
    """What was done."""

    before: int = 0  # rows that an earlier call had done
    errors: Path | None = None  # lists the rows that could not be scored, or were repaired


def score(
    run: Path,
    data: Data,
    out: Path,
    *,
    explain: bool = False,
    min_confidence: float | None = None,
    threshold: float | Mapping[str, float] | None = None,
    top: int | None = None,
    coverage: float | None = None,
    keep_columns: bool = False,
    mistakes: Path | None = None,
    workers: int = 1,
    restart: bool = False,
    progress: bool = True,
) -> ScoringResult:
    """Write `id`, `label` and the probability of every class for each row of the data; with `explain`, also what
    decided. What an earlier call left unfinished is verified and kept, unless `restart` is given.

    Args:
        min_confidence, threshold: as in `Model.predict`; the likeliest class and its probability are written, too.
        top: write so many of the likeliest classes, instead of the probability of all.
        coverage: write a set of labels that holds the true one with at least this chance (`Model.predict_sets`).
        keep_columns: write all columns of the data, too.
        mistakes: a .csv or .jsonl file for rows whose own label is another than the predicted one, with the reasons.

    Raises:
        EmhrnnError: run or data cannot be read, `out` cannot be written, or the unfinished output is of something else.
    """
    data = replace(data, written=_written(out, mistakes))
    columns = replace(data.columns, labelled=mistakes is not None, keep=keep_columns, trained=trained_columns(run))
    data = replace(data, columns=columns)
    check_out(out, data)
    description = read_description(run)
    named = threshold if isinstance(threshold, Mapping) or threshold is None else {"": threshold}
    task = Task(
        run=run,
        suffix=check_suffix(out),
        explain=explain,
        min_confidence=min_confidence,
        thresholds=tuple((named or {}).items()),
        top=top,
        coverage=coverage,
        mistakes=None if mistakes is None else check_suffix(mistakes, MISTAKES),
    )
    total, present = _checked_bytes(data, validated(description["config"]))
    task = replace(task, kept=tuple(present) if keep_columns else None)
    with Unfinished(out, mistakes).opened(_settings(task, data), restart=restart) as unfinished:
        before = unfinished.totals.rows
        with tqdm(total=total, desc="scoring", unit="B", unit_scale=True, disable=None if progress else True) as bar:
            for chunk, part in score_chunks(read_chunks(data, len(unfinished.sizes), unfinished.digest), task, workers):
                unfinished.add(chunk.digest, part)
                bar.set_postfix(rows=f"{unfinished.totals.rows:,}", refresh=False)
                bar.update(chunk.done - bar.n)
        unfinished.finish()
    errors = unfinished.errors if unfinished.errors.exists() else None
    return ScoringResult(**asdict(unfinished.totals), before=before, errors=errors)


def _written(out: Path, mistakes: Path | None) -> tuple[Path, ...]:
    unfinished = Unfinished(out)
    paths = (out, unfinished.errors, unfinished.folder, *([] if mistakes is None else [mistakes]))
    if mistakes is not None and mistakes.resolve() == out.resolve():
        raise DataError(f"{out} is to hold the predictions and the mistakes; give two files")
    return tuple(path.resolve() for path in paths)


def check_out(out: Path, data: Data) -> None:
    """Raise a DataError for a file that cannot take the predictions, before any work is done."""
    check_suffix(out)
    if out.is_dir():
        raise DataError(f"{out} is a folder, the predictions go to one file; give the name of a file")
    if out.exists() and any(path.exists() and out.samefile(path) for path in data.paths):
        raise DataError(f"{out} is the data itself, which would be replaced by its predictions; give another file")
    for path in data.paths:
        if path.exists() and data.writes(path):
            raise DataError(f"{path} is written beside {out}, so it cannot be data, too; give another --out")


def _checked_bytes(data: Data, config: Config) -> tuple[int, list[str]]:
    """The size of the data, which is seen to be readable; and its columns, where they are asked for."""
    for path in data.paths:
        if prepared(Named(path=path)) is not None:
            raise DataError(f"{path} is a prepared corpus, which has no texts; give the file it was prepared from")
    source = data.source()
    _check_beside_classes(source.paths, data)
    if config.reads_ids or data.columns.keep:
        with closing(iter(source)) as records:
            next(records, None)  # now it knows its columns
        check_ids(config, data.paths[0], source.taken)
    if data.columns.keep and not source.present:
        raise DataError(f"{data} is not a table, so there are no columns to keep; leave --keep-columns out")
    return source.meter.total, list(source.present)


def _check_beside_classes(files: list[Path], data: Data) -> None:
    """Raise a DataError where OUT.unfinished would be read as one more class."""
    parents = {written.parent for written in data.written}
    for path in files:
        if path.is_dir() and not is_dataset(path) and path.resolve() in parents:
            raise DataError(f"{path} has a folder per class, and --out would lie among them; give a file elsewhere")


def _settings(task: Task, data: Data) -> dict[str, Any]:
    """What must be the same to resume an unfinished output."""
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS, VOCABULARY, IDS):
        if (task.run / name).is_file():
            digest.update(f"{name} {sha256(task.run / name)}\n".encode())
    settings = {
        "emhrnn": __version__,
        "run": digest.hexdigest(),
        "data": {str(path): path.stat().st_size for path in data.files() if path.is_file()},
        "paths": [str(path) for path in data.paths],
        "columns": asdict(data.columns),
        "format": data.format,
        "split": data.split,
        "encoding": data.encoding,
        **{name: value for name, value in asdict(task).items() if name != "run"},
        "chunks": [ROWS, CHARACTERS],
    }
    return dict(json.loads(json.dumps(settings)))  # as they are read back
