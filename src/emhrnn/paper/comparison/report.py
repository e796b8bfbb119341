"""A comparison to read: as Markdown, and for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from emhrnn.cli.output import aligned
from emhrnn.paper.comparison.table import ComparisonTable, TableRow
from emhrnn.paper.rendering import markdown_table, percent, plain
from emhrnn.paper.significance import p_value

HEAD = (
    "model", "accuracy %", "sd", "seeds", "95 %", "macro-F1 %", "vs reference", "p", "McNemar p",
    "parameters", "training s", "words/s", "documents/s",
)  # fmt: skip


def render_markdown(table: ComparisonTable) -> str:
    """The table of each set, then what the figures mean and how they were made."""
    parts = ["# Comparison\n"]
    for name, found in table.sets.items():
        parts.append(f"## {plain(name)}\n\n{describe_set(found)}\n")
        if rows := table.of(name):
            parts.append(rows_table(rows, table.reference))
        missing = table.missing_of(name)
        parts += [f"- {plain(models)}: {plain(why)}" for models, why in missing]
        if missing:
            parts.append("")
    parts.append(f"**bold**: best, significantly so. Reference: {plain(table.reference)}. {table.method}\n")
    parts.append(describe_making(table))
    return "\n".join(parts)


def rows_table(rows: Sequence[TableRow], reference: str, head: Sequence[str] = HEAD) -> str:
    """The rows of one set as Markdown; `head` picks columns of `row_cells`."""
    return markdown_table(head, [[row_cells(row, reference)[name] for name in head] for row in rows])


def row_cells(row: TableRow, reference: str) -> dict[str, str]:
    """What is shown of a row, by the names of the columns."""
    against, accuracy = row.against, percent(row.accuracy)
    difference = "reference" if row.model == reference else "-"
    if against is not None:
        difference = f"{100 * against.difference.difference:+.1f}{' *' if against.counts else ''}"
    return {
        "model": plain(row.model),
        "accuracy %": f"**{accuracy}**" if row.best else accuracy,
        "sd": "-" if row.sd is None else percent(row.sd),
        "seeds": str(row.seeds),
        "95 %": f"{percent(row.low)}-{percent(row.high)}",
        "macro-F1 %": percent(row.macro_f1),
        "vs reference": difference,
        "p": "-" if against is None else p_value(against.difference.p),
        "McNemar p": "-" if against is None else p_value(against.mcnemar),
        "parameters": f"{row.parameters:,}",
        "training s": f"{row.training_seconds:,.0f}",
        "words/s": f"{row.words_per_second:,.0f}",
        "documents/s": f"{row.documents_per_second:,.0f}",
    }


def terminal_tables(table: ComparisonTable) -> str:
    """The table of each set, for the terminal."""
    head = [name for name in HEAD if name not in ("seeds", "McNemar p", "training s", "documents/s")]
    parts = []
    for name, found in table.sets.items():
        shown = [
            [row_cells(row, table.reference)[column].replace("**", "") for column in head] for row in table.of(name)
        ]
        for line, row in zip(shown, table.of(name), strict=True):
            line[0] = row.model + " (best)" * row.best
        told = ["", *head[1:]]
        told[head.index("vs reference")] = f"vs {table.reference}"
        documents = found["parts"]["test"]["documents"]
        parts.append(f"{name} ({documents:,} test documents)\n{aligned([told, *shown])}")
        parts += [f"{models}: {why}" for models, why in table.missing_of(name)]
    return "\n\n".join(parts)


def describe_set(found: Mapping[str, Any]) -> str:
    """One line: documents, classes, the split, and the accuracy of the commonest class."""
    train, valid, test = (found["parts"][name]["documents"] for name in ("train", "valid", "test"))
    if folds := found.get("folds"):
        told = (
            f"{test:,} documents, each tested once in one of {folds} folds, with {train:,} to train on and {valid:,} "
        )
        told += "to validate; "
    else:
        told = f"{train:,} documents to train on, {valid:,} to validate, {test:,} to test; "
    told += f"{len(found['classes'])} classes; split: {found['how']}."
    if left_out := found["left_out"]:
        told += " Left out: " + ", ".join(f"{n:,} rows of {plain(name)!r}" for name, n in left_out.items()) + "."
    if found["majority"] is not None:
        told += f" Commonest class: {percent(found['majority'])} %."
    if found.get("settings"):
        told += f" Set for all rows: {' '.join(found['settings'])}."
    return told


def describe_making(table: ComparisonTable) -> str:
    """A list: command, commits, machine, seeds and settings."""
    made, settings = table.made_by, table.settings
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    lines = [
        f"command: `{made.get('command', '')}`",
        f"commit (of each row in the JSON): {made['commit']}; {versions}",
        f"machine: {made['machine']}",
        f"seeds: {', '.join(map(str, table.seeds))}; preset {settings['preset']}"
        + (f", config {settings['config']}" if settings["config"] else "")
        + (f", set {' '.join(settings['set'])}" if settings["set"] else "")
        + (f"; vectors {settings['vectors']}" if settings["vectors"] else "; no pretrained vectors"),
    ]
    return "".join(f"- {line}\n" for line in lines)
