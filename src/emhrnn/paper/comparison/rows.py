"""What is compared: a system and the settings that are its own.

hn-att                                          a system
em-hrnn[em.estep=blocks,em.block_length=5]      with settings of its own
window 5=em-hrnn[em.estep=blocks]               under a name of its own
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from emhrnn.errors import ConfigError
from emhrnn.models.table import check_model

_ROW = re.compile(r"(?:(?P<name>[^=\[\]]+)=)?(?P<model>[^=\[\]]+)(?:\[(?P<settings>[^\[\]]*)\])?")
_COMMA = re.compile(r",(?![^\[]*\])")  # not inside brackets


@dataclass(frozen=True)
class Row:
    """`settings` are assignments as `--set` takes them, for this row alone."""

    name: str
    model: str
    settings: tuple[str, ...] = ()


def parse_rows(texts: Sequence[str]) -> list[Row]:
    """Rows from lists with commas between them.

    Raises:
        ConfigError: a row cannot be read, names no system, or stands there twice.
    """
    rows = [_parse(part.strip()) for text in texts for part in _COMMA.split(text) if part.strip()]
    if not rows:
        raise ConfigError("no model was given; give at least one, for example --models tfidf-lr,hn-att,em-hrnn")
    names = [row.name for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"the row {name!r} is given twice; give one of them another name: NAME={name}")
    return rows


def _parse(text: str) -> Row:
    match = _ROW.fullmatch(text)
    if match is None:
        raise ConfigError(f"cannot read the row {text!r}; write model, model[section.key=value,...] or name=model[...]")
    model = match["model"].strip()
    check_model(model)
    settings = tuple(part.strip() for part in (match["settings"] or "").split(",") if part.strip())
    for setting in settings:
        if setting.startswith(("data.", "training.seed=", "model.name=")):
            raise ConfigError(
                f"the row {text!r} sets {setting.partition('=')[0]}, which is the same for all rows; give it by --set, "
                "or leave it out"
            )
    return Row((match["name"] or text).strip(), model, settings)
