"""The paper's network and its baselines, as rows of the table of models (models/table.py finds them by name)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import create_model

from emhrnn.models.row import VECTORS, Builder, Facts, Row, drawn_from, later
from emhrnn.paper.models.settings import (
    BagOfMeansConfig,
    BasisCustConfig,
    BucketsConfig,
    CMAConfig,
    CNNWordConfig,
    EMHRNNConfig,
    GRNNConfig,
    HANConfig,
    HMRNNConfig,
    HNAttConfig,
    IdsConfig,
    LSTMConfig,
    MHSRNNAttConfig,
    MHSRNNConfig,
    NetworkConfig,
    NGramsConfig,
    SSWEConfig,
)


def _model(module: str, name: str, **options: Any) -> Callable[..., Any]:
    return later(f"emhrnn.paper.models.{module}", name, **options)


def _row(*, shows: tuple[str, ...] = (), **facts: Any) -> Row:
    """A row that is explained by effects of a network, if it shows weights of words."""
    explains = later("emhrnn.paper.explanations.networks", "network_findings") if "words" in shows else None
    return Row(shows=shows, findings=explains, **facts)


def _network(model: Callable[..., Any], config: type[NetworkConfig], **facts: Any) -> Row:
    """A model that learns by gradient descent and is built from its settings, word vectors and classes alone; where its
    settings say so, from the numbers of users and products, too."""
    reads_ids = issubclass(config, IdsConfig)

    def build(config: NetworkConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
        ids = {"users": facts.users, "products": facts.products} if reads_ids else {}
        return model(config, table=table, classes=facts.classes, generator=drawn_from(seed), **ids)

    of_ids = {"needs": ("user and product ids",), "shows": ("words", "sentences")} if reads_ids else {}
    return _row(config=config, build=build, learns="gradient", **of_ids, **facts)


def _build_em_hrnn(config: EMHRNNConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
    """The paper's network, with latent phrase ends."""
    return _model("em_hrnn", "EMHRNN")(
        config, table=table, classes=facts.classes, generator=drawn_from(seed), vocabulary=vocabulary, rate=facts.rate
    )


def with_ngrams(row: Row) -> Row:
    """The row of a network with n-grams beside it: it has the network's settings and `buckets`."""
    name, bases = row.config.__name__.removesuffix("Config"), (BucketsConfig, row.config)
    settings = create_model(f"{name}NGramsConfig", __base__=bases, __doc__=row.config.__doc__)
    build = partial(_model("product", "build_product"), row.build)
    return replace(row, config=settings, build=build)  # type: ignore[arg-type]  # mypy does not see the bases


def _fitted(model: Callable[..., Any]) -> Builder:
    """Builds a model that is fitted in one go from word vectors."""
    return lambda config, facts, table, vocabulary, seed: model(config, table=table, classes=facts.classes)


HAN_PAPER = "Yang et al., NAACL 2016"
ZHANG_PAPER = "Zhang et al., NIPS 2015"
TANG_PAPER = "Tang, Qin and Liu, EMNLP 2015"
MHS_PAPER = "Luo and Zhu, arXiv 2106.02562"

ROWS: dict[str, Row] = {
    "em-hrnn": _row(
        config=EMHRNNConfig,
        build=_build_em_hrnn,
        learns="em",
        reference="Luo and Zhu, EM-HRNN",
        shows=("words", "phrases", "sentences", "boundaries"),
        remarks=later("emhrnn.paper.em.objective", "phrase_remarks"),
    ),
    "hn-att": _network(_model("han", "HAN"), HNAttConfig, reference=HAN_PAPER, shows=("words", "sentences")),
    "hn-ave": _network(_model("han", "HAN", pooling="mean"), HANConfig, reference=HAN_PAPER),
    "hn-max": _network(_model("han", "HAN", pooling="max"), HANConfig, reference=HAN_PAPER),
    "hm-rnn": _network(
        _model("hm_rnn", "HMRNN"), HMRNNConfig, reference="Chung, Ahn and Bengio, ICLR 2017", shows=("boundaries",)
    ),
    "mhs-rnn": _network(_model("mhs_rnn", "MHSRNN"), MHSRNNConfig, reference=MHS_PAPER, shows=("boundaries",)),
    "mhs-rnn-att": _network(
        _model("mhs_rnn", "MHSRNN"),
        MHSRNNAttConfig,
        reference=MHS_PAPER,
        shows=("words", "phrases", "sentences", "boundaries"),
    ),
    "lstm": _network(_model("lstm", "MeanLSTM"), LSTMConfig, reference=ZHANG_PAPER),
    "cnn-word": _network(
        _model("cnn_word", "CNNWord"),
        CNNWordConfig,
        reference=ZHANG_PAPER,
        # Deep and not normalised: it leaves the start after hundreds of small steps. Zhang's sizes want 0.0003 and 8.
        defaults={"training": {"learning_rate": 0.001, "batch_documents": 16}},
    ),
    "conv-grnn": _network(_model("grnn", "GRNN", sentences="convolution"), GRNNConfig, reference=TANG_PAPER),
    "lstm-grnn": _network(_model("grnn", "GRNN", sentences="lstm"), GRNNConfig, reference=TANG_PAPER),
    "cma": _network(_model("cma", "CMA"), CMAConfig, reference="Ma et al., IJCNLP 2017"),
    "basis-cust": _network(_model("basis_cust", "BasisCust"), BasisCustConfig, reference="Kim et al., TACL 2019"),
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
ROWS |= {f"{name}+ngrams": with_ngrams(ROWS[name]) for name in ("em-hrnn", "hn-att")}
