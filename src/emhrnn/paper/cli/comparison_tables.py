"""A comparison as tables for the terminal."""

from emhrnn.cli.output import aligned, percent
from emhrnn.evaluation.significance import p_value
from emhrnn.paper.comparison.table import Table


def comparison_tables(table: Table) -> str:
    parts = []
    for name in table.sets:
        rows = [["", "accuracy", "sd", "95 %", "macro-F1", f"vs {table.reference}", "p", "parameters", "words/s"]]
        for row in table.of(name):
            against = row.against
            rows.append(
                [
                    row.told + (" (best)" if row.best else ""),
                    percent(row.accuracy),
                    "-" if row.sd is None else f"{100 * row.sd:.1f}",
                    f"{100 * row.low:.1f}-{100 * row.high:.1f}",
                    percent(row.macro_f1),
                    "-" if against is None else f"{100 * against.difference.difference:+.1f}",
                    "-" if against is None else p_value(against.difference.p) + ("*" if against.counts else " "),
                    f"{row.parameters:,}",
                    f"{row.words_per_second:,.0f}",
                ]
            )
        documents = table.sets[name]["parts"]["test"]["documents"]
        parts.append(f"{name} ({documents:,} test documents)\n{aligned(rows)}")
        parts += [f"{models}: {why}" for models, why in table.missing_of(name)]
    return "\n\n".join(parts)
