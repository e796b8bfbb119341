"""The one table of systems: name -> how it is built and learns, what it needs, what it can show and who wrote it."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from emhrnn.errors import ConfigError
from emhrnn.models.basis_cust import BasisCust
from emhrnn.models.cma import CMA
from emhrnn.models.cnn_word import CNNWord
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.em_hrnn_levels import EMHRNNLevels, UpperLevel
from emhrnn.models.evidence import Evidence
from emhrnn.models.grnn import GRNN
from emhrnn.models.han import HAN
from emhrnn.models.hm_rnn import HMRNN
from emhrnn.models.lstm import MeanLSTM
from emhrnn.models.mhs_rnn import MHSRNN
from emhrnn.models.segmentation import PAPER_RATE, rule


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What a model needs to know to be built; each takes what it uses."""

    classes: int
    several: bool = False  # labels of a document
    word_size: int = 50
    phrase_size: int = 50
    sentence_size: int = 50
    attention_size: int = 50
    bidirectional_words: bool = False
    cell: Literal["lstm", "gru"] = "lstm"  # em-hrnn
    skip: bool = False  # em-hrnn
    ngrams: bool = False  # em-hrnn
    pauses: bool = False  # em-hrnn
    restart: bool = False  # em-hrnn
    tune_embedding: bool = False
    dropout: float = 0.0
    segmentation: str = "learned"
    rate: float = PAPER_RATE
    levels: int = 1  # em-hrnn
    upper_rate: float = 0.5  # em-hrnn: share of phrases that end a group, for levels above the first
    longest: int = 6  # evidence: most words of a phrase
    counts: bool = True  # evidence
    tables: bool = True  # evidence
    encoder_size: int = 32  # evidence: 0 for none
    presence: float = 0.5  # evidence
    smoothing: float = 1.0  # evidence
    least_documents: int = 2  # evidence
    table_documents: int = 10  # evidence
    megabytes: float = 200.0  # evidence
    sentence_weights: int = 0  # evidence
    layers: int = 3  # hm-rnn
    features: int = 64  # cnn-word: of each convolution
    dense_size: int = 256  # cnn-word
    length: int = 231  # cnn-word: words it reads
    users: int = 0  # cma, basis-cust, evidence with ids: how many the training data have
    products: int = 0
    ids: bool = True  # cma, basis-cust, evidence: false is the same model without ids
    id_size: int = 64
    bases: int = 4  # basis-cust
    customize: str = "linear"  # basis-cust
    means: int = 5000  # bag-of-means
    max_features: int = 200_000  # tfidf-*, nb-lr: most n-grams
    buckets: int = 200_000  # fasttext, em-hrnn with ngrams: of word pairs
    fit_epochs: int | None = None  # sswe-svm, fasttext: passes over the data; none = the model's own
    C: float | None = None  # linear classifiers: inverse strength of the regularisation; none = the model's own
    pretrained: str = ""  # transformer: folder, or name in the local cache
    encoder: str = ""  # transformer: folder in a run with the rest of the encoder; the weights are the run's
    frozen: bool = False  # transformer: only fit a linear head
    head: int = 128  # transformer: word pieces it reads from the start, and the end, of a document
    tail: int = 382
    pooling: Literal["cls", "mean"] | None = None  # transformer; none: the mean if frozen, else [CLS]
    layer_decay: float = 0.95  # transformer: learning rate of a layer, as a share of the one above


Builder = Callable[[Sizes, Tensor, Sequence[str], int], nn.Module]  # sizes, word vectors, vocabulary, seed


