"""Pages of the documentation site that are not files of docs/: a hook of mkdocs (mkdocs.yml).

- README.md is the home page; CONTRIBUTING.md, CHANGELOG.md and results/*.md are pages too. Their links to docs/ and
  results/, absolute in the README, are rewritten, so that they work in the repository, on a package index and here.
- The reference of commands, settings, HTTP calls and records is generated from the code.
"""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
WIDTH = 100  # columns of help texts
BORROWED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
HOSTED = re.compile(r"(?<=\]\()https://github\.com/emhrnn/emhrnn/(?:blob|raw)/main/")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the borrowed and the generated pages."""
    borrowed = {**BORROWED, **{f"results/{path.name}": f"results/{path.name}" for path in records()}}
    for source, page in borrowed.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    generated = {"cli": command_page, "settings": settings_page, "http": http_page, "records": records_page}
    for name, page in generated.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    for picture in (ROOT / "results").rglob("*.svg"):
        files.append(File.generated(config, picture.relative_to(ROOT).as_posix(), abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links between files of the repository at the pages of the site."""
    source = repository_path(page.file.src_uri)

    def rewritten(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(source.parent / match[2])).as_posix()
        return match[1] + os.path.relpath(site_path(target), Path(page.file.src_uri).parent) + match[3]

    parts = FENCE.split(HOSTED.sub("", markdown) if page.file.src_uri == "index.md" else markdown)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """An empty cell of a table's first row is not a heading, for screen readers."""
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the theme's search dialog, for screen readers."""
    return output.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def repository_path(page: str) -> Path:
    """Where the source of a page lies in the repository: `index.md` is README.md, `em.md` is docs/em.md."""
    for source, name in BORROWED.items():
        if page == name:
            return Path(source)
    return Path(page) if page.startswith("results/") else Path("docs") / page


def site_path(target: str) -> str:
    """The page of a file of the repository."""
    return BORROWED.get(target, target.removeprefix("docs/"))


def records() -> list[Path]:
    """The tables in results/."""
    return sorted((ROOT / "results").glob("*.md"))


def command_page() -> str:
    """The help of every command."""
    import typer

    from emhrnn.cli.app import application

    group = typer.main.get_command(application())
    parts = [
        "# Command line",
        "The help of every command, as `emhrnn COMMAND --help` prints it. The settings that `--set` takes are on the "
        "page [Settings](settings.md).",
        *helps(group, "emhrnn", None),
    ]
    return "\n\n".join(parts) + "\n"


def helps(command: Any, name: str, parent: Any) -> list[str]:
    """A heading and the help of a command, then those of its commands."""
    context = command.make_context(name.rsplit(" ", 1)[-1], [], parent=parent, resilient_parsing=True)
    context.max_content_width = context.terminal_width = WIDTH
    text = command.get_help(context).split("\nSettings [")[0].rstrip()
    parts = [f"## `{name}`", f"```text\n{text}\n```"]
    for child in getattr(command, "commands", {}).values():
        parts += helps(child, f"{name} {child.name}", context)
    return parts


def settings_page() -> str:
    """The settings of every model, from the classes that define them."""
    from emhrnn.models.table import MODELS
    from emhrnn.training.config import Config

    sections = {name: Config.model_fields[name].annotation for name in ("data", "training", "em")}
    parts = [
        "# Settings",
        "Give a setting on the command line, `--set training.epochs=3`, in a TOML file, `--config FILE`, or in Python, "
        '`settings={"training.epochs": 3}`. A value that is not allowed, and a setting that the model does not have, '
        "are errors. Some models have defaults of their own for `training` and `data`; they are listed with the model.",
        "## `data`: text and splits",
        setting_rows("data", sections["data"]),
        "## `training`: optimiser and schedule",
        setting_rows("training", sections["training"]),
        "## `em`: models that learn by EM",
        setting_rows("em", sections["em"]),
    ]
    for name, row in MODELS.items():
        own = [f"`{section}.{key}={value}`" for section, keys in row.defaults.items() for key, value in keys.items()]
        parts += [f"## `--model {name}`", f"Source: {row.reference}."]
        parts += [f"Defaults of its own: {', '.join(own)}."] * bool(own)
        parts.append(setting_rows("model", row.config))
    return "\n\n".join(parts) + "\n"


def setting_rows(section: str, config: Any) -> str:
    """A table of the settings of a class: default, allowed values, meaning."""
    schema = config.model_json_schema()["properties"]
    lines = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]
    for name, field in config.model_fields.items():
        if f"{section}.{name}" != "model.name":
            default = "none" if field.default is None else str(field.default)
            default = default.lower() if isinstance(field.default, bool) else default
            cells = (f"`{section}.{name}`", f"`{default}`" if default else "", allowed(schema[name]), field.description)
            lines.append("| " + " | ".join(escaped(str(cell or "")) for cell in cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else "No settings in `model`."


def allowed(schema: dict[str, Any]) -> str:
    """The values that a JSON schema allows, in words."""
    if "anyOf" in schema:
        return " or ".join(filter(None, map(allowed, schema["anyOf"])))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    names = {"boolean": "true, false", "integer": "whole number", "number": "number", "string": "text", "null": "none"}
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]}" for key, sign in limits.items() if key in schema]
    return " ".join([names.get(schema.get("type", ""), ""), *bounds])


def http_page() -> str:
    """The calls of the server and the fields of their JSON, from its OpenAPI description."""
    from fastapi import FastAPI

    from emhrnn.serve.api import api, kserve

    application = FastAPI()
    application.include_router(api)
    application.include_router(kserve)
    schema = application.openapi()
    parts = [
        "# HTTP API",
        "`emhrnn serve RUN` answers these calls; `/openapi.json` of a running server has the same description for "
        "programs. How to start it, tokens, limits and errors: [Serving](../viewer.md).",
    ]
    for path, calls in schema["paths"].items():
        for method, call in calls.items():
            if method != "head":
                answers = [f"{code} {escaped(answer['description'])}" for code, answer in call["responses"].items()]
                parts += [f"## `{method.upper()} {path}`", call.get("description") or call.get("summary", "")]
                parts.append("Answers: " + "; ".join(answers) + ".")
    parts.append("## Fields of the JSON")
    for name, model in schema["components"]["schemas"].items():
        if "properties" in model and name not in ("HTTPValidationError", "ValidationError"):
            rows = [
                f"| `{field}` | {kind(value)} | {escaped(value.get('description', ''))} |"
                for field, value in model["properties"].items()
            ]
            table = ["| field | type | meaning |", "|---|---|---|", *rows]
            parts += [f"### `{name}`", model.get("description", ""), "\n".join(table)]
    return "\n\n".join(parts) + "\n"


def kind(schema: dict[str, Any]) -> str:
    """The type of a field of JSON, in words."""
    if "anyOf" in schema:
        return " or ".join(map(kind, schema["anyOf"]))
    if "$ref" in schema:
        return f"`{schema['$ref'].rsplit('/', 1)[-1]}`"
    if schema.get("type") == "array":
        return f"list of {kind(schema['items'])}"
    return str(schema.get("type", "any"))


def records_page() -> str:
    """Links to the tables in results/, with their titles."""
    rows = []
    for path in records():
        title = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        rows.append(f"- [{title[1] if title else path.stem}](../../results/{path.name})")
    text = "Tables that the documentation cites. Each names the command, the seeds and the commit that made it."
    return "\n\n".join(["# Records", text, "\n".join(rows)]) + "\n"


def escaped(text: str) -> str:
    """For a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
