"""Rows to correct by hand, and the corrections back into the data.

    .csv      columns row, id, text, label, suggested, ... and new_label: fill it in, leave it empty to keep the label
    .json     Label Studio tasks: the label as a choice, phrases as regions. Its JSON export is read back
    .jsonl    Prodigy tasks of the `choice` recipe, phrases as spans. Its `db-out` is read back

Rows are known by their number in the data, counted from 0, which every task carries.
"""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emhrnn.audit import AuditReport, Suspect, source_of
from emhrnn.corpus.record import clean_label
from emhrnn.errors import DataError
from emhrnn.files import write_text
from emhrnn.training.data import Named

COLUMNS = ("row", "id", "label", "new_label", "suggested", "p_label", "p_suggested", "probably_wrong", "why", "text")
SIDES = ("for", "against")


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
    from xml.sax.saxutils import quoteattr

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
    readers: dict[str, Callable[[str], dict[int, tuple[str, ...]]]] = {
        ".csv": _from_csv, ".json": _from_label_studio, ".jsonl": _from_prodigy,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(
            f"{path} is no file of corrections; give the edited .csv, or .json or .jsonl of a labelling tool"
        )
    try:
        return reader(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        raise DataError(
            f"{path} cannot be read as corrections ({error}); give what `emhrnn audit` wrote, edited"
        ) from None


def _from_csv(text: str) -> dict[int, tuple[str, ...]]:
    rows = list(csv.DictReader(io.StringIO(text)))
    if rows and not {"row", "new_label"} <= set(rows[0]):
        raise ValueError("the columns row and new_label are needed")
    return {int(row["row"]): _labels(row["new_label"]) for row in rows if (row["new_label"] or "").strip()}


def _from_label_studio(text: str) -> dict[int, tuple[str, ...]]:
    found = {}
    for task in json.loads(text):
        done = [one for one in task.get("annotations", ()) if not one.get("was_cancelled")]
        for part in done[-1]["result"] if done else ():
            if part.get("type") == "choices":
                found[int(task["data"]["row"])] = tuple(map(str, part["value"]["choices"]))
    return found


def _from_prodigy(text: str) -> dict[int, tuple[str, ...]]:
    tasks = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {int(task["meta"]["row"]): tuple(map(str, task["accept"])) for task in tasks
            if task.get("answer") == "accept" and task.get("accept")}  # fmt: skip


def _labels(cell: str) -> tuple[str, ...]:
    return tuple(name for part in cell.split("|") if isinstance(name := clean_label(part), str))


def corrected(data: Named, corrections: dict[int, tuple[str, ...]], out: Path) -> tuple[int, int]:
    """Write the data with corrected labels as .csv or .jsonl; how many rows there are, and how many have another label.

    Raises:
        DataError: the data is no table, or has not as many rows as a correction says.
    """
    if out.suffix.lower() not in (".csv", ".jsonl") or out.resolve() == data.path.resolve():
        raise DataError(f"cannot write the corrected data to {out}; give another file that ends in .csv or .jsonl")
    source, rows, changed = source_of(data, keep=True), list[dict[str, Any]](), 0
    for number, record in enumerate(source):
        if record.kept is None:
            raise DataError(f"{record.where} cannot be read, or is no row of a table; correct it first")
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