@dataclass(frozen=True, kw_only=True)
class Row:
    """A system. `learns` by EM, by gradient descent or by a fit in one go (models/fitting.py)."""

    build: Builder
    learns: Literal["em", "gradient", "fit"]
    reference: str
    needs: tuple[str, ...] = ()  # beyond text and labels: word vectors, ids, pretrained weights, the fastText library
    shows: tuple[str, ...] = ()  # weights it gives: words, phrases, sentences; boundaries
    reads: tuple[str, ...]  # settings of the section `model`; all others are nothing to it
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # its own defaults, by section
    undrawn: Mapping[str, Any] = field(default_factory=dict)  # settings of `model` with which no seed matters

    def draws(self, settings: Mapping[str, Any]) -> bool:
        """Whether another seed may give another model with these settings of the section `model`."""
        return not (self.undrawn and self.undrawn.items() <= settings.items())

    @property
    def explains(self) -> bool:
        """`emhrnn explain` needs weights of words and sentences."""
        return "words" in self.shows

    def to_dict(self) -> dict[str, Any]:
        facts = asdict(self)
        del facts["build"]
        return facts


COMMON = ("embedding_size", "tune_embedding", "dropout")  # settings behind what `_common` gives


def _common(sizes: Sizes, table: Tensor, seed: int) -> dict[str, Any]:
    """What every model that learns by gradient descent takes."""
    return {
        "table": table,
        "classes": sizes.classes,
        "generator": torch.Generator().manual_seed(seed),
        "tune_embedding": sizes.tune_embedding,
        "dropout": sizes.dropout,
    }


def _given(**settings: int | float | None) -> dict[str, Any]:
    """Those that are set; a model's own default stands for the rest."""
    return {name: value for name, value in settings.items() if value is not None}


def build_em_hrnn(
    sizes: Sizes, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
) -> EMHRNN | EMHRNNLevels:
    common = _common(sizes, table, seed)
    common |= {
        "phrase_size": sizes.phrase_size,
        "sentence_size": sizes.sentence_size,
        "attention_size": sizes.attention_size,
        "cell": sizes.cell,
    }
    first = EMHRNN(
        **common,
        word_size=sizes.word_size,
        bidirectional_words=sizes.bidirectional_words,
        skip=sizes.skip and sizes.levels == 1,  # older runs say true and mean false where there are several
        ngrams=sizes.buckets if sizes.ngrams and sizes.levels == 1 else 0,
        pauses=vocabulary if sizes.pauses and sizes.levels == 1 else (),
        restart=sizes.restart,
        rate=sizes.rate,
        rule=None if sizes.segmentation == "learned" else rule(sizes.segmentation, vocabulary, sizes.rate),
    )
    if sizes.levels == 1:
        return first
    del common["table"], common["tune_embedding"]
    size = sizes.word_size * (1 + sizes.bidirectional_words)  # of the first level's phrase vectors
    uppers = [
        UpperLevel(**common, size=below, word_size=sizes.phrase_size, rate=sizes.upper_rate)
        for below in (size, *[sizes.phrase_size] * (sizes.levels - 2))
    ]
    return EMHRNNLevels(first, uppers)


OVERLAPPING = "overlapping"  # a segmentation that is none: all candidate phrases of evidence, as a bag


