"""From what the user names (a file in any format, or a prepared corpus) to the corpora that training needs."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.corpus import Columns, Corpus, TextSettings, is_corpus, prepare
from emhrnn.errors import DataError
from emhrnn.text import Limits, Vectors, Vocabulary
from emhrnn.training.config import Config, DataConfig
from emhrnn.training.state import Purpose, numpy_generator


@dataclass(frozen=True, kw_only=True)
class Named:
    """Data as named on the command line. A prepared corpus needs nothing but its path."""

    path: Path
    format: str | None = None
    columns: Columns = field(default_factory=Columns)
    split: str | None = None


def text_settings(config: DataConfig) -> TextSettings:
    limits = Limits(max_words_per_sentence=config.max_sentence_words, max_sentences=config.max_sentences)
    return TextSettings(lowercase=config.lowercase, limits=limits)


def training_corpus(
    data: Named, destination: Path, config: Config, vectors: Vectors | None, *, progress: bool
) -> Corpus:
    """The training data in the vocabulary that the model will have: the words of the data, or those of the vectors (the
    paper: any other word is unknown), or both, so that a word that is new at test time still has its vector."""
    wanted = "data" if vectors is None else config.data.vocabulary
    pretrained = None if vectors is None else Vocabulary.from_words(vectors.words)
    if is_corpus(data.path):
        corpus = Corpus.open(data.path)
    else:
        corpus = prepare(
            data.path,
            destination,
            format=data.format,
            columns=data.columns,
            split=data.split,
            vocabulary=pretrained if wanted == "vectors" else None,
            min_count=config.data.min_count,
            max_words=config.data.max_vocabulary,
            known=pretrained if wanted == "both" else None,
            text=text_settings(config.data),
            progress=progress,
        )
    if pretrained is not None and wanted == "vectors":
        return corpus.remap(pretrained)
    if pretrained is not None and wanted == "both":
        return corpus.remap(corpus.vocabulary | pretrained)
    return corpus


def other_corpus(
    data: Named,
    destination: Path,
    *,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    text: TextSettings,
    keep_empty: bool = False,
    progress: bool = True,
) -> Corpus:
    """Validation or test data in the words and classes of a model."""
    if not is_corpus(data.path):
        return prepare(
            data.path,
            destination,
            format=data.format,
            columns=data.columns,
            split=data.split,
            vocabulary=vocabulary,
            classes=classes if data.columns.labelled else None,
            text=text,
            keep_empty=keep_empty,
            progress=progress,
        )
    corpus = Corpus.open(data.path).remap(vocabulary)
    if corpus.labelled and corpus.classes != classes:
        raise DataError(
            f"{data.path} was prepared with the classes {_some(corpus.classes)}, the model has {_some(classes)}; "
            "give the raw file instead, or prepare it with the model's classes"
        )
    return corpus


def embedding_table(
    config: Config, vocabulary: Vocabulary, vectors: Vectors | None
) -> Float[Tensor, "vocabulary size"]:
    """The first value of the word vectors: pretrained ones, or small random ones."""
    generator = numpy_generator(config.training.seed, Purpose.INIT)
    if vectors is not None:
        return torch.from_numpy(vectors.lookup(vocabulary, generator=generator))
    size = config.model.embedding_size
    table = generator.normal(0, 0.1, (len(vocabulary), size)).astype(np.float32)
    return torch.from_numpy(table)


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
