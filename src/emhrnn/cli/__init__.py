"""The command line: one file per command, mounted here, and what holds for all of them: errors, exit codes, signals.

No file here imports torch at module level, so that `emhrnn --help` is instant.
"""

import functools
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import typer
from typer.core import TyperGroup

from emhrnn.cli.audit import audit
from emhrnn.cli.calibrate import calibrate
from emhrnn.cli.demo import demo
from emhrnn.cli.drift import drift
from emhrnn.cli.evaluate import evaluate
from emhrnn.cli.explain import explain
from emhrnn.cli.export import export
from emhrnn.cli.info import info
from emhrnn.cli.models import models
from emhrnn.cli.output import complain
from emhrnn.cli.pack import pack
from emhrnn.cli.predict import predict
from emhrnn.cli.serve import serve
from emhrnn.cli.settings import CommandWithSettings
from emhrnn.cli.train import train
from emhrnn.cli.tune import tune
from emhrnn.errors import EmhrnnError, PeerError
from emhrnn.files import UNFINISHED
from emhrnn.version import __version__

WRONG_INPUT, INTERNAL, INTERRUPTED, TERMINATED = 2, 1, 130, 143
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "size calculation overflowed", "multiplication overflow")
NO_ROOM = ("failed to map segment", "annot allocate memory", "cannot create shared object descriptor")  # a library
HUGE = 100  # times its default: a setting that may have used up the memory
PAUSE = 0.05  # seconds until an interrupt that came during an import is tried again
IMPORT = "<frozen importlib._bootstrap>"
OBJECTS = 50_000  # new ones, after which Python looks for garbage: its 700 take a tenth of the time of a short command


class GroupedCommands(TyperGroup):
    """The help lists the commands in the groups of COMMANDS."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups = {title: [command.__name__ for command, _ in group] for title, group in COMMANDS.items()}
        grouped = {name for names in groups.values() for name in names}
        groups["Research"] = [name for name in self.list_commands(ctx) if name not in grouped]
        for title, names in groups.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(title):
                formatter.write_dl(
                    [(name, one.get_short_help_str(limit=90)) for name, one in commands.items() if one is not None]
                )


app = typer.Typer(
    name="emhrnn",
    cls=GroupedCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the boxes leave too little room for words
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _with_farewell(command: Callable[..., None]) -> Callable[..., None]:
    """Report on Ctrl-C what was written. Here, because typer ends the program before `main` could."""

    @functools.wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except KeyboardInterrupt as interrupt:
            complain(f"interrupted; {str(interrupt) or 'nothing was written'}")
            raise typer.Exit(INTERRUPTED) from None

    return run


paper = import_module("emhrnn.paper.cli")  # by name: the product does not import the paper

COMMANDS: dict[str, tuple[tuple[Callable[..., None], str], ...]] = {
    "Every day": (
        (demo, "Run a full example on generated data."),
        (info, "Describe data or a run: classes, lengths, likely problems."),
        (train, "Train a classifier on labelled documents."),
        (evaluate, "Score a run on labelled data."),
        (predict, "Classify files of any size."),
        (explain, "Show which sentence, phrase and word decided."),
        (serve, "Serve the viewer and its REST API."),
    ),
    "Data and models": (
        (audit, "Find rows with wrong labels, near-duplicates and outliers."),
        (calibrate, "Recalibrate probabilities on new labelled data."),
        (drift, "Compare new documents with the training data."),
        (pack, "Write a run as one file, to move or send it."),
        (export, "Write a run as ONNX, for programs without this package."),
        (models, "List the models that can be trained."),
        (tune, "Search for good settings within a time limit."),
        (paper.compare, "Compare models, with error bars and significance."),
    ),
}
for command, summary in (pair for group in COMMANDS.values() for pair in group):
    kind = CommandWithSettings if command in (train, tune, paper.compare) else None
    app.command(short_help=summary, cls=kind)(_with_farewell(command))
for command, summary in paper.COMMANDS:
    paper.app.command(short_help=summary)(_with_farewell(command))
app.add_typer(paper.app, short_help="Reproduce the paper: tables, simulation, figures, analyses.")


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"emhrnn {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Show the version.", callback=_print_version, is_eager=True),
) -> None:
    """Document classification that shows which sentence, which phrase and which word decided.

    \b
    Start here:
      emhrnn demo                                    a full example on generated data
    With your own documents:
      emhrnn train reviews.csv --out run             columns are guessed
      emhrnn evaluate run test.csv
      emhrnn explain run 'The room was not what we had hoped for.'
      emhrnn predict run new.csv --out labels.csv

    Exit codes: 0 success; 2 wrong input or settings, or one of several runs failed (one line on stderr says why and
    what to do); 130 interrupted by Ctrl-C; 1 a bug in emhrnn.
    """


TRAIN = ("torch", "scipy", "sklearn", "pyarrow")  # libraries of the extra `train`


def main() -> None:
    """Run a command. A wrong input or setting is one line on stderr and exit code 2; Ctrl-C is exit code 130."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # print characters that the terminal cannot show as escapes
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(OBJECTS)
    interrupt_after_imports()
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that unfinished files are removed
    try:
        app()
    except PeerError:
        sys.exit(WRONG_INPUT)
    except EmhrnnError as error:
        _fail(str(error), WRONG_INPUT)
    except BrokenPipeError:  # the reader of our output has ended, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"cannot {_described(error)}; correct that, or give another path", WRONG_INPUT)
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
        signal.signal(signal.SIGTERM, before)


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
    name = error.filename or "the input or output"
    known = UNFINISHED.sub(r"\1", str(name))
    return f"{'write' if known != str(name) else 'use'} {known}: {error.strerror or error}"


def _odd_name(written: str) -> str:
    """The file name that cannot be encoded. Texts are repaired when they are read, so it must come from a name."""
    given = [argument for argument in sys.argv[1:] if not argument.isascii() and Path(argument).name in written]
    return given[-1] if given else written.splitlines()[0]


def _fail(message: str, code: int) -> None:
    complain(message)
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
