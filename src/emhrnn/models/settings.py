"""The settings of the models, without their code: reading them takes no torch."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from emhrnn.errors import ConfigError
from emhrnn.models.segmentation import PAPER_RATE, check_rule


class Section(BaseModel):
    """A group of settings. Unknown names, infinity and NaN are refused."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False,
        defer_build=True,  # a command uses the settings of one model, and building those of all takes 50 ms
    )  # fmt: skip


class ModelConfig(Section):
    """The settings of a model; every model has its own subclass."""

    name: str = Field("", description="the model; `emhrnn models` lists them")

    @property
    def draws(self) -> bool:
        """Whether another seed may give another model."""
        return True

    @property
    def reads_vectors(self) -> bool:
        """Whether the model has any use for word vectors."""
        return True

    @property
    def freezes_vectors(self) -> bool:
        """Whether word vectors stay as they begin, so that a random one would stay noise."""
        return False

    def check_files(self) -> None:
        """Raise a ConfigError where files that training needs are missing. A trained run does not need them."""


OVERLAPPING = "overlapping"  # a segmentation that is none: all candidate phrases, as a bag


MOST_MIXED = 32  # classes


class EvidenceConfig(ModelConfig):
    """Settings of evidence."""

    name: str = Field("evidence", description="the model; `emhrnn models` lists them")
    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    longest: int = Field(6, ge=1, le=8, description="longest phrase, in words")
    counts: bool = Field(True, description="log-count ratios of seen phrases")
    mixing: bool = Field(
        True,
        description=f"counts of a class also speak for others, such as near grades; of 3 to {MOST_MIXED} classes",
    )
    tables: bool = Field(True, description="a learned vector for each seen phrase")
    encoder_size: int = Field(32, ge=0, description="units of the phrase encoder on word vectors; 0 = none")
    presence: float = Field(0.5, ge=0, le=1, description="1 = a phrase counts once a document, 0 = each time it occurs")
    smoothing: float = Field(1.0, gt=0, description="documents of each class that are added to counts")
    least_documents: int = Field(2, ge=1, description="phrases of fewer training documents are unseen")
    table_documents: int = Field(
        10, ge=1, description="phrases of fewer training documents have counts alone, no learned vector"
    )
    table_decay: float = Field(0.5, ge=0, description="weight decay of learned vectors of seen phrases")
    megabytes: float = Field(200.0, gt=0, description="largest model file; rare phrases are left out to stay below it")
    sentence_weights: int = Field(
        32, ge=0, description="units of recurrent layers that weigh sentences; 0 = all weigh the same"
    )
    pauses: bool = Field(True, description="phrases tend to end where readers pause")
    rationales: float = Field(
        1.0, ge=0, description="weight of the loss of marked spans, where the data has some (--spans-column)"
    )
    ids: bool = Field(False, description="read users and products, too")
    id_count: int = Field(
        5, ge=1, description="ids: users and products of fewer training documents are read as the average"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="share of candidate phrases that a training step leaves out")
    segmentation: str = Field(
        "learned", description="learned, or an ablation: none, words, punctuation, random, every-K, overlapping"
    )
    rate: float = Field(PAPER_RATE, gt=0, lt=1, description="segmentation = random: share of words that end a phrase")

    @property
    def reads_vectors(self) -> bool:
        return bool(self.encoder_size or self.sentence_weights)

    @property
    def freezes_vectors(self) -> bool:
        return True

    def mixes(self, classes: int) -> bool:
        """Two classes would only get another scale, and the matrix of many is too large to learn."""
        return self.counts and self.mixing and 2 < classes <= MOST_MIXED

    @model_validator(mode="after")
    def _consistent(self) -> "EvidenceConfig":
        if not (self.counts or self.tables or self.encoder_size):
            raise ConfigError("evidence without counts, tables and encoder says nothing; switch one of them on")
        if self.segmentation not in ("learned", OVERLAPPING):
            check_rule(self.segmentation)
        return self


