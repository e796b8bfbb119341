"""One job of Table 1: one method on one reading with one seed. And the oracle of a reading, as a job of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import exact_blocks, local_blocks, window_blocks
from emhrnn.errors import ConfigError
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.job_process import report_progress
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN
from emhrnn.paper.provenance import commit
from emhrnn.paper.simulation.detectors import DETECTORS, learn_detector
from emhrnn.paper.simulation.generator import World, make_world
from emhrnn.paper.simulation.joint import ChooseBlocks, learn_all
from emhrnn.paper.simulation.known import learn_indicator
from emhrnn.paper.simulation.oracle import consult
from emhrnn.paper.simulation.recovery import recovered, with_label, without_label
from emhrnn.paper.simulation.sizes import Sizes


@dataclass(frozen=True)
class EMMethod:
    """Which free positions an E-step enumerates together; `printed_q` weighs them as the paper prints it (A1)."""

    choose_blocks: ChooseBlocks
    printed_q: bool = False


def _window(length: int) -> ChooseBlocks:
    return lambda batch, _: window_blocks(batch, length)


EM_METHODS: dict[str, EMMethod] = {
    "window-1": EMMethod(_window(1)),
    "window-2": EMMethod(_window(2)),
    "window-5": EMMethod(_window(5)),
    "local": EMMethod(lambda batch, random: local_blocks(batch, generator=random)),
    "exact": EMMethod(lambda batch, _: exact_blocks(batch)),
    "printed-q": EMMethod(lambda batch, _: exact_blocks(batch), printed_q=True),
}
METHODS = (*DETECTORS, *EM_METHODS)
ORACLE = "oracle"

Model = EMHRNN | HMRNN | MHSRNN


@dataclass(frozen=True)
class Point:
    """Recovery of all test positions without the label, after an epoch."""

    epoch: int
    test: float


def run_job(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """For `run_jobs`: arguments reading, method, seed, and sizes as `Sizes.arguments` gives them."""
    torch.set_num_threads(1)
    sizes = Sizes.from_arguments(arguments["sizes"])
    world = make_world(arguments["reading"], arguments["seed"], train=sizes.train, test=sizes.test)
    if arguments["method"] == ORACLE:
        result = asdict(consult(world.teacher, world.test, world.z_test))
    else:
        result = learn_and_measure(world, arguments["method"], arguments["seed"], sizes, folder)
    return {**result, "commit": commit(), "cpu_seconds": process_time()}  # of the whole process


def learn_and_measure(world: World, method: str, seed: int, sizes: Sizes, folder: Path) -> dict[str, Any]:
    clock = _Clock()
    points: list[Point] = []

    def watch(epoch: int, model: Model) -> None:
        with clock.stopped():
            test = recovered(world.test, _found(model, world.test), world.z_test).all
            points.append(Point(epoch + 1, test))
            report_progress(folder, (epoch + 1) / sizes.epochs(world.reading, method), f"test {100 * test:.1f} %")

    model = _learn(world, method, seed, sizes, watch)
    seconds = clock.seconds
    measured = {}
    for name, (batch, z) in zip(("train", "test"), _splits(world), strict=True):
        measured[name] = asdict(recovered(batch, _found(model, batch), z))
        if isinstance(model, EMHRNN):
            found, evidence = with_label(model, batch)
            measured[name] |= {f"{k}_with_label": v for k, v in asdict(recovered(batch, found, z)).items()}
            measured[name]["log_evidence"] = evidence
    return {
        **measured,
        "points": [asdict(point) for point in points],
        "seconds": seconds,
        "seconds_per_epoch": seconds / len(points),
    }


def _learn(world: World, method: str, seed: int, sizes: Sizes, watch: Callable[[int, Model], None]) -> Model:
    if method in DETECTORS:
        return learn_detector(world, method, seed, sizes.detector, watch)
    if method not in EM_METHODS:
        raise ConfigError(f"unknown method {method!r}; use some of {', '.join(METHODS)}")
    how = EM_METHODS[method]
    if world.reading == "vocabulary":
        return learn_all(world, how.choose_blocks, seed, sizes.joint, printed_q=how.printed_q, watch=watch)
    return learn_indicator(world, how.choose_blocks, seed, sizes.rounds, printed_q=how.printed_q, watch=watch)


@torch.no_grad()
def _found(model: Model, batch: Batch) -> Bool[np.ndarray, " words"]:
    if isinstance(model, EMHRNN):
        return without_label(model, batch)
    z: np.ndarray = model(batch).z
    return z


def _splits(world: World) -> tuple[tuple[Batch, Bool[np.ndarray, " words"]], ...]:
    return (world.train, world.z_train), (world.test, world.z_test)


class _Clock:
    """CPU seconds that learning took: other programs hardly disturb them, and measuring in between does not count."""

    def __init__(self) -> None:
        self._began = process_time()
        self._stopped = 0.0

    @property
    def seconds(self) -> float:
        return process_time() - self._began - self._stopped

    @contextmanager
    def stopped(self) -> Iterator[None]:
        began = process_time()
        try:
            yield
        finally:
            self._stopped += process_time() - began
