"""Every setting of a run: typed and validated. TOML in, JSON in the run folder.

    [training]
    epochs = 3
    learning_rate = 0.002

is the file for `emhrnn train DATA --config FILE.toml`; the same from the command line is
`--set training.epochs=3 --set training.learning_rate=0.002`. The section `model` has the settings of the model that
`model.name` chooses, which are defined beside the model; `em` is for models that learn by EM. Unknown settings are
refused with the nearest valid name.
"""

import difflib
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo

from emhrnn.errors import ConfigError
from emhrnn.files import refuse_pipe
from emhrnn.models.settings import EMConfig, ModelConfig, Section
from emhrnn.models.table import DEFAULT, MODELS, PAPER, check_model
from emhrnn.text.language import AUTO

FITTED = {"class_weight", "calibrate", "seed", "threads"}  # of the section `training`, what a fit in one go reads


class DataConfig(Section):
    """How text becomes word ids, and how data is split."""

    language: str = Field(
        AUTO, pattern="^(auto|[a-z]{2,3})$", description="ISO 639-1 code of the texts, such as de; auto = detected"
    )
    lowercase: bool = Field(True, description="read all words in lower case")
    vocabulary: Literal["data", "vectors", "both"] = Field(
        "both", description="words of the data (seen min_count times), of the vectors (the paper), or of both"
    )
    min_count: int = Field(2, ge=1, description="words that occur less often are unknown")
    max_vocabulary: int | None = Field(
        None, ge=1, description="largest vocabulary, most frequent words first; none = all"
    )
    max_sentence_words: int | None = Field(
        None, ge=1, description="longest sentence, in words; the rest is cut; none = no limit"
    )
    max_sentences: int | None = Field(None, ge=1, description="sentences read of a document; none = all")
    validation: float = Field(
        0.1, ge=0, lt=1, description="share of the training data, when no --valid is given; 0 = keep the last epoch"
    )
    folds: Literal[0, 2, 3, 5, 10] = Field(
        0, description="cross-validate in so many folds instead, and train on all of the data; few documents: 3"
    )


class TrainingConfig(Section):
    """The optimiser and the schedule."""

    epochs: int = Field(12, ge=1, description="passes over the training data")
    batch_words: int = Field(4000, ge=1, description="words per batch, if batch_documents is 0")
    batch_documents: int = Field(0, ge=0, description="documents per batch (the paper: 64); 0 = by batch_words")
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="sgd is the paper's")
    learning_rate: float = Field(0.002, gt=0, description="highest learning rate of the schedule")
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd only")
    weight_decay: float = Field(1e-4, ge=0, description="decay of the weights towards 0")
    warmup: float = Field(
        0.0, ge=0, lt=1, description="share of the steps in which the learning rate rises; 0 = 50 steps"
    )
    decay: Literal["none", "linear", "cosine"] = Field(
        "cosine", description="schedule of the learning rate, down to 5 % at the end"
    )
    average_epochs: float = Field(0.0, ge=0, description="epochs over which kept weights are averaged; 0 = off")
    clip: float = Field(5.0, gt=0, description="largest gradient norm")
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of a label that is spread over all classes")
    class_weight: Literal["none", "balanced"] = Field(
        "none", description="balanced: every class has the same total weight"
    )
    metric: Literal["accuracy", "macro_f1", "loss", "ece"] = Field(
        "accuracy", description="score that picks the best epoch"
    )
    patience: int = Field(4, ge=1, description="epochs without improvement before stopping")
    calibrate: bool = Field(True, description="fit the temperature on the validation data at the end")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of all random numbers")
    threads: int = Field(0, ge=0, le=1024, description="threads of torch; 0 = its default")
    checkpoint_seconds: float = Field(60, ge=0, description="seconds between checkpoints in an epoch; 0 = every step")


