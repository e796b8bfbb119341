"""Document classification that shows which sentence, which phrase and which word decided.

import emhrnn

trained = emhrnn.train("reviews.csv", "run")                  # a file -> a run folder
model = emhrnn.load("run")                                    # a run folder -> predict, predict_proba, explain
print(model.explain("The room was not what we had hoped for."))

Everything is imported when it is first used, so that `import emhrnn` takes no time and no torch.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from emhrnn.version import __version__

# Some virtual machines advertise AMX without its palette leaf: any bf16 matrix product of oneDNN then dies with SIGILL,
# so a user's autocast would kill the process. oneDNN reads it at its first operation.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# Threads of OpenMP that wait spin 300,000 rounds by default, and take the core from the thread they wait for if other
# programs are busy, too: training is then ten times slower. OpenMP reads it when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

if TYPE_CHECKING:
    from emhrnn.api import load, train
    from emhrnn.corpus import Corpus, prepare
    from emhrnn.estimator import DocumentClassifier, EMHRNNClassifier
    from emhrnn.explain.explanation import Explanation
    from emhrnn.text import Document, read_document

__all__ = [
    "Corpus",
    "Document",
    "DocumentClassifier",
    "EMHRNNClassifier",
    "Explanation",
    "__version__",
    "load",
    "prepare",
    "read_document",
    "train",
]

_HOME = {
    "Corpus": "emhrnn.corpus",
    "Document": "emhrnn.text",
    "DocumentClassifier": "emhrnn.estimator",
    "EMHRNNClassifier": "emhrnn.estimator",
    "Explanation": "emhrnn.explain.explanation",
    "load": "emhrnn.api",
    "prepare": "emhrnn.corpus",
    "read_document": "emhrnn.text",
    "train": "emhrnn.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'emhrnn' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
