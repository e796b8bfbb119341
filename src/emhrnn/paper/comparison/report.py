"""A comparison to read: as Markdown, for the terminal, and as one self-contained page with error bars, columns to sort
by, light and dark."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from emhrnn.cli.output import aligned
from emhrnn.explain.escape import escape
from emhrnn.explain.page import page
from emhrnn.explain.svg import round_ticks
from emhrnn.paper.comparison.table import Against, ComparisonTable, TableRow
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
        "model": plain(row.told),
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
            line[0] = row.told + " (best)" * row.best
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
    """`making_lines` as a list."""
    return "".join(f"- {line}\n" for line in making_lines(table))


def making_lines(table: ComparisonTable) -> list[str]:
    """Command, commits, machine, seeds and settings."""
    made, settings = table.made_by, table.settings
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return [
        f"command: `{made.get('command', '')}`",
        f"commit (of each row in the JSON): {made['commit']}; {versions}",
        f"machine: {made['machine']}",
        f"seeds: {', '.join(map(str, table.seeds))}; preset {settings['preset']}"
        + (f", config {settings['config']}" if settings["config"] else "")
        + (f", set {' '.join(settings['set'])}" if settings["set"] else "")
        + (f"; vectors {settings['vectors']}" if settings["vectors"] else "; no pretrained vectors"),
    ]


WIDTH, MARGIN = 176, 8  # of an error bar's drawing

HEADS = (
    ("model", "words"),
    ("accuracy %", "number"),
    ("", ""),
    ("vs reference", "number"),
    ("macro-F1 %", "number"),
    ("parameters", "number"),
    ("training", "number"),
    ("words/s", "number"),
    ("documents/s", "number"),
)


def render_html(table: ComparisonTable) -> str:
    """One self-contained page."""
    seeds = "One seed" if len(table.seeds) == 1 else f"{len(table.seeds)} seeds"
    body = [
        "<h1>Comparison</h1>",
        f"<p>{escape(_best(table))}. Reference: <strong>{escape(table.reference)}</strong>. {seeds}.</p>",
        *(_section(table, name) for name in table.sets),
        f'<h2>How to read this</h2><p class="muted">{escape(table.method)} Dots are means, small dots single seeds, '
        "the dashed line is the reference.</p>",
        "<footer>" + "".join(f"<p>{escape(line)}</p>" for line in making_lines(table)) + "</footer>",
    ]
    return page("Comparison", "\n".join(body), style=_asset("table.css"), script=_asset("sort.js"))


@cache
def _asset(name: str) -> str:
    return files("emhrnn.paper.comparison").joinpath(name).read_text(encoding="utf-8")


def _best(table: ComparisonTable) -> str:
    """Which row is best on which sets."""
    sets: dict[str, list[str]] = {}
    for row in table.rows:
        if row.best:
            sets.setdefault(row.model, []).append(row.data)
    told = "; ".join(f"{model} is best on {', '.join(names)}" for model, names in sets.items())
    return told or "No row is significantly best on any set"


def _section(table: ComparisonTable, name: str) -> str:
    rows = table.of(name)
    missing = table.missing_of(name)
    parts = [f'<h2>{escape(name)}</h2><p class="muted">{escape(describe_set(table.sets[name]))}</p>']
    if rows:
        scale = Scale.of(rows)
        reference = next((row.accuracy for row in rows if row.model == table.reference), None)
        lines = "\n".join(_line(row, scale, reference) for row in rows)
        parts.append(
            f'<div class="card scroll"><table class="compare"><thead><tr>{_head(scale)}</tr></thead>\n'
            f"<tbody>\n{lines}\n</tbody></table></div>"
        )
    if missing:
        notes = "".join(f"<li>{escape(models)}: {escape(why)}</li>" for models, why in missing)
        parts.append(f'<ul class="missing muted">{notes}</ul>')
    return "\n".join(parts)


class Scale:
    """From accuracies to places in the drawing; the same for all rows of a set, so that bars can be compared."""

    def __init__(self, low: float, high: float) -> None:
        self.ticks = round_ticks(low, high)

    @classmethod
    def of(cls, rows: list[TableRow]) -> "Scale":
        return cls(min(row.low for row in rows), max(row.high for row in rows))

    def at(self, accuracy: float) -> str:
        low, high = self.ticks[0], self.ticks[-1]
        return f"{MARGIN + (accuracy - low) / (high - low) * (WIDTH - 2 * MARGIN):.1f}"


def _head(scale: Scale) -> str:
    ends = "".join(
        f'<text x="{scale.at(tick)}" y="12" text-anchor="middle">{100 * tick:g}</text>'
        for tick in (scale.ticks[0], scale.ticks[-1])
    )
    axis = f'<svg viewBox="0 0 {WIDTH} 16" aria-hidden="true">{ends}</svg>'
    return "".join(
        f'<th scope="col" data-sort="{kind}">{escape(name)}</th>' if name else f'<td class="plot">{axis}</td>'
        for name, kind in HEADS
    )


def _line(row: TableRow, scale: Scale, reference: float | None) -> str:
    tag = ' <span class="tag">best</span>' if row.best else ""
    sd = "" if row.sd is None else f"± {100 * row.sd:.1f}"
    cells = [
        f'<th scope="row" data-value="{escape(row.model)}">{escape(row.told)}{tag}</th>',
        _cell(row.accuracy, f'{100 * row.accuracy:.1f} <span class="sd">{sd}</span>', "accuracy"),
        f'<td class="plot">{_error_bar(row, scale, reference)}</td>',
        _difference(row.against),
        _cell(row.macro_f1, f"{100 * row.macro_f1:.1f}"),
        _cell(row.parameters, f"{row.parameters:,}"),
        _cell(row.training_seconds, _duration(row.training_seconds)),
        _cell(row.words_per_second, f"{row.words_per_second:,.0f}"),
        _cell(row.documents_per_second, f"{row.documents_per_second:,.0f}"),
    ]
    return f"<tr{' class=best' if row.best else ''}>{''.join(cells)}</tr>"


def _cell(value: float | int, shown: str, kind: str = "") -> str:
    return f'<td data-value="{value}"{f" class={kind}" if kind else ""}>{shown}</td>'


def _difference(against: Against | None) -> str:
    if against is None:
        return '<td class="same" data-value="0">–</td>'
    points, counts = 100 * against.difference.difference, against.counts
    kind = "same" if not counts else "up" if points > 0 else "down"
    told = f"{points:+.1f}".replace("-", "−")
    p = f"p {p_value(against.difference.p)}, McNemar {p_value(against.mcnemar)}".replace("<", "&lt;")
    return f'<td data-value="{points}"><span class="{kind}">{told}</span><small>{p}</small></td>'


def _error_bar(row: TableRow, scale: Scale, reference: float | None) -> str:
    middle, at = 14, scale.at(row.accuracy)
    rule = (
        ""
        if reference is None
        else f'<line class="rule" x1="{scale.at(reference)}" x2="{scale.at(reference)}" y2="28"/>'
    )
    seeds = "".join(f'<circle class="seed" cx="{scale.at(one)}" cy="{middle + 8}" r="2"/>' for one in row.accuracies)
    told = f"{100 * row.accuracy:.1f} %, 95 % interval {100 * row.low:.1f} to {100 * row.high:.1f}"
    return (
        f'<svg viewBox="0 0 {WIDTH} 28" role="img" aria-label="{told}">{rule}'
        f'<line class="whisker" x1="{scale.at(row.low)}" x2="{scale.at(row.high)}" y1="{middle}" y2="{middle}"/>'
        f'{seeds if row.seeds > 1 else ""}<circle class="mean" cx="{at}" cy="{middle}" r="5"/></svg>'
    )


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
