"""Every setting of a run: typed, validated, with the reason for its default. TOML in, JSON in the run folder.

    [training]
    epochs = 3
    learning_rate = 0.002

is the file for `emhrnn train DATA --config FILE.toml`; the same from the command line is
`--set training.epochs=3 --set training.learning_rate=0.002`. Unknown keys are refused with the nearest valid name.
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emhrnn.errors import ConfigError

MOST_SAYINGS = 50_000_000  # of pairs of words about classes: 200 MB
EStepName = Literal["none", "exact", "blocks", "local"]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


class DataConfig(Section):
    """How text becomes word ids, and how data is split."""

    lowercase: bool = True
    vocabulary: Literal["data", "vectors", "both"] = Field(
        "both", description="words of the data (seen min_count times), of the vectors (the paper), or of both"
    )
    min_count: int = Field(2, ge=1, description="words of the data that are seen less often are unknown")
    max_vocabulary: int | None = Field(None, ge=1)
    max_sentence_words: int | None = Field(None, ge=1, description="cap; the corpus report counts what it touches")
    max_sentences: int | None = Field(None, ge=1)
    validation: float = Field(0.1, gt=0, lt=1, description="share of the training data, when no --valid is given")


class ModelConfig(Section):
    """Sizes of the layers (the paper: all 50)."""

    name: str = "em-hrnn"
    embedding_size: int = Field(100, ge=1, description="when no vectors are given")
    tune_embedding: bool = True
    word_size: int = Field(50, ge=1)
    phrase_size: int = Field(50, ge=1)
    sentence_size: int = Field(50, ge=1)
    attention_size: int = Field(50, ge=1)
    bidirectional_words: bool = True
    cell: Literal["lstm", "gru"] = Field("gru", description="em-hrnn: of its recurrent layers (the paper: lstm)")
    skip: bool = Field(True, description="em-hrnn: a phrase's vector reaches its sentence beside its state")
    ngrams: bool = Field(True, description="em-hrnn: words and pairs of neighbours also speak for the classes directly")
    pauses: bool = Field(True, description="em-hrnn, evidence: phrases tend to end where readers pause")
    dropout: float = Field(0.3, ge=0, lt=1)
    segmentation: str = Field(
        "learned", description="learned, or an ablation: none, words, punctuation, random, every-K, overlapping"
    )
    levels: int = Field(1, ge=1, description="em-hrnn: of latent boundaries, trained bottom-up; they share the epochs")
    longest: int = Field(6, ge=1, le=8, description="evidence: most words of a phrase")
    counts: bool = Field(True, description="evidence: log-count ratios of seen phrases")
    tables: bool = Field(True, description="evidence: a learned vector for each seen phrase")
    encoder_size: int = Field(32, ge=0, description="evidence: units of the phrase encoder on word vectors; 0 = none")
    presence: float = Field(
        0.5, ge=0, le=1, description="evidence: 1 = a phrase counts once a document, 0 = each time it occurs"
    )
    smoothing: float = Field(1.0, gt=0, description="evidence: documents of each class that are added to counts")
    least_documents: int = Field(2, ge=1, description="evidence: phrases of fewer training documents are unseen")
    table_documents: int = Field(
        10, ge=1, description="evidence: phrases of fewer training documents have counts alone, no learned vector"
    )
    megabytes: float = Field(200.0, gt=0, description="evidence: largest model file; rare phrases are left out for it")
    sentence_weights: int = Field(
        32, ge=0, description="evidence: units of recurrent layers that weigh sentences; 0 = all weigh the same"
    )
    layers: int = Field(3, ge=2, description="hm-rnn")
    features: int = Field(64, ge=1, description="cnn-word: of each convolution; Zhang's networks have 256 and 1024")
    dense_size: int = Field(256, ge=1, description="cnn-word: Zhang's networks have 1024 and 2048")
    length: int = Field(231, ge=123, description="cnn-word: words it reads of a document")
    ids: bool = Field(
        True, description="cma, basis-cust, evidence (default false): read users and products; false = the text alone"
    )
    id_size: int = Field(64, ge=1, description="cma, basis-cust: of the vector of a user or product")
    id_count: int = Field(
        5, ge=1, description="models with ids: users and products of fewer training documents are read as the average"
    )
    bases: int = Field(4, ge=1, description="basis-cust")
    customize: str = Field("linear", description="basis-cust: linear, bias, attention, word or encoder")
    means: int = Field(5000, ge=2, description="bag-of-means: clusters of word vectors")
    max_features: int = Field(200_000, ge=1, description="tfidf-lr, tfidf-svm, nb-lr: most n-grams")
    buckets: int = Field(
        200_000, ge=1, description="fasttext, em-hrnn with ngrams: of word pairs; em-hrnn has fewer over 250 classes"
    )
    fit_epochs: int | None = Field(None, ge=0, description="sswe-svm, fasttext: passes over the data")
    C: float | None = Field(None, gt=0, description="linear classifiers: inverse strength of the regularisation")
    pretrained: str = Field("", description="transformer: folder with model.safetensors, or a name in the local cache")
    frozen: bool = Field(False, description="transformer: fit a linear head on frozen features")
    head: int = Field(128, ge=1, description="transformer: word pieces it reads from the start of a document")
    tail: int = Field(382, ge=0, description="transformer: and from its end, where a document is longer than both")
    pooling: Literal["cls", "mean"] | None = Field(
        None, description="transformer: the state of [CLS], or the mean of all states; none = cls, and mean if frozen"
    )
    layer_decay: float = Field(0.95, gt=0, le=1, description="transformer: learning rate of a layer / of the one above")

    def sizes(self) -> dict[str, Any]:
        """What a network is built with; the rest is about its data."""
        return self.model_dump(exclude={"name", "embedding_size", "id_count"})


class EMConfig(Section):
    """How phrase boundaries are learned (docs/em.md)."""

    estep: EStepName = Field("local", description="none: sample boundaries at `rate`, do not learn them")
    blocks: int = Field(10, ge=1, description="local: blocks drawn per document and step")
    block_length: int = Field(5, ge=1, le=16, description="blocks, local: words enumerated together")
    windows: int = Field(
        0, ge=0, description="blocks: windows of each document that a step takes, drawn anew; 0 = all (the paper)"
    )
    focus: bool = Field(True, description="local: draw centres where pi (1 - pi) is large")
    impute: Literal["prior", "rate", "posterior"] = Field(
        "rate", description="boundaries outside the block: pi > 0.5 (the paper), the quantile that keeps `rate`, ..."
    )
    rate: float = Field(0.23, gt=0, lt=1, description="share of words that end a phrase; the paper's phrases have 4.3")
    upper_rate: float = Field(
        0.5, gt=0, lt=1, description="share of phrases that end a group, for levels above the first"
    )
    hold_rate: bool = Field(True, description="hold the mean of pi at `rate`; else EM may drift to all words or none")
    temperature: float = Field(1.0, gt=0, description="exponent 1/T on the posterior")
    warmup_epochs: int = Field(1, ge=0, description="epochs on random segmentations, before boundaries are learned")
    theta: Literal["sample", "map", "all"] = Field(
        "map", description="M-step of theta on the most probable boundaries, on a posterior sample, or on all"
    )
    pace: float = Field(5.0, gt=0, description="learning rate of the indicator layer, times that of the rest")
    printed_q: bool = Field(False, description="the paper's misprinted denominator, to see what it does")
    exact_limit: int = Field(20, ge=1, le=24, description="exact: most free positions per document")


class TrainingConfig(Section):
    """The optimiser and the schedule."""

    epochs: int = Field(12, ge=1)
    batch_words: int = Field(4000, ge=1, description="words per batch; 0 documents means this budget decides")
    batch_documents: int = Field(0, ge=0, description="documents per batch (the paper: 64); 0 = by batch_words")
    optimizer: Literal["adamw", "sgd"] = "adamw"
    learning_rate: float = Field(0.002, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd only")
    weight_decay: float = Field(1e-4, ge=0)
    warmup: float = Field(0.0, ge=0, lt=1, description="share of the steps in which the learning rate rises; 0 = 50")
    decay: Literal["none", "linear", "cosine"] = Field("cosine", description="of the learning rate, to 5 % at the end")
    clip: float = Field(5.0, gt=0, description="largest gradient norm")
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    class_weight: Literal["none", "balanced"] = "none"
    metric: Literal["accuracy", "macro_f1", "loss", "ece"] = Field("accuracy", description="that picks the best epoch")
    patience: int = Field(4, ge=1, description="epochs without improvement before stopping")
    calibrate: bool = Field(True, description="fit temperature and shares of experts on the validation data at the end")
    seed: int = Field(0, ge=0, lt=2**63)
    threads: int = Field(0, ge=0, le=1024, description="0 = as torch decides")
    checkpoint_seconds: float = Field(60, ge=0, description="between checkpoints within an epoch; 0 = every step")


class Config(Section):
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    em: EMConfig = EMConfig()
    training: TrainingConfig = TrainingConfig()

    def for_classes(self, count: int) -> "Config":
        """The settings of a new run with so many classes: the n-grams of em-hrnn say something about each, so that
        many classes share fewer buckets. A run that is loaded keeps what it was trained with."""
        most = max(MOST_SAYINGS // count, 1)
        if not (self.model.name == "em-hrnn" and self.model.ngrams and self.model.buckets > most):
            return self
        return self.model_copy(update={"model": self.model.model_copy(update={"buckets": most})})


# The letter of the paper (docs/paper.md 1.8). The learning rate is to be picked on validation.
PAPER: dict[str, dict[str, Any]] = {
    "data": {"vocabulary": "vectors"},
    "model": {
        "tune_embedding": False,
        "bidirectional_words": False,
        "cell": "lstm",
        "skip": False,
        "ngrams": False,
        "pauses": False,
        "dropout": 0.0,
    },
    "em": {
        "estep": "local",
        "focus": False,
        "impute": "prior",
        "hold_rate": False,
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
PRESETS: dict[str, dict[str, dict[str, Any]]] = {"default": {}, "paper": PAPER}


SMALL = ("model.megabytes=20", "data.max_vocabulary=15000", "data.vocabulary=data")  # a model file of at most 20 MB

ONE_LEVEL = ("skip", "ngrams", "pauses")  # parts of the model that it has not, with several latent levels


def make_config(
    preset: str = "default",
    file: Path | None = None,
    assignments: list[str] | tuple[str, ...] = (),
) -> Config:
    """Preset, then the model's own defaults, then file, then `section.key=value` assignments; later ones win."""
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}; use one of {', '.join(PRESETS)}")
    given = {} if file is None else _read_sections(file)
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot):
            raise ConfigError(f"cannot read --set {assignment!r}; write section.key=value, e.g. training.epochs=3")
        given.setdefault(section, {})[name] = _toml_value(text.strip())
    own = _own_defaults(given)
    base = {
        section: {name: value for name, value in settings.items() if name not in own.get(section, {})}
        for section, settings in PRESETS[preset].items()
    }
    return validated(_merged(base, given))


