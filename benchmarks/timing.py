"""Honest timing on a shared machine: never one number alone, always ratios within one run.

Every candidate runs once per round, in rotating order, and a ratio is the median over rounds of the ratios within a
round, so that a slow patch of the machine hits numerator and denominator alike. The clock is the CPU time of the
process: for single-threaded code that is the wall time of an idle machine, whatever else is running.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Times:
    """Seconds per call of each candidate, one entry per round."""

    seconds: Mapping[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])

    def ratio(self, slow: str, fast: str) -> float:
        """How many times longer `slow` takes than `fast`."""
        return statistics.median(a / b for a, b in zip(self.seconds[slow], self.seconds[fast], strict=True))

    def show(self) -> None:
        for name in self.seconds:
            print(f"{name:40s} {1e3 * self.median(name):10.2f} ms")


def interleave(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_up: int = 2,
    clock: Callable[[], float] = time.process_time,
) -> Times:
    """Times candidates against each other. Give time.perf_counter as the clock where they use several threads."""
    names = list(candidates)
    for name in names:
        for _ in range(warm_up):
            candidates[name]()
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for r in range(rounds):
            turn = r % len(names)
            for name in names[turn:] + names[:turn]:
                start = clock()
                candidates[name]()
                seconds[name].append(clock() - start)
    finally:
        gc.enable()
    return Times(seconds)


def matrix_peak(size: int = 768) -> tuple[Callable[[], object], float]:
    """A large fp32 matrix product, to be timed beside the candidates as the machine's attainable peak, and its flop."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    return lambda: a @ b, 2.0 * size**3


def fix_threads(threads: int = 1) -> None:
    torch.set_num_threads(threads)


def options(told: str | None, *, quick: str) -> argparse.ArgumentParser:
    """What every benchmark can be told; `quick` says what it leaves out then."""
    parser = argparse.ArgumentParser(description=told, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object")
    return parser


def report(figures: Mapping[str, float], *, as_json: bool) -> None:
    """The named figures, the last line one JSON object if that is asked for."""
    for name, value in figures.items():
        print(f"{name:40s} {value:10.2f}")
    if as_json:
        print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