class EMConfig(Section):
    """How em-hrnn learns phrase boundaries (docs/em.md)."""

    estep: Literal["none", "exact", "blocks", "local"] = Field(
        "local", description="none: sample boundaries at `rate`, do not learn them"
    )
    blocks: int = Field(10, ge=1, description="local: blocks drawn per document and step")
    block_length: int = Field(5, ge=1, le=16, description="blocks, local: words enumerated together")
    windows: int = Field(
        0, ge=0, description="blocks: windows of each document that a step takes, drawn again; 0 = all (the paper)"
    )
    focus: bool = Field(True, description="local: draw centres where pi (1 - pi) is large")
    impute: Literal["prior", "rate"] = Field(
        "rate", description="boundaries outside the blocks: pi > 0.5 (the paper) or the quantile that keeps `rate`"
    )
    rate: float = Field(
        PAPER_RATE, gt=0, lt=1, description="share of words that end a phrase; the paper's phrases have 4.3"
    )
    hold_rate: bool = Field(True, description="hold the mean of pi at `rate`; else EM may drift to all words or none")
    warmup_epochs: int = Field(1, ge=0, description="epochs on random segmentations, before boundaries are learned")
    theta: Literal["sample", "map", "all"] = Field(
        "map", description="M-step of theta on the most probable boundaries, on a posterior sample, or on all"
    )
    pace: float = Field(5.0, gt=0, description="learning rate of the indicator layer, times that of the rest")
    printed_q: bool = Field(False, description="the paper's misprinted denominator, to see what it does")

    @model_validator(mode="after")
    def _consistent(self) -> "EMConfig":
        if self.windows and self.estep != "blocks":
            raise ConfigError(
                f"em.windows = {self.windows} is for em.estep = blocks, not {self.estep}; leave it out, or set "
                "em.blocks"
            )
        return self


class TfIdfConfig(ModelConfig):
    """Settings of tfidf-lr. Its C and that of tfidf-svm are the best of 0.05 to 10 on 8,000 Yelp reviews."""

    ngram_words: int = Field(2, ge=1, le=4, description="longest n-gram, in words; in Chinese, in characters")
    max_features: int = Field(200_000, ge=1, description="most n-grams, those of most documents")
    C: float = Field(10.0, gt=0, description="inverse strength of the regularisation")


class TfIdfSVMConfig(TfIdfConfig):
    """Settings of tfidf-svm."""

    C: float = Field(1.0, gt=0, description="inverse strength of the regularisation")


class NBLRConfig(ModelConfig):
    """Settings of nb-lr."""

    max_features: int = Field(2_000_000, ge=1, description="most n-grams, those of most documents")
    C: float | None = Field(
        None, gt=0, description="inverse strength of the regularisation; none = chosen on documents that are held out"
    )


class FastTextConfig(ModelConfig):
    """Settings of fasttext."""

    word_size: int = Field(50, ge=1, description="numbers of a word's vector")
    buckets: int = Field(200_000, ge=1, description="hash buckets of word pairs")
    fit_epochs: int | None = Field(None, ge=0, description="passes over the data; none = by the size of the data")


class TransformerConfig(ModelConfig):
    """Settings of transformer."""

    pretrained: str = Field("", description="folder with model.safetensors, or a name in the local cache")
    frozen: bool = Field(False, description="fit a linear head on frozen features")
    head: int = Field(128, ge=1, description="word pieces it reads from the start of a document")
    tail: int = Field(382, ge=0, description="and from its end, where a document is longer than both")
    pooling: Literal["cls", "mean"] | None = Field(
        None, description="the state of [CLS], or the mean of all states; none = cls, and mean if frozen"
    )
    layer_decay: float = Field(0.95, gt=0, le=1, description="learning rate of a layer / of the one above")
    attention_dropout: float | None = Field(
        None, ge=0, lt=1, description="dropout of attention weights; none = as the encoder was trained. 0 saves time"
    )
    bfloat16: bool = Field(
        False, description="multiply matrices with 8 bits of mantissa: twice as fast where the CPU has avx512_bf16"
    )
    C: float = Field(1.0, gt=0, description="frozen: inverse strength of the head's regularisation")

    @property
    def draws(self) -> bool:
        """A linear head is fitted without random numbers."""
        return not self.frozen

    def check_files(self) -> None:
        """Raise a ConfigError for pretrained weights that can be seen to be unusable without loading them."""
        from emhrnn.models.pretrained import check_source  # which takes torch

        check_source(self.pretrained)
