"""The one table of models: name -> its settings, how it is built and learns, what it needs, what it can show."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.models.evidence_reader import EvidenceReader, expected_shapes, segmentation_rule
from emhrnn.models.predictor import Predictor
from emhrnn.models.row import Builder, Facts, Row, drawn_from, later
from emhrnn.models.settings import (
    EvidenceConfig,
    FastTextConfig,
    ModelConfig,
    NBLRConfig,
    TfIdfConfig,
    TfIdfSVMConfig,
    TransformerConfig,
)

DEFAULT = "evidence"
PAPER = "emhrnn.paper.models"  # found by name: the product does not import the paper's models


def build_evidence(config: EvidenceConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
    """Latent phrases that each add their own evidence."""
    return later("emhrnn.models.evidence", "Evidence")(
        config, table=table, classes=facts.classes, generator=drawn_from(seed), vocabulary=vocabulary,
        several=facts.several, authors=(facts.users, facts.products),
    )  # fmt: skip


def read_evidence(
    config: EvidenceConfig, facts: Facts, arrays: Mapping[str, np.ndarray], vocabulary: Sequence[str]
) -> Predictor:
    """A trained evidence model."""
    kinds = {name: np.int64 if name == "ngrams.keys" else np.float32 for name in arrays}
    arrays = {name: np.asarray(array, dtype=kinds[name], order="C") for name, array in arrays.items()}
    return EvidenceReader(config, arrays, several=facts.several, fixed=segmentation_rule(config, vocabulary))


def _of_words(module: str, name: str, **options: Any) -> Builder:
    """Builds a model that is fitted in one go and reads word ids, not vectors."""

    def build(config: ModelConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
        make = later(f"emhrnn.models.{module}", name, **options)
        return make(config, vocabulary=len(vocabulary), classes=facts.classes)

    return build


def _fitted(module: str, name: str, **options: Any) -> dict[str, Any]:
    """The part of a row of a model of word ids that is fitted in one go and predicts with NumPy alone. Its arrays are
    attributes by the same names."""

    def read(config: Any, facts: Facts, arrays: Mapping[str, np.ndarray], vocabulary: Sequence[str]) -> Predictor:
        make = later(f"emhrnn.models.{module}", name, torch=False, **options)
        model: Predictor = make(config, vocabulary=len(vocabulary), classes=facts.classes)
        vars(model).update(arrays)
        return model

    return {
        "build": _of_words(module, name, **options),
        "read": read,
        "shapes": later(f"emhrnn.models.{module}", "expected_shapes", torch=False),
        "learns": "fit",
    }


_OURS: dict[str, Row] = {
    "evidence": Row(
        config=EvidenceConfig,
        build=build_evidence,
        read=read_evidence,
        shapes=expected_shapes,
        learns="gradient",
        reference="this project, docs/evidence.md",
        shows=("words", "phrases", "sentences", "boundaries"),
        defaults={
            "training": {
                "epochs": 6,
                "batch_documents": 32,
                "learning_rate": 0.01,
                "decay": "linear",
                "average_epochs": 1.0,
                "metric": "loss",  # the accuracy on a few validation documents picks epochs by chance
            }
        },
    ),
    "tfidf-lr": Row(
        config=TfIdfConfig,
        **_fitted("tfidf", "TfIdf", kind="logistic"),
        reference="scikit-learn",
    ),
    "tfidf-svm": Row(
        config=TfIdfSVMConfig,
        **_fitted("tfidf", "TfIdf", kind="svm"),
        reference="scikit-learn",
    ),
    "nb-lr": Row(
        config=NBLRConfig,
        **_fitted("nb_lr", "NBLR"),
        reference="Wang and Manning, ACL 2012",
    ),
    "fasttext": Row(
        config=FastTextConfig,
        build=_of_words("fasttext", "FastText"),
        learns="fit",
        reference="Joulin et al., EACL 2017",
        needs=("the extra emhrnn[fasttext]",),
    ),
    "transformer": Row(
        config=TransformerConfig,
        build=later("emhrnn.models.transformer", "build_transformer"),
        learns="gradient",
        reference="Sun et al., CCL 2019",
        needs=("pretrained weights", "the extra emhrnn[transformers]"),
        defaults={
            "data": {"min_count": 1},  # the encoder knows rare words too
            "training": {
                "epochs": 4,
                "batch_documents": 24,
                "learning_rate": 2e-5,
                "weight_decay": 0.01,
                "warmup": 0.1,
                "decay": "linear",
                "clip": 1.0,
            },
        },
    ),
}


class _Table(Mapping[str, Row]):
    """Name -> row. The paper's rows are imported when one of them is asked for, or all: that takes 40 ms."""

    @cached_property
    def _all(self) -> dict[str, Row]:
        paper: dict[str, Row] = import_module(f"{PAPER}.rows").ROWS
        return _OURS | paper

    def __getitem__(self, name: str) -> Row:
        return _OURS[name] if name in _OURS else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


MODELS: Mapping[str, Row] = _Table()


def explaining() -> tuple[str, ...]:
    """Names of the models that `emhrnn explain` takes."""
    return tuple(name for name, row in MODELS.items() if row.explains)


def check_model(name: str) -> None:
    """Raise a ConfigError for a name that is not in the table; it names the nearest one that is."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"unknown model {name!r}; {hint}`emhrnn models` lists them all")


def build_model(config: ModelConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
    """An untrained model with these settings; `table` are its word vectors, a tensor.

    Raises:
        ConfigError: no model has this name, or torch is not installed.
    """
    check_model(config.name)
    return MODELS[config.name].build(config, facts, table, vocabulary, seed)
