"""A row of the table of systems: how a model is built and learns, what it needs, what it can show and who wrote it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from emhrnn.models.segmentation import PAPER_RATE


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
    sentence_weights: int = 32  # evidence
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


COMMON = ("embedding_size", "tune_embedding", "dropout")  # settings behind what `common` gives


def common(sizes: Sizes, table: Tensor, seed: int) -> dict[str, Any]:
    """What every model that learns by gradient descent takes."""
    return {
        "table": table,
        "classes": sizes.classes,
        "generator": torch.Generator().manual_seed(seed),
        "tune_embedding": sizes.tune_embedding,
        "dropout": sizes.dropout,
    }


def given(**settings: int | float | None) -> dict[str, Any]:
    """Those that are set; a model's own default stands for the rest."""
    return {name: value for name, value in settings.items() if value is not None}


def gradient(
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
        return model(**common(sizes, table, seed), **chosen, **(fixed or {}))

    return Row(build=build, learns="gradient", reads=(*COMMON, *names, *reads), **facts)


LAYERS = ("word_size", "sentence_size", "attention_size")
VECTORS = "word vectors"  # in `Row.needs`
