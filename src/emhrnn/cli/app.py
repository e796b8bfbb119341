"""The commands as an application of typer: only the one that is asked for is imported, all of them take 50 ms."""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from emhrnn.cli import COMMANDS, INTERRUPTED, root_help
from emhrnn.cli.options import DataOptions, Json
from emhrnn.cli.output import Answer, complain, end_if_failed, print_json, say
from emhrnn.version import __version__

PAPER = "emhrnn.paper.cli"  # by name: the product does not import the paper
SUMMARIES = {name: summary for group in COMMANDS.values() for name, summary in group.items()}
JSON = inspect.Parameter("json", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation=Json)


class Root(TyperGroup):
    """All commands. Its help is that of `emhrnn --help`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(root_help() + "\n")


def application(wanted: str = "") -> typer.Typer:
    """The application with the command that is wanted; with all of them, if there is no such command."""
    app = typer.Typer(
        name="emhrnn",
        cls=Root,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: the boxes leave too little room for words
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for name in (wanted,) if wanted in SUMMARIES else SUMMARIES:
        if name == "paper":
            app.add_typer(_paper(), short_help=SUMMARIES[name])
        else:
            _add(app, _function(name), SUMMARIES[name])
    return app


def _function(name: str) -> Callable[..., Answer | None]:
    module = import_module(f"{PAPER}.tables" if name == "compare" else f"emhrnn.cli.{name}")
    command: Callable[..., Answer | None] = getattr(module, name)
    return command


def _paper() -> typer.Typer:
    paper = import_module(PAPER)
    app = typer.Typer(
        name="paper", no_args_is_help=True, help="Reproduce the paper: its tables, simulation, figures and analyses."
    )
    for command, summary in paper.COMMANDS:
        _add(app, command, summary)
    return app


def _add(app: typer.Typer, command: Callable[..., Answer | None], summary: str) -> None:
    kind = CommandWithSettings if command.__name__ in ("train", "tune", "compare") else None
    app.command(short_help=summary, cls=kind)(_as_typer_lists_it(command))


def _as_typer_lists_it(command: Callable[..., Answer | None]) -> Callable[..., None]:
    """Report on Ctrl-C what was written. Here, because typer ends the program before `main` could. The fields of
    `DataOptions` become options of the command, in the place of its parameter `read`; and a command that gives an
    answer has --json."""
    signature, fields = inspect.signature(command), inspect.signature(DataOptions).parameters
    own, answers = signature.parameters, signature.return_annotation is Answer
    listed: dict[str, inspect.Parameter] = {}
    for name, parameter in own.items():
        listed |= fields if name == "read" else {name: parameter}
    if answers:
        quiet = {name: listed.pop(name) for name in ("quiet",) if name in listed}  # stays last
        listed |= {"json": JSON, **quiet}

    @functools.wraps(command)
    def run(**options: Any) -> None:
        if "read" in own:
            options["read"] = DataOptions(**{name: options.pop(name) for name in fields})
        as_json = answers and options.pop("json")
        try:
            answer = command(**options)
        except KeyboardInterrupt as interrupt:
            complain(f"interrupted; {str(interrupt) or 'nothing was written'}")
            raise typer.Exit(INTERRUPTED) from None
        if answer is not None:
            if as_json:
                print_json(answer.facts)
            else:
                say(answer.text)
            end_if_failed(answer.failed)
            if answer.code:
                raise typer.Exit(answer.code)

    run.__signature__ = inspect.Signature(list(listed.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in listed.items()}
    return run


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"emhrnn {__version__}")
        raise typer.Exit
    return wanted


def _root(
    version: bool = typer.Option(False, "--version", help="Show the version.", callback=_print_version, is_eager=True),
) -> None:
    """Document classification that shows which sentence, which phrase and which word decided."""


# ------------------------------------------------------------------ settings, at the end of a command's help


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