def validated(values: dict[str, Any]) -> Config:
    """A Config, or a ConfigError that names the first wrong key and the nearest valid one. What is not given has the
    default of the model, where it has one of its own, and does not count as set."""
    own = _own_defaults(values)
    try:
        config = Config.model_validate(_merged(own, values))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            if len(first["loc"]) == 1 and isinstance(first["input"], dict):  # a whole section is unknown
                place = ".".join([place, *list(first["input"])[:1]])
            raise ConfigError(f"unknown setting {place!r}; {_nearest(place)}") from None
        raise ConfigError(f"{place} = {first['input']!r}: {first['msg'].lower()}") from None
    for section, settings in own.items():
        getattr(config, section).model_fields_set.difference_update(settings.keys() - values.get(section, {}).keys())
    return config


Settings = Mapping[str, Mapping[str, Any]]  # by section and name


def _own_defaults(values: Settings) -> Settings:
    """Those of the model that the values name."""
    from emhrnn.models.table import MODELS  # with torch, which the help of the commands does not pay for

    model = values.get("model", {})
    own = MODELS[model["name"]].settings if model.get("name") in MODELS else {}
    several = model.get("levels") not in (None, 1)
    return _merged(own, {"model": dict.fromkeys(ONE_LEVEL, False)}) if several else own


def _merged(below: Settings, above: Settings) -> dict[str, Any]:
    return {section: {**below.get(section, {}), **above.get(section, {})} for section in {**below, **above}}


def setting_names() -> list[str]:
    return [
        f"{section}.{name}"
        for section, field in Config.model_fields.items()
        for name in field.annotation.model_fields  # type: ignore[union-attr]
    ]


def _nearest(place: str) -> str:
    names = setting_names()
    near = difflib.get_close_matches(place, names, n=1, cutoff=0.5)
    if not near:
        last = place.rpartition(".")[2]
        near = [name for name in names if name.endswith("." + last)]
    return f"did you mean {near[0]!r}?" if near else "`emhrnn train --help` lists the settings"


def _read_sections(file: Path) -> dict[str, dict[str, Any]]:
    values = _read_toml(file)
    for section, settings in values.items():
        if not isinstance(settings, dict):
            raise ConfigError(f"{file}: {section} stands outside a section; write it under [data], [model], ...")
    return values


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such config file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from None


def _toml_value(text: str) -> Any:
    """3 -> 3, true -> True, 0.5 -> 0.5; anything that is not a TOML value is a plain string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
