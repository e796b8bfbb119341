"""The processes that train one model together, as each of them sees it. Most of the time there is one: `Alone`.

    with joined() as job:
        batch = job.share(whole)         # this process's documents of the batch
        loss = job.part(mean, documents here, documents in the whole batch)
        job.sum_gradients(parameters)    # now the gradient is that of the whole batch

`torchrun` starts several and tells them of each other in the environment; then it is a `Group` (group.py).
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch


@runtime_checkable
class Job(Protocol):
    size: int  # processes

    @property
    def rank(self) -> int:
        """Which of them this is, from 0."""

    @property
    def first(self) -> bool:
        """The first process alone prepares data, writes files and talks."""

    def share(self, whole: Batch) -> Batch:
        """This process's documents of a batch; until the next call, all below is about them."""

    def whole(self, batch: Batch) -> Batch:
        """The batch that `batch` is the share of."""

    def part(self, mean: Tensor, here: int | float, whole: int | float) -> Tensor:
        """A mean over `here` things as its part of the mean over the `whole` of them: the parts add up to it."""

    def sum(self, values: Tensor) -> Tensor:
        """What the shares have, over all of them."""

    def total(self, values: Tensor) -> Tensor:
        """Over all processes, whatever their share of the last batch was."""

    def gather(self, values: Tensor) -> Tensor:
        """A value for each word of the share, to those of the whole batch."""

    def noise(self, generator: torch.Generator) -> torch.Generator:
        """Draws for the rows of the share what they would get in the whole batch."""

    def numbers(self, generator: np.random.Generator) -> np.random.Generator:
        """The same for numpy."""

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each gradient becomes the sum of those of all processes."""

    def largest(self, values: Sequence[int]) -> list[int]:
        """Each of some numbers as the process with the largest has it."""

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Every process gets the first one's tensors."""

    def tell(self, what: str = "train") -> None:
        """From the first process to the others: what they need is on disk now, and what to do with it."""

    def wait(self) -> str:
        """Until the first process has told."""

    def watched(self) -> AbstractContextManager[None]:
        """A block whose failure the others are to know of before it is cleaned up after: what they then miss is only a
        consequence."""


class Alone:
    """One process: nothing to share, nothing to wait for."""

    size, rank, first = 1, 0, True

    def share(self, whole: Batch) -> Batch:
        return whole

    def whole(self, batch: Batch) -> Batch:
        return batch

    def part(self, mean: Tensor, here: int | float, whole: int | float) -> Tensor:
        return mean

    def sum(self, values: Tensor) -> Tensor:
        return values

    def total(self, values: Tensor) -> Tensor:
        return values

    def gather(self, values: Tensor) -> Tensor:
        return values

    def noise(self, generator: torch.Generator) -> torch.Generator:
        return generator

    def numbers(self, generator: np.random.Generator) -> np.random.Generator:
        return generator

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        pass

    def largest(self, values: Sequence[int]) -> list[int]:
        return list(values)

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        pass

    def tell(self, what: str = "train") -> None:
        pass

    def wait(self) -> str:
        return "train"

    def watched(self) -> AbstractContextManager[None]:
        return nullcontext()


ALONE = Alone()
_joined: list[Job] = []


@contextmanager
def joined() -> Iterator[Job]:
    """The job that this process was started for; within it, the same again.

    Raises:
        PeerError: the block failed, and so did another process, which tells why.
    """
    if _joined or not launched():
        yield _joined[-1] if _joined else ALONE
        return
    from emhrnn.training.group import Group  # torch.distributed is imported where there is a job

    group = Group.connect()
    _joined.append(group)
    try:
        yield group
    except BaseException:
        group.fail()
        raise
    finally:
        _joined.pop()
        group.leave()


def launched() -> bool:
    """True in a process that torchrun started."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def name_of_job() -> str:
    """What tells the jobs of torchrun apart, and stays the same when it restarts its processes; empty where there is
    none. By default the run id is "none": then it is the process that started this one."""
    if not launched():
        return ""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return name if name != "none" else f"{os.uname().nodename}-{os.getppid()}"


def restarted() -> bool:
    return launched() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