def build_evidence(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    fixed = sizes.segmentation not in ("learned", OVERLAPPING)
    return Evidence(
        table=table,
        classes=sizes.classes,
        generator=torch.Generator().manual_seed(seed),
        longest=sizes.longest,
        counted=sizes.counts,
        tables=sizes.tables,
        encoder_size=sizes.encoder_size,
        presence=sizes.presence,
        pauses=vocabulary if sizes.pauses else (),
        several=sizes.several,
        dropout=sizes.dropout,
        least=sizes.least_documents,
        smoothing=sizes.smoothing,
        table_documents=sizes.table_documents,
        megabytes=sizes.megabytes,
        sentence_weights=sizes.sentence_weights,
        authors=(sizes.users, sizes.products) if sizes.ids else None,
        rule=rule(sizes.segmentation, vocabulary, sizes.rate) if fixed else None,
        overlapping=sizes.segmentation == OVERLAPPING,
    )


def _gradient(
    model: type[nn.Module],
    names: Sequence[str],
    *,
    fixed: Mapping[str, Any] | None = None,
    reads: Sequence[str] = (),
    **facts: Any,
) -> Row:
    """A model that learns by gradient descent and takes these sizes; `reads` are settings of its data."""

    def build(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
        chosen = {name: getattr(sizes, name) for name in names}
        return model(**_common(sizes, table, seed), **chosen, **(fixed or {}))

    return Row(build=build, learns="gradient", reads=(*COMMON, *names, *reads), **facts)


# The rest are imported when they are built: scikit-learn and transformers take seconds to load.


def build_bag_of_means(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models.bag_of_means import BagOfMeans

    return BagOfMeans(table=table, classes=sizes.classes, means=sizes.means, **_given(C=sizes.C))


def build_sswe(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models.sswe import SSWE

    return SSWE(table=table, classes=sizes.classes, **_given(C=sizes.C, epochs=sizes.fit_epochs))


def _tfidf(kind: Literal["logistic", "svm"]) -> Builder:
    def build(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
        from emhrnn.models.tfidf import TfIdf

        return TfIdf(
            vocabulary=len(vocabulary),
            classes=sizes.classes,
            kind=kind,
            max_features=sizes.max_features,
            **_given(C=sizes.C),
        )

    return build


def build_nb_lr(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models.nb_lr import NBLR

    return NBLR(vocabulary=len(vocabulary), classes=sizes.classes, max_features=sizes.max_features, **_given(C=sizes.C))


def build_fasttext(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models.fasttext import FastText

    return FastText(
        vocabulary=len(vocabulary),
        classes=sizes.classes,
        size=sizes.word_size,
        buckets=sizes.buckets,
        **_given(epochs=sizes.fit_epochs),
    )


def build_transformer(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models import pretrained
    from emhrnn.models.transformer import Encoder, FrozenTransformer, Transformer

    tokenizer, network = pretrained.from_run(sizes.encoder) if sizes.encoder else pretrained.load(sizes.pretrained)
    pooling = sizes.pooling or ("mean" if sizes.frozen else "cls")
    encoder = Encoder(tokenizer, network, vocabulary, pooling=pooling, head=sizes.head, tail=sizes.tail)
    if sizes.frozen:
        return FrozenTransformer(encoder, classes=sizes.classes, **_given(C=sizes.C))
    generator = torch.Generator().manual_seed(seed)
    return Transformer(encoder, classes=sizes.classes, generator=generator, layer_decay=sizes.layer_decay)


LAYERS = ("word_size", "sentence_size", "attention_size")
WITH_IDS = ("users", "products", "ids", "id_size")
IDS, VECTORS = "user and product ids", "word vectors"
HAN_PAPER = "Yang et al., NAACL 2016"
ZHANG_PAPER = "Zhang et al., NIPS 2015"
TANG_PAPER = "Tang, Qin and Liu, EMNLP 2015"
MHS_PAPER = "Luo and Zhu, arXiv 2106.02562"

MODELS: dict[str, Row] = {
    "evidence": Row(
        build=build_evidence,
        learns="gradient",
        reference="this project, docs/evidence.md",
        shows=("words", "phrases", "sentences", "boundaries"),
        reads=(
            "embedding_size",
            "longest",
            "counts",
            "tables",
            "encoder_size",
            "presence",
            "smoothing",
            "least_documents",
            "table_documents",
            "megabytes",
            "sentence_weights",
            "ids",
            "id_count",
            "pauses",
            "dropout",
            "segmentation",
        ),
        settings={
            "model": {"dropout": 0.0, "ids": False},
            "training": {"epochs": 6, "batch_documents": 32, "learning_rate": 0.01, "decay": "linear"},
        },
    ),
    "em-hrnn": Row(
        build=build_em_hrnn,
        learns="em",
        reference="Luo and Zhu, EM-HRNN",
        shows=("words", "phrases", "sentences", "boundaries"),
        reads=(
            *COMMON,
            *LAYERS,
            "phrase_size",
            "bidirectional_words",
            "cell",
            "skip",
            "ngrams",
            "pauses",
            "restart",
            "buckets",
            "segmentation",
            "levels",
        ),
    ),
    "hn-att": _gradient(HAN, LAYERS, fixed={"pooling": "attention"}, reference=HAN_PAPER, shows=("words", "sentences")),
    "hn-ave": _gradient(HAN, LAYERS, fixed={"pooling": "mean"}, reference=HAN_PAPER),
    "hn-max": _gradient(HAN, LAYERS, fixed={"pooling": "max"}, reference=HAN_PAPER),
    "hm-rnn": _gradient(
        HMRNN, ("layers", "word_size"), reference="Chung, Ahn and Bengio, ICLR 2017", shows=("boundaries",)
    ),
    "mhs-rnn": _gradient(MHSRNN, LAYERS, fixed={"attention": False}, reference=MHS_PAPER, shows=("boundaries",)),
    "mhs-rnn-att": _gradient(
        MHSRNN,
        LAYERS,
        fixed={"attention": True},
        reference=MHS_PAPER,
        shows=("words", "phrases", "sentences", "boundaries"),
    ),
    "lstm": _gradient(MeanLSTM, ("word_size",), reference=ZHANG_PAPER),
    "cnn-word": _gradient(
        CNNWord,
        ("features", "dense_size", "length"),
        reference=ZHANG_PAPER,
        # Deep and not normalised: it leaves the start after hundreds of small steps. Zhang's sizes want 0.0003 and 8.
        settings={"training": {"learning_rate": 0.001, "batch_documents": 16}},
    ),
    "conv-grnn": _gradient(
        GRNN, ("word_size", "sentence_size"), fixed={"sentences": "convolution"}, reference=TANG_PAPER
    ),
    "lstm-grnn": _gradient(GRNN, ("word_size", "sentence_size"), fixed={"sentences": "lstm"}, reference=TANG_PAPER),
    "cma": _gradient(
        CMA,
        (*LAYERS, *WITH_IDS),
        reads=("id_count",),
        reference="Ma et al., IJCNLP 2017",
        needs=(IDS,),
        shows=("words", "sentences"),
    ),
    "basis-cust": _gradient(
        BasisCust,
        ("word_size", "attention_size", "bases", "customize", *WITH_IDS),
        reads=("id_count",),
        reference="Kim et al., TACL 2019",
        needs=(IDS,),
        shows=("words", "sentences"),
    ),
    "bag-of-means": Row(
        build=build_bag_of_means,
        learns="fit",
        reference=ZHANG_PAPER,
        needs=(VECTORS,),
        reads=("embedding_size", "means", "C"),
    ),
    "sswe-svm": Row(
        build=build_sswe, learns="fit", reference="Tang et al., ACL 2014", reads=("embedding_size", "fit_epochs", "C")
    ),
    "tfidf-lr": Row(build=_tfidf("logistic"), learns="fit", reference="scikit-learn", reads=("max_features", "C")),
    "tfidf-svm": Row(build=_tfidf("svm"), learns="fit", reference="scikit-learn", reads=("max_features", "C")),
    "nb-lr": Row(
        build=build_nb_lr,
        learns="fit",
        reference="Wang and Manning, ACL 2012",
        reads=("max_features", "C"),
        settings={"model": {"max_features": 2_000_000}},  # it keeps no more than there are
    ),
    "fasttext": Row(
        build=build_fasttext,
        learns="fit",
        reference="Joulin et al., EACL 2017",
        needs=("the extra emhrnn[fasttext]",),
        reads=("word_size", "buckets", "fit_epochs"),
    ),
    "transformer": Row(
        build=build_transformer,
        learns="gradient",
        reference="Sun et al., CCL 2019",
        needs=("pretrained weights", "the extra emhrnn[transformers]"),
        reads=("pretrained", "frozen", "head", "tail", "pooling", "layer_decay", "C"),
        undrawn={"frozen": True},  # tfidf-lr draws nothing either, but the records of it have three seeds
        settings={
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

EXPLAINING = tuple(name for name, row in MODELS.items() if row.explains)


def check_model(name: str) -> None:
    """Raise a ConfigError for a name that is not in the table; it tells the nearest one that is."""
    if name not in MODELS:
        near = difflib.get_close_matches(name, MODELS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"unknown model {name!r}; {hint}`emhrnn models` lists them all")


def build_model(
    name: str, sizes: Sizes, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
) -> nn.Module:
    check_model(name)
    return MODELS[name].build(sizes, table, vocabulary, seed)
