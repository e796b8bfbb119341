"""The paper's other baselines, and n-grams, as rows of the table of models (models/table.py finds them by name)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import create_model

from emhrnn.models.row import VECTORS, Builder, Facts, Row, drawn_from, later, network
from emhrnn.models.settings import IdsConfig
from emhrnn.paper.models.settings import (
    BagOfMeansConfig,
    BasisCustConfig,
    BucketsConfig,
    CMAConfig,
    CNNWordConfig,
    GRNNConfig,
    HMRNNConfig,
    LSTMConfig,
    MHSRNNAttConfig,
    MHSRNNConfig,
    NGramsConfig,
    SSWEConfig,
)


def _model(module: str, name: str, **options: Any) -> Callable[..., Any]:
    return later(f"emhrnn.paper.models.{module}", name, **options)


def _with_ids(model: Callable[..., Any], config: type[IdsConfig], **facts: Any) -> Row:
    """A network that reads users and products."""

    def build(config: IdsConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
        return model(
            config, table=table, classes=facts.classes, generator=drawn_from(seed),
            users=facts.users, products=facts.products,
        )  # fmt: skip

    shows = ("words", "sentences")
    return Row(config=config, build=build, learns="gradient", needs=("user and product ids",), shows=shows, **facts)


def with_ngrams(row: Row) -> Row:
    """The row of a network with n-grams beside it: it has the network's settings and `buckets`."""
    name, bases = row.config.__name__.removesuffix("Config"), (BucketsConfig, row.config)
    settings = create_model(f"{name}NGramsConfig", __base__=bases, __doc__=row.config.__doc__)
    build = partial(_model("product", "build_product"), row.build)
    return replace(row, config=settings, build=build)  # type: ignore[arg-type]  # mypy does not see the bases


def _fitted(model: Callable[..., Any]) -> Builder:
    """Builds a model that is fitted in one go from word vectors."""
    return lambda config, facts, table, vocabulary, seed: model(config, table=table, classes=facts.classes)


ZHANG_PAPER = "Zhang et al., NIPS 2015"
TANG_PAPER = "Tang, Qin and Liu, EMNLP 2015"
MHS_PAPER = "Luo and Zhu, arXiv 2106.02562"

ROWS: dict[str, Row] = {
    "hm-rnn": network(
        _model("hm_rnn", "HMRNN"), HMRNNConfig, reference="Chung, Ahn and Bengio, ICLR 2017", shows=("boundaries",)
    ),
    "mhs-rnn": network(_model("mhs_rnn", "MHSRNN"), MHSRNNConfig, reference=MHS_PAPER, shows=("boundaries",)),
    "mhs-rnn-att": network(
        _model("mhs_rnn", "MHSRNN"),
        MHSRNNAttConfig,
        reference=MHS_PAPER,
        shows=("words", "phrases", "sentences", "boundaries"),
    ),
    "lstm": network(_model("lstm", "MeanLSTM"), LSTMConfig, reference=ZHANG_PAPER),
    "cnn-word": network(
        _model("cnn_word", "CNNWord"),
        CNNWordConfig,
        reference=ZHANG_PAPER,
        # Deep and not normalised: it leaves the start after hundreds of small steps. Zhang's sizes want 0.0003 and 8.
        defaults={"training": {"learning_rate": 0.001, "batch_documents": 16}},
    ),
    "conv-grnn": network(_model("grnn", "GRNN", sentences="convolution"), GRNNConfig, reference=TANG_PAPER),
    "lstm-grnn": network(_model("grnn", "GRNN", sentences="lstm"), GRNNConfig, reference=TANG_PAPER),
    "cma": _with_ids(_model("cma", "CMA"), CMAConfig, reference="Ma et al., IJCNLP 2017"),
    "basis-cust": _with_ids(_model("basis_cust", "BasisCust"), BasisCustConfig, reference="Kim et al., TACL 2019"),
    "bag-of-means": Row(
        config=BagOfMeansConfig,
        build=_fitted(_model("bag_of_means", "BagOfMeans")),
        learns="fit",
        reference=ZHANG_PAPER,
        needs=(VECTORS,),
    ),
    "ngrams": Row(
        config=NGramsConfig, build=_model("product", "build_ngrams"), learns="gradient", reference="this project"
    ),
    "sswe-svm": Row(
        config=SSWEConfig, build=_fitted(_model("sswe", "SSWE")), learns="fit", reference="Tang et al., ACL 2014"
    ),
}
