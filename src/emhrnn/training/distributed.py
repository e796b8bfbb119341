"""The processes that train one model together, as each of them sees it. Most of the time there is one: `ALONE`.

    with joined() as job:
        batch = job.share(whole)         # this process's documents of the batch
        loss = job.part(mean, documents here, documents in the whole batch)
        job.sum_gradients(parameters)    # now the gradient is that of the whole batch

`torchrun` starts several and describes them in the environment; then it is a `ProcessGroup`. The documents of a process
are neighbours in the batch, with about as many words as any other process has; so values of words, put one after the
other in the order of the processes, are those of the whole batch. A process that gets none, because the batch has fewer
documents than there are processes, repeats the first one, and nothing of it counts: so all meet in the same exchanges.

What is exchanged in a step: gradients (one sum), logits and phrase ends of the words, and a few numbers.
"""

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, PeerError, TrainingError
from emhrnn.layers.dropout import Place, SharedGenerator
from emhrnn.shapes import Int64
from emhrnn.training.run import is_run, read_description

PATIENCE = timedelta(minutes=30)  # for one exchange; who prepares data or validates may take longer
_POLL = 0.1  # seconds


class Processes:
    """The processes that train one model together, as each of them sees it; here one, alone."""

    size, rank = 1, 0  # how many there are, and which of them this is

    @property
    def first(self) -> bool:
        """The first process alone prepares data, writes files and talks."""
        return self.rank == 0

    def share(self, whole: Batch) -> Batch:
        """This process's documents of a batch; until the next call, all below is about them."""
        return whole

    def whole(self, batch: Batch) -> Batch:
        """The batch that `batch` is the share of."""
        return batch

    def part(self, mean: Tensor, here: int | float, whole: int | float) -> Tensor:
        """A mean over `here` things as its part of the mean over the `whole` of them: the parts add up to it."""
        return mean

    def sum(self, values: Tensor) -> Tensor:
        """What the shares have, over all of them."""
        return values

    def total(self, values: Tensor) -> Tensor:
        """Over all processes, whatever their share of the last batch was."""
        return values

    def gather(self, values: Tensor) -> Tensor:
        """A value for each word of the share, to those of the whole batch."""
        return values

    def noise(self, generator: torch.Generator) -> torch.Generator:
        """Draws for the rows of the share what they would get in the whole batch."""
        return generator

    def numbers(self, generator: np.random.Generator) -> np.random.Generator:
        """The same for numpy."""
        return generator

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Each gradient becomes the sum of those of all processes."""

    def largest(self, values: Sequence[int]) -> list[int]:
        """Each of some numbers as the process with the largest has it."""
        return list(values)

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Every process gets the first one's tensors."""

    def tell(self, what: str = "train") -> None:
        """From the first process to the others: what they need is on disk now, and what to do with it."""

    def wait(self) -> str:
        """Until the first process has told."""
        return "train"

    def watched(self) -> AbstractContextManager[None]:
        """A block whose failure the others are to know of before it is cleaned up after: what they then miss is only a
        consequence."""
        return nullcontext()


ALONE = Processes()
_joined: list[Processes] = []


@contextmanager
def joined() -> Iterator[Processes]:
    """The job that this process was started for; within it, the same again.

    Raises:
        PeerError: the block failed, and so did another process, which tells why.
    """
    if _joined or not launched():
        yield _joined[-1] if _joined else ALONE
        return
    group = ProcessGroup.connect()
    _joined.append(group)
    try:
        yield group
        group.meet()
    except BaseException:
        group.fail()
        raise
    finally:
        _joined.pop()
        group.leave()


def cuts(lengths: Int64[np.ndarray, " documents"], parts: int) -> list[int]:
    """Where to cut documents into `parts` with about the same words each; at least one document in each part."""
    ends = np.cumsum(lengths)
    places = [0]
    for part in range(1, parts):
        nearest = int(np.searchsorted(ends - lengths / 2, ends[-1] * part / parts))
        places.append(min(max(nearest, places[-1] + 1), len(lengths) - parts + part))
    return [*places, len(lengths)]


