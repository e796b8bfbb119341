"""The table as Markdown, one for each set of data."""

from emhrnn.evaluation.significance import p_value
from emhrnn.paper.comparison.table import Against, Table, TableRow

HEAD = (
    "model", "accuracy %", "sd", "seeds", "95 %", "macro-F1 %", "vs reference", "p", "McNemar p",
    "parameters", "training s", "words/s", "documents/s",
)  # fmt: skip


def render_markdown(table: Table) -> str:
    parts = ["# Comparison\n"]
    for name, found in table.sets.items():
        parts.append(f"## {plain(name)}\n\n{describe_set(found)}\n")
        rows = table.of(name)
        if rows:
            lines = [HEAD, ("---", *["---:"] * (len(HEAD) - 1)), *(_cells(row, table) for row in rows)]
            parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
        missing = table.missing_of(name)
        parts += [f"- {plain(models)}: {plain(why)}" for models, why in missing]
        if missing:
            parts.append("")
    parts.append(f"**bold**: best, significantly so. Reference: {plain(table.reference)}. {table.method}\n")
    parts.append(describe_making(table))
    return "\n".join(parts)


def describe_set(found: dict[str, object]) -> str:
    """One line: documents, classes, the split, and what a guess would reach."""
    sizes = found["parts"]
    assert isinstance(sizes, dict)
    train, valid, test = (sizes[name]["documents"] for name in ("train", "valid", "test"))
    told = f"{train:,} documents to train on, {valid:,} to validate, {test:,} to test; "
    classes = found["classes"]
    assert isinstance(classes, list)
    told += f"{len(classes)} classes; split: {found['how']}."
    if found["left_out"]:
        assert isinstance(found["left_out"], dict)
        told += (
            " Left out: " + ", ".join(f"{n:,} rows of {plain(name)!r}" for name, n in found["left_out"].items()) + "."
        )
    if found["majority"] is not None:
        assert isinstance(found["majority"], float)
        told += f" Commonest class: {percent(found['majority'])} %."
    if found.get("settings"):
        assert isinstance(found["settings"], list)
        told += f" Set for all rows: {' '.join(found['settings'])}."
    return told


def describe_making(table: Table) -> str:
    made, settings = table.made_by, table.settings
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    lines = [
        f"- command: `{made.get('command', '')}`",
        f"- commit (of each row in the JSON): {made['commit']}; {versions}",
        f"- machine: {made['machine']}",
        f"- seeds: {', '.join(map(str, table.seeds))}; preset {settings['preset']}"
        + (f", config {settings['config']}" if settings["config"] else "")
        + (f", set {' '.join(settings['set'])}" if settings["set"] else "")
        + (f"; vectors {settings['vectors']}" if settings["vectors"] else "; no pretrained vectors"),
    ]
    return "\n".join(lines) + "\n"


def _cells(row: TableRow, table: Table) -> tuple[str, ...]:
    accuracy = percent(row.accuracy)
    return (
        plain(row.told),
        f"**{accuracy}**" if row.best else accuracy,
        "-" if row.sd is None else percent(row.sd),
        str(row.seeds),
        f"{percent(row.low)}-{percent(row.high)}",
        percent(row.macro_f1),
        *_against(row.against, row.model == table.reference),
        f"{row.parameters:,}",
        f"{row.training_seconds:,.0f}",
        f"{row.words_per_second:,.0f}",
        f"{row.documents_per_second:,.0f}",
    )


def _against(against: Against | None, is_reference: bool) -> tuple[str, str, str]:
    if against is None:
        return ("reference" if is_reference else "-", "-", "-")
    mark = " *" if against.counts else ""
    return f"{100 * against.difference.difference:+.1f}{mark}", p_value(against.difference.p), p_value(against.mcnemar)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def plain(text: str) -> str:
    """Text that Markdown takes as it is, on one line."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
