"""The command line: one file per command, and what holds for all of them: errors, exit codes, signals.

No file here imports torch at module level, so that `emhrnn --help` is instant.
"""

import errno
import gc
import os
import re
import signal
import sys
import threading
from types import FrameType
from typing import Any, NoReturn

from emhrnn.errors import ConfigError, EmhrnnError, PeerError

WRONG_INPUT, INTERNAL, INTERRUPTED, TERMINATED = 2, 1, 130, 143
OUT_OF_MEMORY = (
    "can't allocate memory", "not enough memory", "size calculation overflowed", "multiplication overflow",
    "Failed to launch worker thread",
)  # fmt: skip
NO_ROOM = ("failed to map segment", "annot allocate memory", "cannot create shared object descriptor")  # a library
LEAST = (128, 256)  # MB of data (ulimit -d) and of addresses (ulimit -v)
LEAST_WITH = {"pyarrow": (256, 512), "torch": (640, 1536)}  # when these are imported
HUGE = 100  # times its default: a setting that may have used up the memory
PARTIAL = re.compile(r"(?<![^\s/'\"])\.([^/\s]+)\.[0-9a-f]{8}\.partial")  # in a message: named as what it becomes
PAUSE = 0.05  # seconds until an interrupt that came during an import is tried again
IMPORT = "<frozen importlib._bootstrap>"
OBJECTS = 50_000  # new ones, after which Python looks for garbage: its 700 take a tenth of the time of a short command


# What the help lists. The function of a command has its name, and so has its module; two are in paper/cli.
COMMANDS = {
    "Every day": {
        "demo": "Run a full example on generated data.",
        "info": "Describe data or a run: classes, lengths, likely problems.",
        "train": "Train a classifier on labelled documents.",
        "evaluate": "Score a run on labelled data.",
        "predict": "Classify files of any size.",
        "explain": "Show which sentence, phrase and word decided.",
        "serve": "Serve the viewer and its REST API.",
    },
    "Data and models": {
        "audit": "Find rows with wrong labels, near-duplicates and outliers.",
        "calibrate": "Recalibrate probabilities on new labelled data.",
        "drift": "Compare new documents with the training data.",
        "pack": "Write a run as one file, to move or send it.",
        "export": "Write a run as a web page that needs no server.",
        "models": "List the models that can be trained.",
        "tune": "Search for good settings within a time limit.",
        "compare": "Compare models, with error bars and significance.",
    },
    "Research": {"paper": "Reproduce the paper: tables, simulation, figures, analyses."},
}
HELP = """Usage: emhrnn [OPTIONS] COMMAND [ARGS]...

  Document classification that shows which sentence, which phrase and which
  word decided.

  Start here:
    emhrnn demo                                    a full example on generated data
  With your own documents:
    emhrnn train reviews.csv --out run             columns are guessed
    emhrnn evaluate run test.csv
    emhrnn explain run 'The room was not what we had hoped for.'
    emhrnn predict run new.csv --out labels.csv
    emhrnn serve run                               explanations in a browser

  Exit codes: 0 success; 2 wrong input or settings, or one of several runs
  failed (one line on stderr says why and what to do); 130 interrupted by
  Ctrl-C; 1 a bug in emhrnn.

Options:
  --version   Show the version.
  -h, --help  Show this message and exit.
"""


def root_help() -> str:
    """What `emhrnn --help` prints. Without typer, whose import takes five times as long as Python does to start."""
    lines = [HELP]
    for title, group in COMMANDS.items():
        width = max(map(len, group))
        lines += [f"{title}:", *(f"  {name:{width}}  {summary}" for name, summary in group.items()), ""]
    return "\n".join(lines).rstrip()


TRAIN = ("torch", "scipy", "sklearn", "pyarrow")  # libraries of the extra `train`