@contextmanager
def _exchange() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            f"another process of this job has ended, so this one cannot continue ({str(error).splitlines()[0]}); "
            "torchrun --max-restarts N starts all of them again from the last checkpoint, or use --resume"
        ) from None


class ProcessGroup(Processes):
    """Several processes that torchrun started, each with its share of every batch."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self.size, self.rank = size, rank
        self._store = store
        self._failed = False  # this process, before any other
        self._told = 0  # how often: several models may be trained one after the other
        self._whole: Batch | None = None
        self._counts = True  # False: the share is a stand-in
        self._words: list[int] = []  # of each process

    @classmethod
    def connect(cls) -> "ProcessGroup":
        """With the processes that torchrun started, here and on other machines."""
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        hosts = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        try:
            store = TCPStore(host, port, world_size=size, is_master=hosts, timeout=timedelta(minutes=5))
            dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"process {rank} of {size} cannot reach the others at {host}:{port} ({str(error).splitlines()[0]}); "
                "give every torchrun the same --rdzv-endpoint, one that all machines can reach"
            ) from None
        return cls(PrefixStore("emhrnn", store), rank, size)

    def meet(self) -> None:
        """Wait for the others, so that none closes its connections while another still uses them."""
        with suppress(RuntimeError):  # one has failed, and says so itself
            dist.barrier()

    def leave(self) -> None:
        """Close the connections; after the last exchange of all processes, or after a failure."""
        dist.destroy_process_group()

    # ------------------------------------------------------------------ shares

    def share(self, whole: Batch) -> Batch:
        parts = min(self.size, whole.n_documents)
        places = cuts(whole.document_lengths, parts)
        words = np.diff(whole.word_offsets[places]).tolist()
        self._whole, self._counts = whole, self.rank < parts
        self._words = words + [0] * (self.size - parts)
        mine = self.rank if self._counts else 0
        return whole.part(places[mine], places[mine + 1])

    def whole(self, batch: Batch) -> Batch:
        assert self._whole is not None
        return self._whole

    def part(self, mean: Tensor, here: int | float, whole: int | float) -> Tensor:
        return mean * (here / whole if self._counts and whole else 0.0)

    def noise(self, generator: torch.Generator) -> torch.Generator:
        return SharedGenerator(generator, self._place)

    def numbers(self, generator: np.random.Generator) -> np.random.Generator:
        return _SharedNumbers(generator, self._place)

    def _place(self, rows: int) -> tuple[int, int]:
        """Rows of words, sentences, blocks or documents, of which only the E-step may know how many there are."""
        counts = self._each(rows if self._counts else 0)
        return (sum(counts[: self.rank]) if self._counts else 0), sum(counts)

    # ------------------------------------------------------------------ exchanges

    def sum(self, values: Tensor) -> Tensor:
        return self.total(values if self._counts else torch.zeros_like(values))

    def total(self, values: Tensor) -> Tensor:
        total = values.detach().to(torch.float64, copy=True)
        with _exchange():
            dist.all_reduce(total)
        return total.to(values.dtype)

    def largest(self, values: Sequence[int]) -> list[int]:
        result = torch.tensor(values)
        with _exchange():
            dist.all_reduce(result, dist.ReduceOp.MAX)
        return [int(value) for value in result]

    def gather(self, values: Tensor) -> Tensor:
        return self._gather(values.detach(), self._words)

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        for tensor in tensors:
            with _exchange():
                dist.broadcast(tensor.detach(), 0)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        every = list(parameters)
        kinds = self.largest([0 if p.grad is None else 1 + p.grad.is_sparse for p in every])
        # A parameter that no process has a gradient for is not of this phase, and must not be stepped.
        ours = [p for p, kind in zip(every, kinds, strict=True) if kind]
        if not ours:
            return
        rows = [self._rows(p) if kind == 2 else None for p, kind in zip(every, kinds, strict=True) if kind]
        flat = [self._dense(p, r).reshape(-1) for p, r in zip(ours, rows, strict=True)]
        total = torch.cat(flat)
        with _exchange():
            dist.all_reduce(total)
        for p, r, values in zip(ours, rows, torch.split(total, [len(part) for part in flat]), strict=True):
            if r is None:
                p.grad = values.view_as(p)
            else:
                p.grad = torch.sparse_coo_tensor(
                    r[None], values.view(len(r), *p.shape[1:]), p.shape, is_coalesced=True, check_invariants=False
                )

    def _rows(self, p: nn.Parameter) -> Tensor:
        """The rows that have a gradient anywhere."""
        rows = torch.zeros(0, dtype=torch.int64)
        if p.grad is not None:
            p.grad = p.grad.coalesce()
            rows = p.grad.indices()[0]
        everyone: Tensor = torch.unique(self._gather(rows, self._each(len(rows))))
        return everyone

    @staticmethod
    def _dense(p: nn.Parameter, rows: Tensor | None) -> Tensor:
        if rows is None:
            return torch.zeros_like(p) if p.grad is None else p.grad
        values: Tensor = p.new_zeros(len(rows), *p.shape[1:])
        if p.grad is not None:
            values[torch.searchsorted(rows, p.grad.indices()[0])] = p.grad.values()
        return values

    def _each(self, count: int) -> list[int]:
        """The number that each process has."""
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = count
        with _exchange():
            dist.all_reduce(counts)
        return [int(value) for value in counts]

    def _gather(self, values: Tensor, lengths: list[int]) -> Tensor:
        """Values of different length from each, one after the other."""
        if not max(lengths):
            return values[:0]
        kind = values.dtype
        padded = torch.zeros(max(lengths), dtype=torch.uint8 if kind == torch.bool else kind)
        padded[: lengths[self.rank]] = values[: lengths[self.rank]]
        parts = [torch.empty_like(padded) for _ in lengths]
        with _exchange():
            dist.all_gather(parts, padded)
        return torch.cat([part[:length] for part, length in zip(parts, lengths, strict=True)]).to(kind)

    # ------------------------------------------------------------------ waiting and failing

    def tell(self, what: str = "train") -> None:
        self._told += 1
        self._store.set(f"told {self._told}", what)

    def wait(self) -> str:
        """Asks again and again: a process that waits inside torch would not hear a signal."""
        self._told += 1
        while not self._store.check([f"told {self._told}"]):
            if self._store.check(["failed"]):
                raise PeerError("the first process of this job has failed")
            time.sleep(_POLL)
        return str(self._store.get(f"told {self._told}").decode())

    @contextmanager
    def watched(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.fail()
            raise

    def fail(self) -> None:
        """One process tells what went wrong; for the others it is a consequence."""
        if self._failed:
            return
        try:
            self._failed = self._store.add("failed", 1) == 1
        except RuntimeError:  # torchrun itself is gone
            return
        if not self._failed:
            raise PeerError("another process of this job has told why it ended") from None


class _SharedNumbers(np.random.Generator):
    """Random numbers for the rows of a share: those that they would get in the whole batch."""

    def __init__(self, generator: np.random.Generator, place: Place) -> None:
        super().__init__(generator.bit_generator)
        self._place = place

    def random(self, size: int) -> np.ndarray:  # type: ignore[override]
        return self._of_whole(super().random, size)

    def standard_exponential(self, size: int) -> np.ndarray:  # type: ignore[override]
        return self._of_whole(super().standard_exponential, size)

    def integers(self, high: int, *, size: int) -> np.ndarray:  # type: ignore[override]
        return self._of_whole(lambda rows: np.random.Generator.integers(self, high, size=rows), size)

    def _of_whole(self, draw: Callable[[int], np.ndarray], rows: int) -> np.ndarray:
        first, whole = self._place(rows)
        return draw(whole)[first : first + rows]


def begun_by_this_job(out: Path) -> bool:
    """True when torchrun has started its processes again, and they had begun the run at `out` before."""
    return restarted() and is_run(out) and read_description(out).get("job") == name_of_job()


def launched() -> bool:
    """True in a process that torchrun started."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def name_of_job() -> str:
    """What tells the jobs of torchrun apart, and stays the same when it restarts its processes; empty where there is
    none. By default the run id is "none": then it is the process that started this one."""
    if not launched():
        return ""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return name if name != "none" else f"{platform.node()}-{os.getppid()}"


def restarted() -> bool:
    """True in a process that torchrun started again after a failure."""
    return launched() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
