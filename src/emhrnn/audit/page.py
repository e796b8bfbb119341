"""What an audit found, as one self-contained HTML page."""

from collections.abc import Iterable, Sequence

from emhrnn.audit import AuditReport, Reason
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.page import page, percent, signed

STYLE = """
.emhrnn table.audit { border-collapse: collapse; width: 100%; }
.emhrnn table.audit th, .emhrnn table.audit td { text-align: left; vertical-align: top; padding: .4em .6em;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.emhrnn table.audit td.text { max-width: 40em; overflow-wrap: anywhere; }
"""


def summary(report: AuditReport) -> str:
    """The counts in two sentences."""
    return (
        f"{report.documents:,} documents, {len(report.classes)} classes. Models that had not seen a row agree with "
        f"{report.accuracy:.1%} of the labels. Probable label errors: {report.errors:,}. Groups of near-duplicates: "
        f"{len(report.duplicates):,}, with different labels: {len(report.conflicts):,}. Outliers: "
        f"{len(report.outliers):,}. Rows that were skipped: {report.skipped:,}."
    )


def report_page(report: AuditReport) -> str:
    """The report as a page without script; everything from the data is escaped."""
    parts = [f"<h1>Audit of {escape(report.source)}</h1>", f"<p>{escape(summary(report))}</p>"]
    if report.suspects:
        rows = (
            [str(s.row), s.id, s.label, s.suggested, percent(s.p_label), percent(s.p_suggested),
             "yes" if s.likely else "", marked(s.text, s.reasons)]
            for s in report.suspects
        )  # fmt: skip
        head = ("row", "id", "label", "suggested", "p(label)", "p(suggested)", "probably wrong", "text")
        parts += [
            "<h2>Labels that are unlikely</h2>",
            '<p class="muted">Blue phrases support the suggested label more than the given one, orange ones less.</p>',
            table(head, rows),
        ]
    if report.alike:
        rows = ([p.one, p.other, percent(p.accuracy), f"{p.documents:,}"] for p in report.alike)
        parts += ["<h2>Classes that are hard to tell apart</h2>", table(("", "", "told apart", "documents"), rows)]
    if report.duplicates:
        rows = ([", ".join(map(str, group)), "yes" if group in report.conflicts else ""] for group in report.duplicates)
        parts += ["<h2>Near-duplicates</h2>", table(("rows", "different labels"), rows)]
    if report.outliers:
        rows = ([str(o.row), o.id, o.why, escape(without_breaks(o.text[:400]))] for o in report.outliers)
        parts += ["<h2>Documents unlike the others</h2>", table(("row", "id", "why", "text"), rows)]
    return page(f"Audit of {report.source}", "\n".join(parts), style=STYLE)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells of a column named `text` are markup, all others are escaped."""
    cells = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="text" dir="auto">{cell}</td>' if name == "text" else f"<td>{escape(cell)}</td>"
            for name, cell in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<table class="audit"><thead><tr>{names}</tr></thead><tbody>\n{cells}\n</tbody></table>'


def marked(text: str, reasons: Sequence[Reason]) -> str:
    """The text, with the phrases that matter in the tints of an explanation."""
    most = max((abs(reason.effect) for reason in reasons), default=0) or 1
    parts, place = [], 0
    for reason in sorted(reasons, key=lambda one: one.start):
        tint = f"{'f' if reason.effect > 0 else 'a'}{max(1, round(5 * abs(reason.effect) / most))}"
        parts.append(escape(without_breaks(text[place : reason.start])))
        shown = escape(without_breaks(text[reason.start : reason.end]))
        parts.append(f'<span class="phrase {tint}" data-effect="{escape(signed(reason.effect))}">{shown}</span>')
        place = reason.end
    return "".join([*parts, escape(without_breaks(text[place:]))])
