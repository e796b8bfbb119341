"""Processor time of all processes under this one, also of those that nobody waits for."""

import os
import threading
from contextlib import suppress
from pathlib import Path

INTERVAL = 0.2  # seconds between two looks; what a process uses after the last one is not seen


class Descendants:
    """`with Descendants() as seen: ...`, then `seen.seconds`."""

    def __enter__(self) -> "Descendants":
        self._ticks: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL):
            parents, ticks = {}, {}
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError, IndexError):  # it has ended
                    fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
                    parents[int(folder.name)], ticks[int(folder.name)] = (
                        int(fields[1]),
                        int(fields[11]) + int(fields[12]),
                    )
            for process in ticks:
                if os.getpid() in _line(process, parents):
                    self._ticks[process] = ticks[process]


def _line(process: int, parents: dict[int, int]) -> list[int]:
    """Its parent, the parent of that, and so on."""
    line = []
    while (process := parents.get(process, 0)) > 1:
        line.append(process)
    return line