def main() -> None:
    """Run a command. A wrong input or setting is one line on stderr and exit code 2; Ctrl-C is exit code 130."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        _run_command()
        return
    try:  # a worker of torchrun: threads of gloo may still hold tensors, and abort the process while Python ends
        _run_command()
    except SystemExit as end:
        leave_at_once(end.code if isinstance(end.code, int) else int(end.code is not None))
    leave_at_once(0)


def leave_at_once(code: int) -> NoReturn:
    """End the process without the clean-up of Python and of its libraries."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _run_command() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # print characters that the terminal cannot show as escapes
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(OBJECTS)
    if sys.argv[1:2] == ["explain"]:  # one text: both would take longer than explaining it
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # starting threads of NumPy
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # reading the metadata of all installed packages
    interrupt_after_imports()
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that unfinished files are removed
    watch = _MemoryBeforeImports()
    sys.meta_path.insert(0, watch)
    try:
        check_memory(LEAST)
        if sys.argv[1:] in (["--help"], ["-h"]):
            print(root_help(), flush=True)
            sys.exit(0)  # as typer does
        from emhrnn.cli.app import application  # which takes typer

        application(*sys.argv[1:2])()
    except PeerError:
        sys.exit(WRONG_INPUT)
    except EmhrnnError as error:
        _fail(str(error), WRONG_INPUT)
    except BrokenPipeError:  # the reader of our output has ended, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno == errno.ENOMEM:
            _fail(f"memory ran out; {_memory_advice()}", WRONG_INPUT)
        full = error.errno == errno.EMFILE
        remedy = "raise the limit: ulimit -n 1024" if full else "correct that, or give another path"
        _fail(f"cannot {_described(error)}; {remedy}", WRONG_INPUT)
    except Exception as error:
        if os.environ.get("EMHRNN_DEBUG"):
            raise
        if isinstance(error, ImportError) and any(sign in str(error) for sign in NO_ROOM):
            name = str(error).partition(":")[0]
            _fail(f"memory ran out while {name} was loaded; allow more memory (ulimit -v, container)", WRONG_INPUT)
        if isinstance(error, MemoryError) or any(sign in str(error) for sign in OUT_OF_MEMORY):
            _fail(f"memory ran out; {_memory_advice()}", WRONG_INPUT)
        if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
            _fail(f"the name {_odd_name(error.object)!r} is not UTF-8; rename it, or give another", WRONG_INPUT)
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in TRAIN:
            _fail(f"this needs {error.name}, which is not installed; pip install 'emhrnn[train]'", WRONG_INPUT)
        shown = f"{type(error).__name__}: {error}"
        _fail(f"internal error, please report it: {shown} (EMHRNN_DEBUG=1 shows where)", INTERNAL)
    finally:
        sys.meta_path.remove(watch)
        signal.signal(signal.SIGTERM, before)


def check_memory(least: tuple[int, int]) -> None:
    """Refuse limits in which libraries crash or hang instead of raising an error. Windows has no such limits.

    Raises:
        ConfigError: this process may use less memory than the MB given, of data or of addresses.
    """
    if os.name == "nt":
        return
    import resource

    for limit, option, needed in zip((resource.RLIMIT_DATA, resource.RLIMIT_AS), "dv", least, strict=True):
        allowed = resource.getrlimit(limit)[0]
        if 0 <= allowed < needed << 20:
            raise ConfigError(
                f"memory is limited to {allowed >> 20} MB (ulimit -{option}), this command needs {needed} MB or more; "
                f"raise the limit: ulimit -{option} {needed << 10}"
            )


class _MemoryBeforeImports:
    """Checks the memory when a large library is about to be imported, then leaves the import to others."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name in LEAST_WITH:
            check_memory(LEAST_WITH[name])


def _memory_advice() -> str:
    """Name the settings of the command line that are far larger than their defaults, if there are any."""
    options = list(zip(sys.argv, sys.argv[1:], strict=False))
    model = [f"model.name={value}" for option, value in options if option == "--model"]
    huge = [value for option, value in options if option == "--set" and _is_huge(value, model)]
    if huge:
        return f"{', '.join(huge)} is far above the default: give a smaller value"
    return "give fewer or shorter documents, or a smaller training.batch_words"


def _is_huge(assignment: str, model: list[str]) -> bool:
    from emhrnn.training.config import make_config

    name, _, value = assignment.partition("=")
    section, _, key = name.strip().partition(".")
    default = getattr(getattr(make_config(assignments=model), section, None), key, None)
    try:
        return isinstance(default, int | float) and float(value) > HUGE * max(1, default)
    except ValueError:
        return False


def _described(error: OSError) -> str:
    """What could not be done. The temporary file that was to replace a file is named as that file."""
    from emhrnn.files import UNFINISHED

    name = error.filename or "the input or output"
    known = UNFINISHED.sub(r"\1", str(name))
    return f"{'write' if known != str(name) else 'use'} {known}: {error.strerror or error}"


def _odd_name(written: str) -> str:
    """The file name that cannot be encoded. Texts are repaired when they are read, so it must come from a name."""
    given = [name for name in sys.argv[1:] if not name.isascii() and os.path.basename(name) in written]
    return given[-1] if given else written.splitlines()[0]


def _fail(message: str, code: int) -> None:
    from emhrnn.cli.output import complain

    complain(PARTIAL.sub(r"\1", message))
    sys.exit(code)


def interrupt_after_imports() -> None:
    """Defer Ctrl-C during an import until its end: libraries would swallow it, or stay half loaded and fail later.

    A handler that is not Python's own stays, such as that of a background job, which ignores Ctrl-C.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if not _importing(frame):
        signal.default_int_handler(number, frame)
    again = threading.Timer(PAUSE, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            return True
        frame = frame.f_back
    return False
