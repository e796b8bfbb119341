"""The one table of systems: name -> how it is built and learns, what it needs, what it can show and who wrote it."""

import difflib
from collections.abc import Sequence
from importlib import import_module
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from emhrnn.errors import ConfigError
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.evidence import Evidence
from emhrnn.models.han import HAN
from emhrnn.models.row import COMMON, LAYERS, Builder, Row, Sizes, common, given, gradient
from emhrnn.models.segmentation import rule

PAPER = "emhrnn.paper.models"  # found by name: the product does not import the paper's other systems


def build_em_hrnn(
    sizes: Sizes, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
) -> nn.Module:
    shared = common(sizes, table, seed)
    shared |= {
        "phrase_size": sizes.phrase_size,
        "sentence_size": sizes.sentence_size,
        "attention_size": sizes.attention_size,
        "cell": sizes.cell,
    }
    first = EMHRNN(
        **shared,
        word_size=sizes.word_size,
        bidirectional_words=sizes.bidirectional_words,
        skip=sizes.skip and sizes.levels == 1,  # older runs say true and mean false where there are several
        ngrams=sizes.buckets if sizes.ngrams and sizes.levels == 1 else 0,
        pauses=vocabulary if sizes.pauses and sizes.levels == 1 else (),
        rate=sizes.rate,
        rule=None if sizes.segmentation == "learned" else rule(sizes.segmentation, vocabulary, sizes.rate),
    )
    if sizes.levels == 1:
        return first
    levels: nn.Module = import_module(f"{PAPER}.em_hrnn_levels").with_upper_levels(first, sizes, shared)
    return levels


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


# The rest are imported when they are built: scikit-learn and transformers take seconds to load.


def _tfidf(kind: Literal["logistic", "svm"]) -> Builder:
    def build(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
        from emhrnn.models.tfidf import TfIdf

        return TfIdf(
            vocabulary=len(vocabulary),
            classes=sizes.classes,
            kind=kind,
            max_features=sizes.max_features,
            **given(C=sizes.C),
        )

    return build


def build_nb_lr(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models.nb_lr import NBLR

    return NBLR(vocabulary=len(vocabulary), classes=sizes.classes, max_features=sizes.max_features, **given(C=sizes.C))


def build_fasttext(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models.fasttext import FastText

    return FastText(
        vocabulary=len(vocabulary),
        classes=sizes.classes,
        size=sizes.word_size,
        buckets=sizes.buckets,
        **given(epochs=sizes.fit_epochs),
    )


def build_transformer(sizes: Sizes, table: Tensor, vocabulary: Sequence[str], seed: int) -> nn.Module:
    from emhrnn.models import pretrained
    from emhrnn.models.transformer import Encoder, FrozenTransformer, Transformer

    tokenizer, network = pretrained.from_run(sizes.encoder) if sizes.encoder else pretrained.load(sizes.pretrained)
    pooling = sizes.pooling or ("mean" if sizes.frozen else "cls")
    encoder = Encoder(tokenizer, network, vocabulary, pooling=pooling, head=sizes.head, tail=sizes.tail)
    if sizes.frozen:
        return FrozenTransformer(encoder, classes=sizes.classes, **given(C=sizes.C))
    generator = torch.Generator().manual_seed(seed)
    return Transformer(encoder, classes=sizes.classes, generator=generator, layer_decay=sizes.layer_decay)


HAN_PAPER = "Yang et al., NAACL 2016"

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
            "buckets",
            "segmentation",
            "levels",
        ),
    ),
    "hn-att": gradient(HAN, LAYERS, fixed={"pooling": "attention"}, reference=HAN_PAPER, shows=("words", "sentences")),
    "hn-ave": gradient(HAN, LAYERS, fixed={"pooling": "mean"}, reference=HAN_PAPER),
    "hn-max": gradient(HAN, LAYERS, fixed={"pooling": "max"}, reference=HAN_PAPER),
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
MODELS |= import_module(f"{PAPER}.rows").ROWS

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
