"""Processes that run one command of emhrnn each, with one fault: all are forked from one that has imported everything.

python -m tests.faults.processes       reads commands as JSON lines, and tells how each ended
"""

import ctypes
import errno
import gc
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import TracebackType

READ, CREATE, WRITE, SYNC, RENAME, UNLINK, MKDIR, TRUNCATE, RMDIR, FETCH = (1 << bit for bit in range(10))
CHANGES = CREATE | WRITE | SYNC | RENAME | UNLINK | MKDIR | TRUNCATE | RMDIR
COUNT, KILL, TEAR, FAIL, FAIL_ALL, SHORT = range(6)
TIMEOUT = 600  # seconds; a command that takes longer hangs, even on a busy machine
KILLED = -signal.SIGKILL
LIBRARIES = (  # that commands load when they need them; here once, before the forks
    "encodings.utf_8_sig", "filelock", "importlib.readers", "pyarrow.pandas_compat", "pyarrow.parquet",
    "pydantic.type_adapter", "torch._dynamo", "typer._adapters", "typer._click.decorators",
)  # fmt: skip
BITS = {
    "read": READ, "fetch": FETCH, "create": CREATE, "open": CREATE, "write": WRITE, "sync": SYNC, "rename": RENAME,
    "unlink": UNLINK, "mkdir": MKDIR, "rmdir": RMDIR, "truncate": TRUNCATE,
}  # fmt: skip


@dataclass(frozen=True)
class FaultClass:
    """A kind of fault: the operations that are counted, and what happens at the one that is drawn."""

    operations: int
    action: int
    error: int = 0

    @property
    def ends(self) -> bool:
        """The process is killed."""
        return self.action in (KILL, TEAR)


CLASSES = {
    "kill": FaultClass(CHANGES, KILL),
    "torn write": FaultClass(WRITE, TEAR),
    "power loss": FaultClass(CHANGES, KILL),  # of bytes
    "power loss, names too": FaultClass(CHANGES, KILL),
    "disk full": FaultClass(CREATE | WRITE | MKDIR, FAIL_ALL, errno.ENOSPC),
    "I/O error": FaultClass(WRITE | SYNC | READ | FETCH, FAIL, errno.EIO),
    "short write": FaultClass(WRITE, SHORT),
    "EINTR": FaultClass(READ | FETCH | CREATE | WRITE | SYNC, FAIL, errno.EINTR),
    "rename or unlink refused": FaultClass(RENAME | UNLINK, FAIL, errno.EACCES),
    "no descriptors": FaultClass(READ | CREATE, FAIL, errno.EMFILE),
}


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or minus the signal; None: it hung. And what it said on stderr."""

    code: int | None
    said: str


def compiler() -> str | None:
    """Of C; without one, there is no preload library."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """The preload library, compiled."""
    library = folder / "preload.so"
    found = compiler()
    assert found is not None
    source = Path(__file__).with_name("preload.c")
    subprocess.run([found, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


class Nursery:
    """Starts the process that forks, and ends it."""

    def __enter__(self) -> "Nursery":
        memory = Path("/dev/shm")  # where a sync takes no time
        self._folder = tempfile.TemporaryDirectory(prefix="emhrnn-faults-", dir=memory if memory.is_dir() else None)
        self.folder = Path(self._folder.name)
        library = build(self.folder)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.processes", str(library)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def run(self, command: list[str], root: Path, fault: FaultClass | None = None, moment: int = 0) -> Ended:
        """`emhrnn COMMAND` with the current folder `root`, disturbed at a moment; `log` and `backups` tell of it."""
        self.log, self.backups = self.folder / "log", self.folder / "backups"
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.backups, ignore_errors=True)
        self.backups.mkdir()
        fault = fault or FaultClass(0, COUNT)
        request = {
            "command": command, "root": str(root), "moment": moment, "operations": fault.operations,
            "action": fault.action, "error": fault.error, "log": str(self.log), "backups": str(self.backups),
            "said": str(self.folder / "said"),
        }  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())
        return Ended(code, (self.folder / "said").read_text(encoding="utf-8", errors="replace"))


def _child(request: dict[str, object], library: ctypes.CDLL) -> None:
    """Run the command in a process of its own, and never return."""
    said = os.open(str(request["said"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDWR)
    for target, file in ((0, null), (1, null), (2, said)):
        os.dup2(file, target)
    os.chdir(str(request["root"]))
    command = request["command"]
    assert isinstance(command, list)
    sys.argv = ["emhrnn", *command]
    from emhrnn.cli import main

    code = 1
    try:
        library.fault_arm(
            str(request["root"]).encode(), ctypes.c_long(int(str(request["moment"]))), request["operations"],
            request["action"], request["error"], str(request["log"]).encode(), str(request["backups"]).encode(),
        )  # fmt: skip
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int) -> int | None:
    """The exit code of a child; None for one that hangs, which is killed."""
    watched = os.pidfd_open(child)
    with selectors.DefaultSelector() as selector:
        selector.register(watched, selectors.EVENT_READ)
        hangs = not selector.select(TIMEOUT)
    os.close(watched)
    if hangs:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if hangs else code


def _serve() -> None:
    library = ctypes.CDLL(sys.argv[1])
    os.environ.pop("LD_PRELOAD", None)  # what a command starts is not disturbed
    import emhrnn.layers.native
    import emhrnn.scoring
    import emhrnn.text.stretches

    ours = (module.name for module in walk_packages(emhrnn.__path__, "emhrnn."))
    for name in (*LIBRARIES, *(name for name in ours if not name.endswith("__main__"))):
        with suppress(ImportError):  # of an extra that is not installed
            import_module(name)

    emhrnn.layers.native._load(), emhrnn.text.stretches._library()  # the compiled kernels
    emhrnn.scoring.chunks.ROWS = emhrnn.scoring.ROWS = 40  # so that few rows are several chunks
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _child(json.loads(line), library)
        print(json.dumps(_wait(child)), flush=True)


if __name__ == "__main__":
    _serve()
