"""What an audit found, as text and as one self-contained HTML page; rows to correct by hand, and the corrections back
into the data.

    .csv      columns row, id, text, label, suggested, ... and new_label: fill it in, leave it empty to keep the label.
              Read back as a spreadsheet saves it, also as .xlsx
    .json     Label Studio tasks: the label as a choice, phrases as regions. Its JSON export is read back
    .jsonl    Prodigy tasks of the `choice` recipe, phrases as spans. Its `db-out` is read back

Rows are known by their number in the data, counted from 0, which every task carries.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from emhrnn.audit import AuditReport, Reason, Suspect, source_of
from emhrnn.corpus import Columns, Source
from emhrnn.corpus.record import clean_label
from emhrnn.errors import DataError
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.page import page, percent, signed
from emhrnn.files import from_json, write_text
from emhrnn.training.data import Named

COLUMNS = ("row", "id", "label", "new_label", "suggested", "p_label", "p_suggested", "probably_wrong", "why", "text")
SIDES = ("for", "against")


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
    return page(f"Audit of {report.source}", "\n".join(parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells of a column named `text` are markup, all others are escaped."""
    cells = "\n".join(
        "<tr>"
        + "".join(
            f'<td dir="auto">{cell}</td>' if name == "text" else f"<td>{escape(cell)}</td>"
            for name, cell in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    kind = "scores rows" if "text" in head else "settings"
    return f'<table class="{kind}"><thead><tr>{names}</tr></thead><tbody>\n{cells}\n</tbody></table>'


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


def to_csv(report: AuditReport) -> str:
    """The suspects as a table to edit."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for s in report.suspects:
        why = "; ".join(f"{reason.text} ({reason.effect:+.2f})" for reason in s.reasons)
        wrong = "yes" if s.likely else ""
        writer.writerow([s.row, s.id, s.label, "", s.suggested, s.p_label, s.p_suggested, wrong, why, s.text])
    return text.getvalue()


def label_studio_config(report: AuditReport) -> str:
    """The labelling interface that the tasks are for."""
    choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in report.classes)
    sides = "".join(f'<Label value="{side}"/>' for side in SIDES)
    kind = "multiple" if any("|" in s.label for s in report.suspects) else "single"
    return (
        f'<View><Choices name="label" toName="text" choice="{kind}">{choices}</Choices>'
        f'<Labels name="phrase" toName="text">{sides}</Labels><Text name="text" value="$text"/></View>\n'
    )


def to_label_studio(report: AuditReport) -> str:
    """Tasks with the suggested label and the phrases as predictions."""
    return json.dumps([_label_studio_task(suspect) for suspect in report.suspects], ensure_ascii=False, indent=1) + "\n"


def _label_studio_task(suspect: Suspect) -> dict[str, Any]:
    where = {"to_name": "text", "readonly": False}
    choice = {"choices": suspect.suggested.split("|")}
    result = [{"from_name": "label", "type": "choices", **where, "value": choice}]
    for reason in suspect.reasons:
        span = {"start": reason.start, "end": reason.end, "text": reason.text, "labels": [_side(reason.effect)]}
        result.append({"from_name": "phrase", "type": "labels", **where, "value": span})
    data = {"text": suspect.text, "row": suspect.row, "id": suspect.id, "label": suspect.label}
    prediction = {"model_version": "emhrnn audit", "score": suspect.p_suggested, "result": result}
    return {"data": data, "predictions": [prediction]}


def to_prodigy(report: AuditReport) -> str:
    """One task a line, with the suggested label accepted."""
    options = [{"id": name, "text": name} for name in report.classes]
    lines = [
        {
            "text": s.text, "options": options, "accept": s.suggested.split("|"),
            "spans": [{"start": r.start, "end": r.end, "label": _side(r.effect)} for r in s.reasons],
            "meta": {"row": s.row, "id": s.id, "label": s.label, "p_label": s.p_label},
        }
        for s in report.suspects
    ]  # fmt: skip
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def _side(effect: float) -> str:
    return SIDES[effect < 0]


def corrections_in(path: Path) -> dict[int, tuple[str, ...]]:
    """The labels that a person gave, by row: of an edited csv, of an export of Label Studio or of Prodigy.

    Raises:
        DataError: the file cannot be read, or is none of these.
    """
    readers: dict[str, Callable[[Path], dict[int, tuple[str, ...]]]] = {
        ".csv": _from_table, ".xlsx": _from_table, ".json": _from_label_studio, ".jsonl": _from_prodigy,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            f"{path} is not a file of corrections; give the edited .csv or .xlsx, or a labelling tool's .json or .jsonl"
        )
    try:
        return reader(path)
    except (DataError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} cannot be read as corrections ({error}); give what `emhrnn audit` wrote, edited"
        ) from None


def _from_table(path: Path) -> dict[int, tuple[str, ...]]:
    """As a spreadsheet saved it: with any delimiter and encoding."""
    records = Source(path, columns=Columns(text="text", label="new_label", keep=True))
    return {int(record.kept["row"]): _labels(str(record.label)) for record in records if record.kept and record.label}


def _from_label_studio(path: Path) -> dict[int, tuple[str, ...]]:
    found = {}
    for task in from_json(path.read_text(encoding="utf-8-sig")):
        done = [one for one in task.get("annotations", ()) if not one.get("was_cancelled")]
        for part in done[-1]["result"] if done else ():
            if part.get("type") == "choices":
                found[int(task["data"]["row"])] = tuple(map(str, part["value"]["choices"]))
    return found


def _from_prodigy(path: Path) -> dict[int, tuple[str, ...]]:
    tasks = [from_json(line) for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return {int(task["meta"]["row"]): tuple(map(str, task["accept"])) for task in tasks
            if task.get("answer") == "accept" and task.get("accept")}  # fmt: skip


def _labels(cell: str) -> tuple[str, ...]:
    return tuple(name for part in cell.split("|") if isinstance(name := clean_label(part), str))


def corrected(data: Named, corrections: dict[int, tuple[str, ...]], out: Path) -> tuple[int, int]:
    """Write the data with corrected labels as .csv or .jsonl; how many rows there are, and how many have another label.

    Raises:
        DataError: the data is not a table, or has fewer rows than a correction names.
    """
    if out.suffix.lower() not in (".csv", ".jsonl") or out.resolve() == data.path.resolve():
        raise DataError(f"cannot write the corrected data to {out}; give another file that ends in .csv or .jsonl")
    source, rows, changed = source_of(data, keep=True), list[dict[str, Any]](), 0
    for number, record in enumerate(source):
        if record.kept is None:
            raise DataError(f"{record.where} cannot be read, or is not a row of a table; correct it first")
        row, before = dict(record.kept), record.label
        if number in corrections:
            after = corrections[number]
            several = isinstance(row.get(source.taken["label"]), list)
            row[source.taken["label"]] = list(after) if several else "|".join(after)
            changed += set(after) != set(before if isinstance(before, tuple) else [before])
        rows.append(row)
    if corrections and max(corrections) >= len(rows):
        raise DataError(f"row {max(corrections)} is corrected, and {data.path} has {len(rows)} rows; give that data")
    if out.suffix.lower() == ".jsonl":
        write_text(out, "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows))
    else:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(source.present))
        writer.writeheader()
        writer.writerows(rows)
        write_text(out, text.getvalue())
    return len(rows), changed
