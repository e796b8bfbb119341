"""The one table of models: name -> its settings, how it is built and learns, what it needs, what it can show."""

import difflib
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.errors import ConfigError
from emhrnn.models.em_hrnn import EMHRNN, EMHRNNConfig
from emhrnn.models.evidence import Evidence
from emhrnn.models.fasttext import FastText, FastTextConfig
from emhrnn.models.han import HAN, HANConfig, HNAttConfig
from emhrnn.models.model import DocumentModel
from emhrnn.models.nb_lr import NBLR, NBLRConfig
from emhrnn.models.row import Builder, Facts, ModelConfig, Row, network
from emhrnn.models.settings import EvidenceConfig
from emhrnn.models.tfidf import TfIdf, TfIdfConfig, TfIdfSVMConfig
from emhrnn.models.transformer import TransformerConfig, build_transformer

DEFAULT = "evidence"
PAPER = "emhrnn.paper.models"  # found by name: the product does not import the paper's other models


def build_em_hrnn(
    config: EMHRNNConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int
) -> DocumentModel:
    """The paper's network, with latent phrase ends."""
    return EMHRNN(
        config, table=table, classes=facts.classes, generator=torch.Generator().manual_seed(seed),
        vocabulary=vocabulary, rate=facts.rate,
    )  # fmt: skip


def build_evidence(
    config: EvidenceConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int
) -> DocumentModel:
    """Latent phrases that each add their own evidence."""
    return Evidence(
        config, table=table, classes=facts.classes, generator=torch.Generator().manual_seed(seed),
        vocabulary=vocabulary, several=facts.several, authors=(facts.users, facts.products),
    )  # fmt: skip


def _of_words(model: Callable[..., DocumentModel]) -> Builder:
    """Builds a model that is fitted in one go and reads word ids, not vectors."""

    def build(config: ModelConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int) -> DocumentModel:
        return model(config, vocabulary=len(vocabulary), classes=facts.classes)

    return build


HAN_PAPER = "Yang et al., NAACL 2016"

MODELS: dict[str, Row] = {
    "evidence": Row(
        config=EvidenceConfig,
        build=build_evidence,
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
            }
        },
    ),
    "em-hrnn": Row(
        config=EMHRNNConfig,
        build=build_em_hrnn,
        learns="em",
        reference="Luo and Zhu, EM-HRNN",
        shows=("words", "phrases", "sentences", "boundaries"),
    ),
    "hn-att": network(HAN, HNAttConfig, reference=HAN_PAPER, shows=("words", "sentences")),
    "hn-ave": network(partial(HAN, pooling="mean"), HANConfig, reference=HAN_PAPER),
    "hn-max": network(partial(HAN, pooling="max"), HANConfig, reference=HAN_PAPER),
    "tfidf-lr": Row(
        config=TfIdfConfig, build=_of_words(partial(TfIdf, kind="logistic")), learns="fit", reference="scikit-learn"
    ),
    "tfidf-svm": Row(
        config=TfIdfSVMConfig, build=_of_words(partial(TfIdf, kind="svm")), learns="fit", reference="scikit-learn"
    ),
    "nb-lr": Row(config=NBLRConfig, build=_of_words(NBLR), learns="fit", reference="Wang and Manning, ACL 2012"),
    "fasttext": Row(
        config=FastTextConfig,
        build=_of_words(FastText),
        learns="fit",
        reference="Joulin et al., EACL 2017",
        needs=("the extra emhrnn[fasttext]",),
    ),
    "transformer": Row(
        config=TransformerConfig,
        build=build_transformer,
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
MODELS |= import_module(f"{PAPER}.rows").ROWS
for name in ("em-hrnn", "hn-att"):
    MODELS[f"{name}+ngrams"] = import_module(f"{PAPER}.product").with_ngrams(MODELS[name])

EXPLAINING = tuple(name for name, row in MODELS.items() if row.explains)


def check_model(name: str) -> None:
    """Raise a ConfigError for a name that is not in the table; it names the nearest one that is."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"unknown model {name!r}; {hint}`emhrnn models` lists them all")


def build_model(
    config: ModelConfig, facts: Facts, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
) -> DocumentModel:
    """An untrained model with these settings.

    Raises:
        ConfigError: no model has this name.
    """
    check_model(config.name)
    return MODELS[config.name].build(config, facts, table, vocabulary, seed)
