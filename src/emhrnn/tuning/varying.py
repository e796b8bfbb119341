"""A setting that varies: what its notation says, checked against the setting's own type and limits."""

import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emhrnn.errors import ConfigError
from emhrnn.training.config import Config, make_config, setting_names, validated

if TYPE_CHECKING:
    from optuna import Trial

Value = bool | int | float | str

# All trials share one corpus and one validation set; else their scores could not be compared.
FIXED = {
    "data.lowercase", "data.max_sentence_words", "data.max_sentences", "data.validation", "model.name",
    "training.metric", "training.seed", "training.threads", "training.checkpoint_seconds", "training.calibrate",
}  # fmt: skip
HOW = "write section.key=low:high, section.key=low:high:log or section.key=a,b,c"


@dataclass(frozen=True)
class Varied:
    """A setting with its values: a list of them, or the range from the first to the last of two."""

    name: str
    values: tuple[Value, ...]
    is_range: bool = False
    log: bool = False

    def suggest(self, trial: "Trial") -> Any:
        if not self.is_range:
            return trial.suggest_categorical(self.name, list(self.values))
        low, high = self.values
        if isinstance(low, int) and isinstance(high, int):
            return trial.suggest_int(self.name, low, high, log=self.log)
        return trial.suggest_float(self.name, float(low), float(high), log=self.log)

    def holds(self, value: Any) -> bool:
        if not self.is_range:
            return value in self.values
        return isinstance(value, int | float) and self.values[0] <= value <= self.values[1]  # type: ignore[operator]

    def __str__(self) -> str:
        if not self.is_range:
            return ",".join(map(str, self.values))
        return ":".join([*map(str, self.values), *(["log"] if self.log else [])])


def varied(space: Mapping[str, str]) -> list[Varied]:
    """Every setting of a space, checked; those with a single value are left out.

    Raises:
        ConfigError: a name is unknown (the nearest is told) or may not vary, or a value is not allowed.
    """
    read = [_read(name, text) for name, text in space.items()]
    return [one for one in read if one.values[0] != one.values[-1]]


def assignments_of(given: Iterable[str]) -> dict[str, str]:
    """`--vary` as names and notations."""
    space = {}
    for text in given:
        name, equals, notation = text.partition("=")
        if not equals or not notation.strip():
            raise ConfigError(f"cannot read --vary {text!r}; {HOW}")
        space[name.strip()] = notation.strip()
    return space


def with_values(config: Config, values: Mapping[str, Any]) -> Config:
    """The same settings but for these, by their names."""
    changed = config.model_dump(exclude_unset=True)
    for name, value in values.items():
        section, _, key = name.partition(".")
        changed.setdefault(section, {})[key] = value
    return validated(changed)


def value_of(config: Config, name: str) -> Any:
    section, _, key = name.partition(".")
    return getattr(getattr(config, section), key)


def _read(name: str, text: str) -> Varied:
    if "." not in name:
        raise ConfigError(f"cannot read --vary {name}={text!r}; write section.key before the =, e.g. training.epochs")
    if name not in setting_names():
        make_config(assignments=[f"{name}=0"])  # knows the nearest name
    if name in FIXED:
        raise ConfigError(f"{name} cannot vary: all trials share it; give it once with --set {name}=VALUE")
    parts = [part.strip() for part in text.split(":")]
    log = len(parts) == 3 and parts[2] == "log"
    is_range = len(parts) == 2 or log
    if len(parts) > 1 and not is_range:
        raise ConfigError(f"cannot read --vary {name}={text!r}; {HOW}")
    texts = parts[:2] if is_range else [part.strip() for part in text.split(",")]
    section, _, key = name.partition(".")
    values = tuple(getattr(getattr(make_config(assignments=[f"{name}={one}"]), section), key) for one in texts)
    if is_range:
        _check_range(name, text, values, log)
        if not _is_whole(name):
            values = tuple(float(value) for value in values)
    return Varied(name, values, is_range, log)


def _check_range(name: str, text: str, values: tuple[Any, ...], log: bool) -> None:
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise ConfigError(f"{name} is no number, {text!r} is a range; give its values as a list a,b,c")
    low, high = values
    if not (low <= high and math.isfinite(high)):
        raise ConfigError(f"the range {text!r} of {name} is empty; give the smaller number first")
    if log and low <= 0:
        raise ConfigError(f"the range {text!r} of {name} is logarithmic and starts at {low}; start above 0")


def _is_whole(name: str) -> bool:
    section, _, key = name.partition(".")
    annotation = Config.model_fields[section].annotation.model_fields[key].annotation  # type: ignore[union-attr]
    kinds = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return int in kinds
