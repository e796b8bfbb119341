"""Documents of several corpora in one, as a model needs them that goes on learning."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from emhrnn.corpus.batch import fingerprints
from emhrnn.corpus.dataset import Corpus
from emhrnn.corpus.manifest import DATA, Contents, Report, write_manifest
from emhrnn.extras import pyarrow as pa
from emhrnn.files import atomic_folder
from emhrnn.text import Vocabulary

AT_ONCE = 2000  # documents of a record batch


def union(
    parts: Sequence[Corpus],
    destination: Path,
    *,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    weights: Sequence[float] | None = None,
) -> Corpus:
    """The documents of labelled corpora, one corpus after the other, in a new corpus folder. Words and classes of each
    must have the same ids in `vocabulary` and `classes`, which may have more. `weights`: what each document of a corpus
    counts in training, times its own weight."""
    factors = [1.0] * len(parts) if weights is None else list(weights)
    with atomic_folder(destination) as folder:
        with pa.OSFile(str(folder / DATA), "wb") as sink:
            writer = None
            for part, factor in zip(parts, factors, strict=True):
                for first in range(0, len(part), AT_ONCE):
                    rows = np.arange(first, min(first + AT_ONCE, len(part)))
                    batch = pa.record_batch(_columns(part, rows, factor, weighted=weights is not None))
                    writer = writer or pa.ipc.new_file(sink, batch.schema)
                    writer.write_batch(batch)
            assert writer is not None, "no documents"
            writer.close()
        report = _report(parts, vocabulary, classes)
        contents = Contents(
            vocabulary=vocabulary, classes=classes, users=(), products=(), text=parts[0].text, report=report
        )
        write_manifest(folder, contents, {"files": [], "formats": [], "split": None})
    return Corpus.open(destination, verify=False)


def _columns(corpus: Corpus, rows: np.ndarray, factor: float, *, weighted: bool) -> dict[str, object]:
    batch = corpus.batch(rows)
    assert batch.labels is not None
    sentences = pa.ListArray.from_arrays(batch.sentence_offsets.astype(np.int32), batch.words.astype(np.int32))
    columns = {
        "words": pa.ListArray.from_arrays(batch.document_offsets.astype(np.int32), sentences),
        "row": pa.array(corpus.source_rows(rows), pa.int64()),
        "fingerprint": pa.array(fingerprints(batch.words, batch.document_lengths)),
        "id": pa.array(corpus.ids(rows), pa.string()),
    }
    if batch.labels.ndim == 2:
        labels = [np.flatnonzero(row).tolist() for row in batch.labels]
        columns["label"] = pa.array(labels, pa.list_(pa.int32()))
    else:
        columns["label"] = pa.array(batch.labels, pa.int32())
    if weighted:
        own = np.ones(len(rows)) if batch.weights is None else batch.weights
        columns["weight"] = pa.array(own * factor, pa.float32())
    return columns


def _report(parts: Sequence[Corpus], vocabulary: Vocabulary, classes: tuple[str, ...]) -> Report:
    """Counts of all parts; what was skipped and repaired is of the first, the new documents."""
    counts = np.zeros(len(classes), dtype=np.int64)
    for part in parts:
        counts[: len(part.classes)] += part.class_counts
    return replace(
        parts[0].report,
        documents=sum(map(len, parts)),
        sentences=sum(int(part.sentence_counts.sum()) for part in parts),
        words=sum(int(part.lengths.sum()) for part in parts),
        longest_document=max(int(part.lengths.max()) for part in parts),
        vocabulary=len(vocabulary),
        classes=dict(zip(classes, counts.tolist(), strict=True)),
        users=0,
        products=0,
    )
