"""Jobs for the tests, in a module of their own because processes import them by name."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from emhrnn.errors import DataError
from emhrnn.paper.jobs import report_progress


def square(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    print("squaring")
    return {"square": arguments["x"] ** 2, "threads": os.environ["OMP_NUM_THREADS"]}


def fragile(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fails in the way its argument says, as long as `folder/../repaired` is missing."""
    folder.joinpath("seen").touch()
    if not (folder.parent / "repaired").exists():
        match arguments["how"]:
            case "input":
                raise DataError("the soup is cold; warm it up")
            case "bug":
                raise ZeroDivisionError("of ours")
            case "crash":
                os.kill(os.getpid(), signal.SIGKILL)
            case "result":
                return {"x": float("nan")}
    return {"how": arguments["how"]}


def slow_count(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Counts to 4, from where it was stopped. While `folder/../hold` exists, jobs that are `held` stay at 1. `pids` has
    a line for each start."""
    with (folder / "pids").open("a") as file:
        file.write(f"{os.getpid()}\n")
    path = folder / "count"
    count = int(path.read_text()) if path.exists() else 0
    while count < 4:
        while count == 1 and arguments["held"] and (folder.parent / "hold").exists():
            time.sleep(0.01)
        count += 1
        path.write_text(str(count))
        report_progress(folder, count / 4, f"{count} of 4")
    return {"count": count, "starts": len((folder / "pids").read_text().split())}


def half_done(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Ends once its progress is shown, which makes `folder/../shown`; after 300 seconds it gives up."""
    report_progress(folder, 0.5, "epoch 1 of 2")
    deadline = time.monotonic() + 300
    while not (shown := (folder.parent / "shown").exists()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return {"shown": shown}
