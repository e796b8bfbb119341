"""What `emhrnn tune` varies: the ranges of each model, their notation, and its check against the settings' types.

Notation, as in `--vary`: low:high, low:high:log, or a list a,b,c.
"""

import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from emhrnn.errors import ConfigError
from emhrnn.training.config import Config, make_config, settings_of

# All trials share one corpus and one validation set, so that their scores can be compared.
FIXED = {
    "data.folds", "data.lowercase", "data.max_sentence_words", "data.max_sentences", "data.validation", "model.name",
    "training.metric", "training.seed", "training.threads", "training.checkpoint_seconds", "training.calibrate",
}  # fmt: skip
HOW = "write section.key=low:high, section.key=low:high:log or section.key=a,b,c"

RANGES = {  # of any model that learns by steps and has the setting
    "training.learning_rate": "0.0005:0.01:log",
    "training.batch_words": "1000,2000,4000,8000",
    "training.weight_decay": "1e-6:0.01:log",
    "training.decay": "none,linear,cosine",
    "model.dropout": "0:0.6",
    **{f"model.{part}_size": "25,50,100" for part in ("word", "phrase", "sentence", "attention")},
    "model.layers": "2,3",
    "model.features": "64,128,256",
    "model.dense_size": "256,512,1024",
    "model.id_size": "16,32,64",
    "model.bases": "2,4,8",
    "em.warmup_epochs": "0:2",
    "em.pace": "1:20:log",
    "em.rate": "0.12:0.5",
    "em.blocks": "5,10,20",
    "em.block_length": "3:6",
}
OWN: dict[str, dict[str, str]] = {  # of models with other ranges, or that are fitted in one go
    "evidence": {
        "training.learning_rate": "0.002:0.05:log",
        "training.batch_documents": "16,32,64",
        "training.weight_decay": "1e-6:0.01:log",
        "model.dropout": "0:0.6",
        "model.longest": "2:6",
        "model.presence": "0,0.5,1",
        "model.smoothing": "0.2:5:log",
        "model.least_documents": "2:5",
        "model.table_documents": "2:50:log",
        "model.encoder_size": "0,16,32,64",
    },
    "transformer": {
        "training.learning_rate": "1e-5:1e-4:log",
        "training.batch_words": "1000,2000,4000",
        "training.weight_decay": "1e-4:0.1:log",
    },
    "tfidf-lr": {"model.C": "0.05:100:log", "model.max_features": "20000,50000,100000,200000"},
    "tfidf-svm": {"model.C": "0.01:10:log", "model.max_features": "20000,50000,100000,200000"},
    "nb-lr": {"model.C": "0.003:30:log", "model.max_features": "100000,300000,1000000,2000000"},
    "bag-of-means": {"model.C": "0.1:1000:log", "model.means": "500,1000,2000,5000"},
    "sswe-svm": {"model.C": "0.0001:1:log", "model.fit_epochs": "0:6"},
    "fasttext": {"model.fit_epochs": "3:30:log", "model.word_size": "10,50,100", "model.buckets": "50000,200000"},
}


def space_of(config: Config) -> dict[str, str]:
    """The space of the configured model, without settings that have no effect with these."""
    model = config.model.name
    space = dict(OWN.get(model) or {name: RANGES[name] for name in settings_of(model) if name in RANGES})
    unused = set()
    if config.training.batch_documents:
        unused.add("training.batch_words")
    if not config.model.draws:  # a linear head on frozen features
        space = {"model.C": "0.01:100:log"}
    learned = config.learns_by_em and config.segmentation == "learned"
    estep = config.em.estep if learned else "none"
    if estep == "none":
        unused |= {name for name in space if name.startswith("em.") and name != "em.rate"}
    if config.segmentation not in ("learned", "random"):  # the other cuts have a rate of their own
        unused.add("em.rate")
    if estep != "local":
        unused.add("em.blocks")
    if estep not in ("local", "blocks"):
        unused.add("em.block_length")
    if "em.warmup_epochs" in space:  # at least one epoch must be left for EM, at every level
        space["em.warmup_epochs"] = f"0:{max(0, min(2, config.training.epochs - 1))}"
    return {name: text for name, text in space.items() if name not in unused}


def distributions(space: Mapping[str, str], model: str) -> dict[str, BaseDistribution]:
    """Read a space, name by name. Settings with a single value are left out.

    Raises:
        ConfigError: a name is unknown (the message names the nearest) or may not vary, or a value is not allowed.
    """
    read = {name: _read(name, text, model) for name, text in space.items()}
    return {name: distribution for name, distribution in read.items() if not distribution.single()}


def assignments_of(given: Iterable[str]) -> dict[str, str]:
    """The values of `--vary` as names and notations.

    Raises:
        ConfigError: a value is not NAME=NOTATION.
    """
    space = {}
    for text in given:
        name, equals, notation = text.partition("=")
        if not equals or not notation.strip():
            raise ConfigError(f"cannot read --vary {text!r}; {HOW}")
        space[name.strip()] = notation.strip()
    return space


def value_of(config: Config, name: str) -> Any:
    """The value of a setting such as "training.epochs"."""
    section, _, key = name.partition(".")
    return getattr(getattr(config, section), key)


def holds(distribution: BaseDistribution, value: Any) -> bool:
    """Whether a setting that varies may have this value."""
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    assert isinstance(distribution, IntDistribution | FloatDistribution)
    return isinstance(value, int | float) and distribution.low <= value <= distribution.high


def _read(name: str, text: str, model: str) -> BaseDistribution:
    if "." not in name:
        raise ConfigError(f"cannot read --vary {name}={text!r}; write section.key before the =, e.g. training.epochs")
    chosen = f"model.name={model}"
    if name not in settings_of(model):
        make_config(assignments=[chosen, f"{name}=0"])  # names the nearest one
    if name in FIXED:
        raise ConfigError(f"{name} cannot vary: all trials share it; give it once with --set {name}=VALUE")
    parts = [part.strip() for part in text.split(":")]
    log = len(parts) == 3 and parts[2] == "log"
    is_range = len(parts) == 2 or log
    if len(parts) > 1 and not is_range:
        raise ConfigError(f"cannot read --vary {name}={text!r}; {HOW}")
    texts = parts[:2] if is_range else [part.strip() for part in text.split(",")]
    values = [value_of(make_config(assignments=[chosen, f"{name}={one}"]), name) for one in texts]
    if not is_range:
        return CategoricalDistribution(values)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise ConfigError(f"{name} is not a number, but {text!r} is a range; give its values as a list a,b,c")
    low, high = values
    if not (low <= high and math.isfinite(high)):
        raise ConfigError(f"the range {text!r} of {name} is empty; give the smaller number first")
    if log and low <= 0:
        raise ConfigError(f"the range {text!r} of {name} is logarithmic and starts at {low}; start above 0")
    annotation = settings_of(model)[name].annotation
    kinds = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return IntDistribution(low, high, log) if int in kinds else FloatDistribution(float(low), float(high), log)
