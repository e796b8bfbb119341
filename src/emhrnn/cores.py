"""The cores of this machine, and how processes share them."""

import os
import sys

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_chosen = 0  # by set_threads


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """Of the native kernels in this process: torch's, where torch is in use; else those of `set_threads`, by default
    one for each core or OMP_NUM_THREADS."""
    torch = sys.modules.get("torch")
    if hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())  # type: ignore[union-attr]
    return _chosen or threads_of(1)


def set_threads(number: int) -> None:
    """Of the native kernels, and of torch where it is in use, from now on."""
    global _chosen
    _chosen = number
    torch = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(number)  # type: ignore[union-attr]


def threads_of(processes: int) -> int:
    """Threads of each of so many processes; a smaller OMP_NUM_THREADS is kept."""
    threads = max(1, cores() // processes)
    given = os.environ.get("OMP_NUM_THREADS", "")
    return min(threads, int(given)) if given.isdecimal() and int(given) > 0 else threads


def environment_of(processes: int) -> dict[str, str]:
    """Ours, with the threads of one process, and the same modules to import."""
    modules = os.pathsep.join(path or os.getcwd() for path in sys.path)
    threads = str(threads_of(processes))
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, threads), "PYTHONPATH": modules}
