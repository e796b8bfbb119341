"""`train`: from named data to a run folder. The command line and the demo only call this."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emhrnn.corpus import Corpus
from emhrnn.errors import ConfigError, DataError
from emhrnn.files import check_free, write_json
from emhrnn.text import Vectors
from emhrnn.training.config import Config
from emhrnn.training.data import Named, embedding_table, other_corpus, training_corpus
from emhrnn.training.fit import Fitted, fit
from emhrnn.training.history import Epoch
from emhrnn.training.run import METRICS, Run, describe, new_run
from emhrnn.training.state import Purpose, numpy_generator


@dataclass(frozen=True, eq=False)
class Trained:
    run: Run
    fitted: Fitted
    train: Corpus
    valid: Corpus


def train(
    data: Named,
    out: Path,
    *,
    config: Config,
    valid: Named | None = None,
    vectors: Vectors | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Trained:
    """Prepare the data, train, and leave a complete run folder at `out`."""
    if config.model.embedding_size != 100 and vectors is not None and vectors.size != config.model.embedding_size:
        raise ConfigError(
            f"model.embedding_size is {config.model.embedding_size}, the vectors have {vectors.size}; leave it out"
        )
    check_free(out)
    corpus = training_corpus(data, out / "corpus" / "train", config, vectors, progress=progress)
    if not corpus.labelled:
        raise DataError(f"{data.path} has no labels; training needs a label for every document")
    corpus.check_trainable()
    if valid is None:
        generator = numpy_generator(config.training.seed, Purpose.SPLIT)
        training, validation = corpus.split(config.data.validation, generator)
    else:
        training = corpus
        validation = other_corpus(
            valid, out / "corpus" / "valid",
            vocabulary=corpus.vocabulary, classes=corpus.classes, text=corpus.text, progress=progress,
        )  # fmt: skip
        if not validation.labelled:
            raise DataError(f"{valid.path} has no labels; validation data needs a label for every document")
    table = embedding_table(config, corpus.vocabulary, vectors)
    run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=corpus.multi_label, text=corpus.text)
    describe(
        out,
        run,
        data={
            "train": {"source": str(data.path), "documents": len(training), "words": int(training.lengths.sum())},
            "valid": {
                "source": str((valid or data).path),
                "documents": len(validation),
                "words": int(validation.lengths.sum()),
            },
        },
        command=shlex.join(sys.argv),
    )
    fitted = fit(run, training, validation, folder=out, progress=progress, on_epoch=on_epoch)
    write_json(
        out / METRICS,
        {
            "best_epoch": fitted.best.epoch,
            "epochs": len(fitted.epochs),
            "seconds": sum(epoch.seconds for epoch in fitted.epochs),
            "words_per_second": float(np.median([epoch.words_per_second for epoch in fitted.epochs])),
            "valid": fitted.scores.to_dict(),
        },
    )
    return Trained(run, fitted, training, validation)
