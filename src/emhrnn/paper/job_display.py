"""What is running, how far it is, and about how long it will take, at the foot of the terminal."""

import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn


class Display:
    """One line for each running job, and one for all of them. Shows nothing where stderr is no terminal."""

    def __init__(self, total: int, *, show: bool = True) -> None:
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[what]}", style="dim"),
            console=console,
            transient=True,
            disable=not (show and console.is_terminal),
        )
        self._began = time.monotonic()
        self._total = total
        self._all = self._bars.add_task(f"0 of {total}", total=total, what="")
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> "Display":
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()

    def show(self, done: int, running: Mapping[str, tuple[float, str]]) -> None:
        """`done` jobs have ended; those that run have done these shares, and are at these things."""
        for name in self._rows.keys() - running.keys():
            self._bars.remove_task(self._rows.pop(name))
        for name, (share, what) in running.items():
            if name not in self._rows:
                self._rows[name] = self._bars.add_task(name, total=1.0, what=what)
            self._bars.update(self._rows[name], completed=share, what=what)
        work = sum((share for share, _ in running.values()), float(done))
        left = time_left(time.monotonic() - self._began, work, self._total)
        self._bars.update(self._all, completed=work, description=f"{done} of {self._total}", what=left)


def time_left(elapsed: float, work: float, total: int) -> str:
    """At the pace so far; says nothing before there is one."""
    if work <= 0:
        return ""
    minutes, seconds = divmod(round(elapsed * (total - work) / work), 60)
    hours, minutes = divmod(minutes, 60)
    told = f"{hours} h {minutes:02} min" if hours else f"{minutes} min" if minutes >= 5 else f"{minutes}:{seconds:02}"
    return f"about {told} left"
