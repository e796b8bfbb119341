"""What all trials share: the corpora, read and prepared once, and the word vectors."""

from dataclasses import dataclass, field
from pathlib import Path

from emhrnn.corpus import Corpus, TextSettings, prepare
from emhrnn.errors import DataError
from emhrnn.text import Vectors
from emhrnn.training.config import Config, DataConfig
from emhrnn.training.data import (
    Named,
    check_same_kind,
    embedding_table,
    in_model_words,
    other_corpus,
    prepared,
    text_settings,
    with_frequent_names,
)
from emhrnn.training.run import Run, new_run
from emhrnn.training.state import Purpose, numpy_generator

TRAIN, VALID = Path("corpus", "train"), Path("corpus", "valid")  # in the folder of the study


@dataclass(eq=False)
class Material:
    """Training data with all their words, and validation data or None: then part of the training data is held out."""

    train: Corpus
    valid: Named | None
    vectors: Vectors | None
    _ready: dict[DataConfig, tuple[Corpus, Corpus]] = field(default_factory=dict)

    def corpora(self, config: Config) -> tuple[Corpus, Corpus]:
        """The same two corpora that `emhrnn train` would use with these settings."""
        if config.data not in self._ready:
            train = in_model_words(self.train, config, self.vectors)
            if self.valid is None:
                generator = numpy_generator(config.training.seed, Purpose.SPLIT)
                self._ready[config.data] = train.split(config.data.validation, generator)
            else:
                valid = other_corpus(
                    self.valid, Path(), vocabulary=train.vocabulary, classes=train.classes, text=train.text,
                    users=train.users, products=train.products,
                )  # fmt: skip
                self._ready[config.data] = train, valid
        return with_frequent_names(config, *self._ready[config.data])

    def new_run(self, config: Config) -> Run:
        train, _ = self.corpora(config)
        table = embedding_table(config, train.vocabulary, self.vectors)
        return new_run(
            config.for_classes(len(train.classes)), train.vocabulary, train.classes, table,
            multi_label=train.multi_label, text=train.text, users=train.users, products=train.products,
        )  # fmt: skip


def gather(
    folder: Path, data: Named, valid: Named | None, config: Config, vectors: Vectors | None, *, progress: bool
) -> Material:
    """The material of a study, prepared in its folder where that has not been done."""
    train = _once(data, folder / TRAIN, config, progress=progress)
    if not train.labelled:
        raise DataError(f"{data.path} has no labels; training needs a label for every document")
    train.check_trainable()
    if valid is None:
        return Material(train, None, vectors)
    held_out = _once(valid, folder / VALID, config, like=train, progress=progress)
    if not held_out.labelled or held_out.path is None:
        raise DataError(f"{valid.path} has no labels; validation data needs a label for every document")
    check_same_kind(valid.path, held_out, multi_label=train.multi_label)
    return Material(train, Named(path=held_out.path), vectors)


def _once(data: Named, place: Path, config: Config, *, like: Corpus | None = None, progress: bool) -> Corpus:
    if place.exists():
        return Corpus.open(place, verify=False)
    corpus = prepared(data)
    if corpus is not None:
        if like is None and text_settings(config.data) not in (TextSettings(), corpus.text):
            raise DataError(
                f"{data.path} was prepared with other text settings than data.lowercase and the caps ask for; "
                "prepare it anew, or leave the settings out"
            )
        return corpus
    return prepare(
        data.path, place, format=data.format, columns=data.columns, split=data.split, progress=progress,
        text=text_settings(config.data) if like is None else like.text,
        classes=None if like is None else like.classes,
        users=None if like is None else like.users, products=None if like is None else like.products,
    )  # fmt: skip