class Config(Section):
    """All settings of a run. `em` holds the defaults where the model does not learn by EM, and is not written then."""

    data: DataConfig = Field(default_factory=DataConfig)
    model: SerializeAsAny[ModelConfig] = Field(default_factory=lambda: MODELS[DEFAULT].config())
    em: EMConfig = Field(default_factory=EMConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)

    @field_validator("model", mode="before")
    @classmethod
    def _of_its_model(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        name = values.get("name", DEFAULT)
        check_model(str(name))
        return MODELS[name].config.model_validate(values)

    @model_validator(mode="after")
    def _consistent(self) -> "Config":
        if not self.learns_by_em:
            for name in sorted(self.em.model_fields_set):
                raise ConfigError(
                    f"em.{name} is for models that learn by EM, and {self.model.name} does not; leave it out, or use "
                    "--model em-hrnn"
                )
            return self
        if self.em.theta == "all" and self.training.label_smoothing:
            raise ConfigError(
                f"training.label_smoothing = {self.training.label_smoothing}, but em.theta = all weighs segmentations "
                "by the one true label; use em.theta = map or sample, or no smoothing"
            )
        return self

    @model_serializer(mode="wrap")
    def _of_what_is_read(self, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        values = handler(self)
        if not self.learns_by_em:
            values.pop("em", None)
        return values

    @property
    def learns_by_em(self) -> bool:
        """Whether the section `em` means something to the model."""
        return MODELS[self.model.name].learns == "em"

    @property
    def segmentation(self) -> str:
        """How phrases are found: `learned`, or the name of a rule."""
        return getattr(self.model, "segmentation", "learned")

    @property
    def reads_ids(self) -> bool:
        """Whether the model reads who wrote a document, and about what."""
        return getattr(self.model, "ids", False)

    @property
    def id_count(self) -> int:
        """Training documents that a user or product needs to be read as itself."""
        return getattr(self.model, "id_count", 1)

    @property
    def embedding_size(self) -> int:
        """Size of word vectors where none are given; 0 for a model that has none."""
        return getattr(self.model, "embedding_size", 0)

    def read_settings(self) -> dict[str, dict[str, Any]]:
        """Those that the model reads, by section and name: all, but for a model that is fitted in one go."""
        values = self.model_dump()
        if MODELS[self.model.name].learns == "fit":
            values["training"] = {name: value for name, value in values["training"].items() if name in FITTED}
        return values

    def changed_settings(self) -> dict[str, Any]:
        """Those of them that are not the model's own defaults, by names such as `training.epochs`."""
        usual = make_config(assignments=[f"model.name={self.model.name}"]).read_settings()
        return {
            f"{section}.{name}": value
            for section, values in self.read_settings().items()
            for name, value in values.items()
            if value != usual[section][name]
        }


PRESETS = ("default", "paper")
PAPER_MODEL = "em-hrnn"  # of the preset `paper`, where no model is named

SMALL = ("model.megabytes=20", "data.max_vocabulary=15000", "data.vocabulary=data")  # a model file of at most 20 MB

Settings = Mapping[str, Mapping[str, Any]]  # by section and name


def make_config(
    preset: str = "default",
    file: Path | None = None,
    assignments: Sequence[str] = (),
    *,
    settings: Mapping[str, Any] | None = None,
    shared: Sequence[str] | None = None,
    model: str = DEFAULT,
) -> Config:
    """Preset, then the model's own defaults, then file, then `section.key=value` assignments, then `settings` by names
    such as "training.epochs"; later ones win.

    With `shared`, file and shared assignments are given to several models at once: settings that this model does not
    have are left out. `assignments` are its own, and come last. `model` is the model
    where none is named and the preset is not the paper's.

    Raises:
        ConfigError: a setting, value or preset is unknown or not allowed, or the file cannot be read.
    """
    if preset not in PRESETS:
        raise ConfigError(f"unknown preset {preset!r}; use one of {', '.join(PRESETS)}")
    common = _merged({} if file is None else _read_sections(file), parsed(shared or ()))
    own = _merged(parsed(assignments), by_section(settings or {}))
    name = _merged(common, own).get("model", {}).get("name", PAPER_MODEL if preset == "paper" else model)
    check_model(str(name))
    own["model"] = {"name": name, **own.get("model", {})} if name != DEFAULT else own.get("model", {})
    if shared is not None:
        common = _restricted(common, name)
    base = _restricted(_preset(preset), name)
    for section, values in MODELS[name].defaults.items():
        base[section] = {key: value for key, value in base.get(section, {}).items() if key not in values}
    return validated(_merged(base, _merged(common, own)))


def _preset(name: str) -> Settings:
    preset: Settings = import_module(f"{PAPER}.rows").PRESET if name == "paper" else {}
    return preset


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """The same settings but for these, given by names such as "training.epochs"."""
    return validated(_merged(config.model_dump(exclude_unset=True), by_section(settings)))


def by_section(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings given by names such as "training.epochs"."""
    values: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        section, dot, key = name.partition(".")
        if not dot:
            raise ConfigError(f"cannot read the setting {name!r}; write section.key, e.g. training.epochs")
        values.setdefault(section, {})[key] = value
    return values


def validated(values: dict[str, Any]) -> Config:
    """A Config, or a ConfigError that names the first wrong key and the nearest valid one. What is not given has the
    default of the model, where it has one of its own, and does not count as set."""
    name = values["model"].get("name", DEFAULT) if isinstance(values.get("model"), dict) else DEFAULT
    own = MODELS[name].defaults if name in MODELS else {}
    try:
        config = Config.model_validate(_merged(own, values))
    except ValidationError as error:
        raise _told(error, name) from None
    for section, settings in own.items():
        getattr(config, section).model_fields_set.difference_update(settings.keys() - values.get(section, {}).keys())
    return config


def settings_of(model: str) -> dict[str, FieldInfo]:
    """Every setting that a model has, by names such as `training.epochs`."""
    sections: dict[str, type[Section]] = {"data": DataConfig, "model": MODELS[model].config}
    if MODELS[model].learns == "em":
        sections["em"] = EMConfig
    sections["training"] = TrainingConfig
    return {f"{section}.{name}": f for section, kind in sections.items() for name, f in kind.model_fields.items()}


def default_of(model: str, name: str) -> Any:
    """The value of a setting that is not given, for a model."""
    section, _, key = name.partition(".")
    return MODELS[model].defaults.get(section, {}).get(key, settings_of(model)[name].default)


def check_shared(models: Collection[str], file: Path | None, assignments: Sequence[str]) -> None:
    """Raise a ConfigError for a setting that is given to several models and that none of them has."""
    given = _merged({} if file is None else _read_sections(file), parsed(assignments))
    for section, values in given.items():
        for key in values:
            if not any(f"{section}.{key}" in settings_of(model) for model in models):
                raise _unknown(f"{section}.{key}", models)


def parsed(assignments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`section.key=value`, as TOML writes values, by section and key."""
    given = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or "." not in name:
            raise ConfigError(f"cannot read --set {assignment!r}; write section.key=value, e.g. training.epochs=3")
        given[name.strip()] = _toml_value(name.strip(), text.strip())
    return by_section(given)


def _restricted(values: Settings, model: str) -> dict[str, dict[str, Any]]:
    """The settings that a model has."""
    known = settings_of(model)
    return {
        section: {key: value for key, value in settings.items() if f"{section}.{key}" in known}
        for section, settings in values.items()
    }


def _merged(below: Settings, above: Settings) -> dict[str, Any]:
    return {section: {**below.get(section, {}), **above.get(section, {})} for section in {**below, **above}}


def _told(error: ValidationError, model: str) -> ConfigError:
    """The first thing that is wrong, in one line."""
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        return cause
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        if len(first["loc"]) == 1 and isinstance(first["input"], dict):  # a whole section is unknown
            place = ".".join([place, *list(first["input"])[:1]])
        return _unknown(place, [model])
    return ConfigError(f"{place} = {first['input']!r}: {first['msg'].lower()}")


def _unknown(place: str, models: Collection[str]) -> ConfigError:
    """Of a setting that these models do not have."""
    names = dict.fromkeys(name for model in models for name in settings_of(model) if name != "model.name")
    others = [model for model in MODELS if place in settings_of(model)]
    near = difflib.get_close_matches(place, names, n=1, cutoff=0.7 if others else 0.5)
    if not near:
        near = [name for name in names if name.endswith("." + place.rpartition(".")[2])]
    hint = f"did you mean {near[0]!r}?" if near else f"`emhrnn train --model {next(iter(models))} --help` lists them"
    if not others:
        return ConfigError(f"unknown setting {place!r}; {hint}")
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    have = ", ".join(others[:3]) + more
    return ConfigError(f"{', '.join(dict.fromkeys(models))} has no setting {place!r}, which is for {have}; {hint}")


def _read_sections(file: Path) -> dict[str, dict[str, Any]]:
    refuse_pipe(file)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{file}: no such config file") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}; give a TOML file of settings") from None
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists as deep
        raise ConfigError(f"{file}: not valid TOML: {error}") from None
    for section, settings in values.items():
        if not isinstance(settings, dict):
            raise ConfigError(f"{file}: {section} stands outside a section; write it under [data], [model], ...")
        _checked(settings, f"{file}: {section}")
    return values


def _toml_value(name: str, text: str) -> Any:
    """3 -> 3, true -> True, 0.5 -> 0.5; anything that is not a TOML value is a plain string."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return _checked(value, name)


def _checked(value: Any, where: str) -> Any:
    """TOML has no integers of more than 64 bits; Python reads them, but may be unable to print them."""
    if isinstance(value, int) and value.bit_length() > 63:
        raise ConfigError(f"{where}: a number has more than 64 bits; give a smaller one")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _checked(inner, where)
    return value
