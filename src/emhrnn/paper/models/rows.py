"""The paper's network and its baselines: their settings, and their rows of the table of models (models/table.py finds
them by name). Reading them takes no torch: a row imports its model when that is built."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field, create_model, model_validator

from emhrnn.layers.native.library import CellName
from emhrnn.models.row import VECTORS, Builder, Facts, Row, drawn_from, later
from emhrnn.models.segmentation import check_rule
from emhrnn.models.settings import ModelConfig


class NetworkConfig(ModelConfig):
    """What all networks on word vectors have."""

    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    tune_embedding: bool = Field(True, description="train the word vectors, too")
    dropout: float = Field(0.3, ge=0, lt=1, description="share of inputs and states that a training step sets to 0")


class IdsConfig(NetworkConfig):
    """What networks have that read who wrote a document, and about what."""

    ids: bool = Field(True, description="read users and products; false = the text alone")
    id_size: int = Field(64, ge=1, description="size of the vector of a user or product")
    id_count: int = Field(5, ge=1, description="users and products of fewer training documents are read as the average")


class EMHRNNConfig(NetworkConfig):
    """Settings of em-hrnn. The paper's layers all have 50 units."""

    word_size: int = Field(50, ge=1, description="units of the word layer, in each direction")
    phrase_size: int = Field(50, ge=1, description="units of the phrase layer")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer, in each direction")
    attention_size: int = Field(50, ge=1, description="units of the attention layers")
    bidirectional_words: bool = Field(True, description="read the words of a sentence in both directions")
    cell: CellName = Field("gru", description="of the recurrent layers (the paper: lstm)")
    skip: bool = Field(True, description="a phrase's vector reaches its sentence beside its state")
    pauses: bool = Field(True, description="phrases tend to end where readers pause")
    segmentation: str = Field(
        "learned", description="learned, or an ablation: none, words, punctuation, random, every-K"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "EMHRNNConfig":
        if self.segmentation != "learned":
            check_rule(self.segmentation)
        return self


# The paper's network (docs/paper.md 1.8).
PAPER_NETWORK = EMHRNNConfig(
    tune_embedding=False, bidirectional_words=False, cell="lstm", skip=False, pauses=False, dropout=0.0
)


# The paper's exact settings (docs/paper.md 1.8), the preset `paper`. The learning rate is to be picked on validation;
# with a rate of 1/2 the indicator's bias begins at 0.
PRESET: dict[str, dict[str, Any]] = {
    "data": {"vocabulary": "vectors"},
    "model": PAPER_NETWORK.model_dump(exclude_unset=True),
    "em": {
        "estep": "local",
        "focus": False,
        "impute": "prior",
        "hold_rate": False,
        "rate": 0.5,
        "warmup_epochs": 0,
        "theta": "all",
        "pace": 1.0,
    },
    "training": {
        "batch_documents": 64,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "weight_decay": 0.0,
        "decay": "none",
    },
}


class FlatConfig(NetworkConfig):
    """Settings of lstm."""

    word_size: int = Field(50, ge=1, description="units of the word layer")


class HierarchyConfig(FlatConfig):
    """Settings of hn-ave, hn-max, conv-grnn, lstm-grnn and mhs-rnn."""

    word_size: int = Field(50, ge=1, description="units of the word layer (hn-att, -ave, -max: in each direction)")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer, in each direction")


class AttentionConfig(HierarchyConfig):
    """Settings of hn-att and mhs-rnn-att."""

    attention_size: int = Field(50, ge=1, description="units of the attention layers")


class HMRNNConfig(FlatConfig):
    """Settings of hm-rnn."""

    layers: int = Field(3, ge=2, description="recurrent layers")


class BagOfMeansConfig(ModelConfig):
    """Settings of bag-of-means."""

    embedding_size: int = Field(100, ge=1, description="size of word vectors; those that are given decide")
    means: int = Field(5000, ge=2, description="clusters of word vectors")
    C: float = Field(10.0, gt=0, description="inverse strength of the regularisation")


class BasisCustConfig(IdsConfig):
    """Settings of basis-cust."""

    word_size: int = Field(50, ge=1, description="units of the word layer, in each direction")
    attention_size: int = Field(50, ge=1, description="units of the attention layer")
    bases: int = Field(4, ge=1, description="basis vectors that users and products mix")


class CMAConfig(IdsConfig, AttentionConfig):
    """Settings of cma."""


class CNNWordConfig(NetworkConfig):
    """Settings of cnn-word."""

    features: int = Field(64, ge=1, description="of each convolution; Zhang's networks have 256 and 1024")
    dense_size: int = Field(256, ge=1, description="units of the dense layers; Zhang's networks have 1024 and 2048")
    length: int = Field(231, ge=123, description="words it reads of a document")


class SSWEConfig(ModelConfig):
    """Settings of sswe-svm."""

    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    fit_epochs: int = Field(3, ge=0, description="passes over the data that train the word vectors")
    C: float = Field(0.01, gt=0, description="inverse strength of the regularisation")


class BucketsConfig(ModelConfig):
    """Settings of n-grams beside a network."""

    buckets: int = Field(200_000, ge=1, description="hash buckets of word pairs; fewer over 250 classes")


class NGramsConfig(BucketsConfig):
    """Settings of ngrams."""

    dropout: float = Field(0.3, ge=0, lt=1, description="share of places that a training step leaves out")


def _model(module: str, name: str, **options: Any) -> Callable[..., Any]:
    return later(f"emhrnn.paper.models.{module}", name, **options)


def _row(*, shows: tuple[str, ...] = (), **facts: Any) -> Row:
    """A row that is explained by effects of a network, if it shows weights of words."""
    explains = later("emhrnn.paper.explanations.networks", "network_findings") if "words" in shows else None
    return Row(shows=shows, findings=explains, **facts)


def _network(model: Callable[..., Any], config: type[NetworkConfig], *, learns: str = "gradient", **facts: Any) -> Row:
    """A model that is built from its settings, word vectors and classes; where its settings say so, from the numbers
    of users and products, too; where it learns phrase ends, from the words and their rate."""
    reads_ids = issubclass(config, IdsConfig)

    def build(config: NetworkConfig, facts: Facts, table: Any, vocabulary: Sequence[str], seed: int) -> Any:
        more: dict[str, Any] = {"users": facts.users, "products": facts.products} if reads_ids else {}
        if learns == "em":
            more = {"vocabulary": vocabulary, "rate": facts.rate}
        return model(config, table=table, classes=facts.classes, generator=drawn_from(seed), **more)

    of_ids = {"needs": ("user and product ids",), "shows": ("words", "sentences")} if reads_ids else {}
    return _row(config=config, build=build, learns=learns, **of_ids, **facts)


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
    "em-hrnn": _network(
        _model("em_hrnn", "EMHRNN"),
        EMHRNNConfig,
        learns="em",
        reference="Luo and Zhu, EM-HRNN",
        shows=("words", "phrases", "sentences", "boundaries"),
        remarks=later("emhrnn.paper.em.objective", "phrase_remarks"),
    ),
    "hn-att": _network(
        _model("hierarchical", "HAN"), AttentionConfig, reference=HAN_PAPER, shows=("words", "sentences")
    ),
    "hn-ave": _network(_model("hierarchical", "HAN", pooling="mean"), HierarchyConfig, reference=HAN_PAPER),
    "hn-max": _network(_model("hierarchical", "HAN", pooling="max"), HierarchyConfig, reference=HAN_PAPER),
    "hm-rnn": _network(
        _model("hm_rnn", "HMRNN"), HMRNNConfig, reference="Chung, Ahn and Bengio, ICLR 2017", shows=("boundaries",)
    ),
    "mhs-rnn": _network(_model("mhs_rnn", "MHSRNN"), HierarchyConfig, reference=MHS_PAPER, shows=("boundaries",)),
    "mhs-rnn-att": _network(
        _model("mhs_rnn", "MHSRNN"),
        AttentionConfig,
        reference=MHS_PAPER,
        shows=("words", "phrases", "sentences", "boundaries"),
    ),
    "lstm": _network(_model("flat", "MeanLSTM"), FlatConfig, reference=ZHANG_PAPER),
    "cnn-word": _network(
        _model("flat", "CNNWord"),
        CNNWordConfig,
        reference=ZHANG_PAPER,
        # Deep and not normalised: it leaves the start after hundreds of small steps. Zhang's sizes want 0.0003 and 8.
        defaults={"training": {"learning_rate": 0.001, "batch_documents": 16}},
    ),
    "conv-grnn": _network(
        _model("hierarchical", "GRNN", sentences="convolution"), HierarchyConfig, reference=TANG_PAPER
    ),
    "lstm-grnn": _network(_model("hierarchical", "GRNN", sentences="lstm"), HierarchyConfig, reference=TANG_PAPER),
    "cma": _network(_model("authors", "CMA"), CMAConfig, reference="Ma et al., IJCNLP 2017"),
    "basis-cust": _network(_model("authors", "BasisCust"), BasisCustConfig, reference="Kim et al., TACL 2019"),
    "bag-of-means": Row(
        config=BagOfMeansConfig,
        build=_fitted(_model("flat", "BagOfMeans")),
        learns="fit",
        reference=ZHANG_PAPER,
        needs=(VECTORS,),
    ),
    "ngrams": Row(
        config=NGramsConfig, build=_model("product", "build_ngrams"), learns="gradient", reference="this project"
    ),
    "sswe-svm": Row(
        config=SSWEConfig, build=_fitted(_model("flat", "SSWE")), learns="fit", reference="Tang et al., ACL 2014"
    ),
}
ROWS |= {f"{name}+ngrams": with_ngrams(ROWS[name]) for name in ("em-hrnn", "hn-att")}
