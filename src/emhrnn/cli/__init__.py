"""The command line. Each command lives in a file of its own and only parses: the work is done by plain functions.

Nothing here imports torch at module level, so that `emhrnn --help` is instant.
"""

import functools
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from emhrnn.cli.calibrate import calibrate
from emhrnn.cli.demo import demo
from emhrnn.cli.evaluate import evaluate
from emhrnn.cli.explain import explain
from emhrnn.cli.export import export
from emhrnn.cli.info import info
from emhrnn.cli.interrupting import interrupt_after_imports
from emhrnn.cli.models import models
from emhrnn.cli.output import complain
from emhrnn.cli.predict import predict
from emhrnn.cli.serve import serve
from emhrnn.cli.settings import CommandWithSettings
from emhrnn.cli.train import train
from emhrnn.cli.tune import tune
from emhrnn.errors import EmhrnnError, PeerError
from emhrnn.files import UNFINISHED
from emhrnn.version import __version__

WRONG_INPUT, INTERNAL, INTERRUPTED, TERMINATED = 2, 1, 130, 143

app = typer.Typer(
    name="emhrnn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the boxes leave too little room for words
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _with_farewell(command: Callable[..., None]) -> Callable[..., None]:
    """Ctrl-C says what is left. Here, because typer ends the program before `main` could."""

    @functools.wraps(command)
    def run(**options: Any) -> None:
        try:
            command(**options)
        except KeyboardInterrupt as interrupt:
            complain(f"interrupted; {str(interrupt) or 'nothing was written'}")
            raise typer.Exit(INTERRUPTED) from None

    return run


paper = import_module("emhrnn.paper.cli")  # by name: the product does not import the paper

COMMANDS: tuple[tuple[Callable[..., None], str], ...] = (
    (demo, "See everything once, on reviews of our own."),
    (train, "Train a classifier on labelled documents."),
    (tune, "Search for settings within a given time."),
    (evaluate, "Score a run on labelled data."),
    (calibrate, "Fit how sure a run is to other labelled data."),
    (predict, "Classify every row of a file."),
    (explain, "Show which sentence, phrase and word decided."),
    (export, "Write a run as ONNX, for programs without this package."),
    (serve, "Open the viewer: paste a document, see why."),
    (info, "Describe a run, a corpus or data."),
    (paper.compare, "Compare systems, with error bars."),
    (models, "List every system that can be trained."),
)
for command, summary in COMMANDS:
    kind = CommandWithSettings if command in (train, tune, paper.compare) else None
    app.command(short_help=summary, cls=kind)(_with_farewell(command))
for command, summary in paper.COMMANDS:
    paper.app.command(short_help=summary)(_with_farewell(command))
app.add_typer(paper.app, short_help="The paper's tables, simulation, figures and analyses.")


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
      emhrnn demo                                    everything once, on data of our own
    With documents of your own:
      emhrnn train reviews.csv --out run             columns are guessed
      emhrnn evaluate run test.csv
      emhrnn explain run 'The room was not what we had hoped for.'
      emhrnn predict run new.csv --out labels.csv

    Exit codes: 0 done, 2 the input or a setting cannot be used, or a run of several failed (one line on stderr says
    why and what to do), 130 interrupted, 1 a fault of ours.
    """


def main() -> None:
    """Run a command. A user's mistake is one line on stderr and exit code 2; Ctrl-C is exit code 130."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a letter that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    interrupt_after_imports()
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that half-made files are removed
    try:
        app()
    except PeerError:
        sys.exit(WRONG_INPUT)
    except EmhrnnError as error:
        _fail(str(error), WRONG_INPUT)
    except BrokenPipeError:  # the reader of our output has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"cannot {_told(error)}; put that right, or give another place", WRONG_INPUT)
    except Exception as error:
        if os.environ.get("EMHRNN_DEBUG"):
            raise
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            advice = "give fewer or shorter documents, a smaller training.batch_words, or for many classes"
            _fail(f"memory ran out; {advice} --set model.ngrams=false", WRONG_INPUT)
        if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
            _fail(f"the name {_odd_name(error.object)!r} is not UTF-8; rename it, or give another", WRONG_INPUT)
        told = f"{type(error).__name__}: {error}"
        _fail(f"internal error, please report it: {told} (EMHRNN_DEBUG=1 shows where)", INTERNAL)
    finally:
        signal.signal(signal.SIGTERM, before)


def _told(error: OSError) -> str:
    """What could not be done, of the file that a user knows and not of the one that was to take its place."""
    name = error.filename or "the input or output"
    known = UNFINISHED.sub(r"\1", str(name))
    return f"{'write' if known != str(name) else 'use'} {known}: {error.strerror or error}"


def _odd_name(written: str) -> str:
    """The file name in what could not be written: texts are mended when they are read, so it must be of one."""
    given = [argument for argument in sys.argv[1:] if not argument.isascii() and Path(argument).name in written]
    return given[-1] if given else written.splitlines()[0]


def _fail(message: str, code: int) -> None:
    complain(message)
    sys.exit(code)
