"""The settings that `--set` and `--config` take, as the end of the help of `train`, `tune` and `compare`."""

import re
from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

ARGUMENTS = "emhrnn.arguments"  # of the command, in the context's notes


class CommandWithSettings(TyperCommand):
    """A command whose help ends with the settings of its model: the one that `--model` names, or the default one. They
    are looked up only when somebody asks for help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Help is shown before the options are parsed, so that the arguments are kept for it."""
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the settings, by section."""
        from emhrnn.models.table import DEFAULT

        several = not any(parameter.name == "model" for parameter in self.params)
        model = _named_model(ctx.meta.get(ARGUMENTS, ())) or DEFAULT
        for section, rows in setting_table(model).items():
            if several and section in ("model", "em"):
                continue
            of_model = f" of {model}" if section == "model" else ""
            with formatter.section(f"Settings [{section}]{of_model}"):
                formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text("`emhrnn train --model NAME --help` shows the settings of another model.")


def setting_table(model: str) -> dict[str, list[tuple[str, str]]]:
    """By section: name and default of each setting of a model, and what it means."""
    from emhrnn.models.table import MODELS, check_model
    from emhrnn.training.config import FITTED, default_of, settings_of

    check_model(model)
    table: dict[str, list[tuple[str, str]]] = {}
    for name, field in settings_of(model).items():
        section, _, key = name.partition(".")
        if section == "training" and MODELS[model].learns == "fit" and key not in FITTED:
            continue
        default = model if name == "model.name" else default_of(model, name)
        table.setdefault(section, []).append((f"{name} = {_toml(default)}", field.description or ""))
    return table


def _named_model(arguments: Sequence[str]) -> str | None:
    """The model of `--model NAME` or `--set model.name=NAME`, the last one."""
    named = re.findall(r"(?:^|\n)(?:--model[=\n]|(?:--set[=\n])?model\.name=)([^\n]+)", "\n".join(arguments))
    return named[-1] if named else None


def _toml(value: Any) -> str:
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
