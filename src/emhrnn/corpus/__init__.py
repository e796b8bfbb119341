"""Labelled documents: from files in any usual format to ragged batches of word ids.

prepare("reviews.jsonl.gz", "reviews.corpus")       files -> a folder, in constant memory
Corpus.open("reviews.corpus")                       the folder, memory-mapped
Corpus.from_texts(texts, labels)                    the same in memory
BatchPlan(corpus.lengths, words=8000)               .batches(generator): row numbers of each batch
corpus.batch(rows)                                  a Batch
TextEncoder(vocabulary, settings).encode(texts)     new texts as a Batch
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emhrnn.corpus.batch import Batch as Batch
    from emhrnn.corpus.batch import BatchPlan as BatchPlan
    from emhrnn.corpus.dataset import Corpus as Corpus
    from emhrnn.corpus.encode import TextEncoder as TextEncoder
    from emhrnn.corpus.preparation import prepare as prepare
    from emhrnn.corpus.readers.source import Source as Source
    from emhrnn.corpus.record import Columns as Columns
    from emhrnn.corpus.record import Record as Record
    from emhrnn.corpus.store import Report as Report
    from emhrnn.corpus.store import is_corpus as is_corpus
    from emhrnn.text import TextSettings as TextSettings

_HOME = {
    "Batch": "emhrnn.corpus.batch",
    "BatchPlan": "emhrnn.corpus.batch",
    "Columns": "emhrnn.corpus.record",
    "Corpus": "emhrnn.corpus.dataset",
    "Record": "emhrnn.corpus.record",
    "Report": "emhrnn.corpus.store",
    "Source": "emhrnn.corpus.readers.source",
    "TextEncoder": "emhrnn.corpus.encode",
    "TextSettings": "emhrnn.text",
    "is_corpus": "emhrnn.corpus.store",
    "prepare": "emhrnn.corpus.preparation",
}


def __getattr__(name: str) -> Any:
    """Imported when it is first used: reading new texts takes no Arrow."""
    if name not in _HOME:
        raise AttributeError(f"module 'emhrnn.corpus' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
