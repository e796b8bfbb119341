"""The settings that `--set` and `--config` take, as the end of the help of `train`."""

from typing import Any

from typer.core import TyperCommand


class CommandWithSettings(TyperCommand):
    """A command whose help ends with all settings. They are looked up only when somebody asks for help."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        for section, rows in setting_table().items():
            with formatter.section(f"Settings [{section}]"):
                formatter.write_dl(rows)


def setting_table() -> dict[str, list[tuple[str, str]]]:
    """By section: name and default, and what it means."""
    from emhrnn.training.config import Config

    table: dict[str, list[tuple[str, str]]] = {}
    for section, outer in Config.model_fields.items():
        fields = outer.annotation.model_fields  # type: ignore[union-attr]
        table[section] = [
            (f"{section}.{name} = {_toml(field.default)}", field.description or "") for name, field in fields.items()
        ]
    return table


def _toml(value: Any) -> str:
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
