"""Labelled documents: from files in any usual format to ragged batches of word ids.

prepare("reviews.jsonl.gz", "reviews.corpus")       files -> a folder, in constant memory
Corpus.open("reviews.corpus")                       the folder, memory-mapped
Corpus.from_texts(texts, labels)                    the same in memory
BatchPlan(corpus.lengths, words=8000).epoch(0)      row numbers of each batch
corpus.batch(rows)                                  a Batch
TextEncoder(vocabulary, settings).encode(texts)     new texts as a Batch
"""

from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.corpus.columns import Columns
from emhrnn.corpus.dataset import Corpus
from emhrnn.corpus.encode import TextEncoder
from emhrnn.corpus.manifest import Report, is_corpus
from emhrnn.corpus.prepare import prepare
from emhrnn.corpus.readers import Source
from emhrnn.corpus.record import Record
from emhrnn.text import TextSettings

__all__ = [
    "Batch",
    "BatchPlan",
    "Columns",
    "Corpus",
    "Record",
    "Report",
    "Source",
    "TextEncoder",
    "TextSettings",
    "is_corpus",
    "prepare",
]
