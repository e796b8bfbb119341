"""The process of one job: call the function, and write down what came of it. `jobs.py` starts it."""

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emhrnn.errors import EmhrnnError
from emhrnn.files import write_json

GRACE = 30.0  # seconds to end in, once asked to
LOG, PROGRESS, PLACES = "log.txt", "progress.json", "places.json"
TERMINATED = 143


def report_progress(folder: Path, share: float, what: str) -> None:
    """Called by a job: it has done this share of its work, and is at `what`."""
    write_json(folder / PROGRESS, {"share": share, "what": what})


def main(target: str, record: Path, folder: Path) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with _alone(folder):
        _run(target, record, folder)


def _run(target: str, record: Path, folder: Path) -> None:
    known: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    places: dict[str, str | None] = json.loads((folder / PLACES).read_text(encoding="utf-8"))
    began = time.perf_counter()
    outcome: dict[str, Any]
    try:
        outcome = {"state": "done", "result": _call(target, {**known["arguments"], **places}, folder)}
    except EmhrnnError as error:
        outcome = {"state": "failed", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        outcome = {"state": "failed", "error": f"{type(error).__name__}: {error}; see {folder / LOG}"}
    seconds = round(time.perf_counter() - began, 3)
    write_json(record, {"name": known["name"], "arguments": known["arguments"], "seconds": seconds, **outcome})


def _call(target: str, arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    module, _, name = target.partition(":")
    result = getattr(importlib.import_module(module), name)(arguments, folder)
    json.dumps(result, allow_nan=False)  # raises for what cannot be kept, while there still is a way to tell
    return dict(result)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """After kill -9 of the parent, the job's last process may still be saving where it is: wait for its end."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _end_with_parent() -> None:
    """Nothing is ever written to stdin: its end is the end of the process that started this one."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(TERMINATED)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
