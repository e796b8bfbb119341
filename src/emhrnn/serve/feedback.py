"""What people correct: one JSON object per line in RUN.feedback.jsonl, beside the run folder, for `emhrnn train`.

    {"text": ..., "label": ..., "spans": [[start, end], ...], "predicted": ..., "when": ..., "who": ...}

`spans` are the phrases that should have decided, in characters of the text. Lines are only ever added, each with one
write and one fsync, so that a crash leaves no half of one.
"""

import json
import os
import threading
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse, Response

from emhrnn.files import from_json
from emhrnn.serve.engine import RequestText, ServedRun, state_of
from emhrnn.serve.guard import for_people
from emhrnn.serve.limits import RefusedError, check_aside, check_texts
from emhrnn.serve.pages import form_of, rendered
from emhrnn.training.pack import beside

pages = APIRouter(include_in_schema=False)
FILE = ".feedback.jsonl"  # after the name of the run
SHOWN = 200  # of the newest lines
_writing = threading.Lock()


def append(path: Path, entry: dict[str, Any], most: int) -> None:
    """Add a line. Raises a RefusedError where the file cannot be written, or has `most` bytes."""
    line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        with _writing, path.open("a+b") as file:
            if size := file.tell():
                file.seek(size - 1)
                if file.read() != b"\n":  # the line before was cut by a kill or a full disk: keep this one apart
                    line = b"\n" + line
            if file.tell() + len(line) > most:
                raise RefusedError(507, f"{path.name} is full ({most >> 20} MB); move it away, and save again")
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise RefusedError(
            507, f"{path.name} cannot be written ({error.strerror}); see the folder of the run"
        ) from None


def newest(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The last lines, the newest first, and how many there are. A line that is not a JSON object is left out."""
    lines: deque[bytes] = deque(maxlen=SHOWN)
    count = 0
    if path.is_file():
        with path.open("rb") as file:
            for count, line in enumerate(file, start=1):  # noqa: B007
                lines.append(line)
    return list(_objects(reversed(lines))), count


def _objects(lines: Iterable[bytes]) -> Iterable[dict[str, Any]]:
    for line in lines:
        try:
            entry = from_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("text"), str):
            yield {"label": "", "spans": [], "predicted": "", "when": "", "who": "", **entry}


@pages.get("/feedback")
async def feedback_page(request: Request, saved: bool = False, run: str = "") -> Response:
    """What was saved of a run, the newest first."""
    chosen = state_of(request).named(run or None)
    path = beside(chosen.folder, FILE)
    entries, count = newest(path)
    learns = hasattr(chosen.model.run.config.model, "rationales")  # from phrases that people marked
    return rendered(
        request, "feedback.html", entries=entries, count=count, file=path.name, saved=saved, chosen=chosen,
        continues=chosen.model.run.model.parameter_count > 0 and not chosen.reads_ids,
        marked=learns and any(entry["spans"] for entry in entries),
    )  # fmt: skip


@pages.get("/feedback.jsonl")
async def download(request: Request, run: str = "") -> Response:
    """The file itself."""
    path = beside(state_of(request).named(run or None).folder, FILE)
    if not path.is_file():
        raise RefusedError(404, "nothing has been saved yet")
    return FileResponse(path, media_type="application/x-ndjson", filename=path.name)


@pages.post("/feedback")
async def save(request: Request) -> Response:
    """Save the right label of a text, and the phrases that should have decided."""
    state, form = state_of(request), await form_of(request)
    served, text = state.named(form.get("run") or None), form.get("text", "")
    await check_aside(check_texts, [text], state.limits)
    label = _label(served, form.get("label", ""))
    written = RequestText(text, form.get("user") or None, form.get("product") or None)
    entry = {
        "text": text,
        "label": label,
        "spans": _spans(form.get("spans", ""), len(text)),
        **{name: value for name, value in written._asdict().items() if name != "text" and value},
        "predicted": form.get("predicted", ""),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        **({"who": who} if (who := request.scope.get("who")) else {}),
    }
    append(beside(served.folder, FILE), entry, state.limits.feedback_bytes)
    if for_people(request.url.path, request.headers.get("accept", "")):
        return RedirectResponse("/feedback?saved=1", status_code=303)
    return JSONResponse({"saved": True})


def _label(served: ServedRun, given: str) -> str | list[str]:
    run = served.model.run
    labels = [part for part in given.split("\n") if part] if run.multi_label else [given]
    unknown = [name for name in labels if name not in run.classes]
    if unknown:
        raise RefusedError(422, f"{unknown[0][:80]!r} is none of the model's classes; choose one of the list")
    return labels if run.multi_label else given


def _spans(given: str, length: int) -> list[list[int]]:
    """From `12-30,41-52`."""
    try:
        spans = sorted([int(place) for place in part.split("-", 1)] for part in given.split(",") if part)
    except ValueError:
        raise RefusedError(422, "spans are pairs of characters, as 12-30,41-52") from None
    if any(len(span) != 2 or not 0 <= span[0] < span[1] <= length for span in spans):
        raise RefusedError(422, f"spans must lie inside the text of {length:,} characters")
    return spans
