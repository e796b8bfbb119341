"""Every row of the table can learn: 32 demo reviews by heart, and from some hundreds enough to beat the majority. It
explains if the table says so."""

import contextlib
import functools
from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus import Corpus
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import explain_texts
from emhrnn.models.table import MODELS
from emhrnn.training.config import make_config
from emhrnn.training.data import embedding_table
from emhrnn.training.progress import Epoch, TrainingContext
from emhrnn.training.run import Run, new_run
from emhrnn.training.train import fit
from emhrnn.training.validation import validate_epoch
from tests.models.tiny_bert import make_bert

SMALL = (
    "model.embedding_size=16", "model.word_size=16", "model.phrase_size=16", "model.sentence_size=16",
    "model.attention_size=16", "model.features=16", "model.dense_size=32", "model.length=123", "model.layers=2",
    "model.means=200", "model.dropout=0", "model.ids=false", "em.blocks=2", "em.block_length=2", "em.warmup_epochs=0",
    "training.decay=none", "training.weight_decay=0",
)  # fmt: skip
BY_HEART = (*SMALL, "training.epochs=80", "training.patience=80", "training.learning_rate=0.01", "model.C=1000")
BY_HEART += ("training.batch_documents=8",)
SOME = (*SMALL, "training.epochs=8", "training.patience=8", "training.learning_rate=0.005")
SOME += ("training.batch_documents=8",)
DEEP = (*SOME, "training.epochs=12", "training.patience=12", "training.learning_rate=0.003")  # nine layers, no norms
OWN = {  # settings of a row, in both tests
    "fasttext": ("model.fit_epochs=200",),
    "sswe-svm": ("model.embedding_size=100", "model.fit_epochs=20"),
    "transformer": ("training.learning_rate=0.002", "training.warmup=0"),
}


class LearnedError(Exception):
    """Raised to stop: nothing is left to learn."""


@functools.cache
def reviews(count: int, seed: int, like: Corpus | None = None) -> Corpus:
    drawn = list(generate_reviews(count, seed))
    same = {} if like is None else {"vocabulary": like.vocabulary, "classes": like.classes}
    return Corpus.from_texts([review.text for review in drawn], [review.label for review in drawn], **same)


def new(name: str, corpus: Corpus, settings: tuple[str, ...], folder: Path) -> Run:
    own = OWN.get(name, ())
    if name == "fasttext":
        pytest.importorskip("fasttext")
    if name == "transformer":
        pytest.importorskip("transformers", reason="needs the extra `transformers`")
        own += (f"model.pretrained={make_bert(folder, corpus.vocabulary.words[1:], positions=200)}",)
    config = make_config(assignments=[f"model.name={name}", *own], shared=settings)
    table = embedding_table(config, corpus, None)
    return new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)


def fit_until(run: Run, train: Corpus, valid: Corpus, accuracy: float) -> None:
    """Train up to the first epoch with this validation accuracy, which must come."""

    def stop(epoch: Epoch) -> None:
        if epoch.valid["accuracy"] >= accuracy:
            raise LearnedError

    with pytest.raises(LearnedError):
        fit(run, train, valid, TrainingContext(progress=False, on_epoch=stop))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_learns_32_documents_by_heart(name: str, tmp_path: Path) -> None:
    corpus = reviews(32, seed=0)
    run = new(name, corpus, BY_HEART, tmp_path)
    fit_until(run, corpus, corpus, 1.0)
    assert validate_epoch(run, corpus).accuracy == 1


@pytest.mark.parametrize("name", sorted(name for name, row in MODELS.items() if row.learns != "fit"))
def test_explains_or_says_that_it_cannot(name: str, tmp_path: Path) -> None:
    run = new(name, reviews(8, seed=0), SMALL, tmp_path)
    with contextlib.nullcontext() if MODELS[name].explains else pytest.raises(ConfigError, match="to explain with"):
        assert explain_texts(run, ["The room was old. We liked it."])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MODELS))
def test_beats_the_majority(name: str, tmp_path: Path) -> None:
    """The transformer begins from nothing, as the other rows do: it is random, and pretrained on no text."""
    corpus = reviews(800 if name == "sswe-svm" else 400, seed=0)  # its vectors begin from nothing, too
    test = reviews(200, seed=7, like=corpus)
    run = new(name, corpus, DEEP if name == "cnn-word" else SOME, tmp_path)
    assert test.labels is not None
    wanted = np.bincount(test.labels).max() / len(test) + 0.03
    fit_until(run, corpus, test, wanted)
    assert validate_epoch(run, test).accuracy >= wanted
