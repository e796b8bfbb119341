"""The command line. Each command lives in a file of its own and only parses: the work is done by plain functions.

Nothing here imports torch at module level, so that `emhrnn --help` is instant.
"""

import os
import sys

import typer

from emhrnn.errors import EmhrnnError
from emhrnn.products.cli.demo import demo
from emhrnn.products.cli.evaluate import evaluate
from emhrnn.products.cli.explain import explain
from emhrnn.products.cli.info import info
from emhrnn.products.cli.predict import predict
from emhrnn.products.cli.prepare import prepare
from emhrnn.products.cli.train import train
from emhrnn.version import __version__

app = typer.Typer(
    name="emhrnn",
    help="Document classification that shows which sentence, which phrase and which word decided.",
    epilog="Start with `emhrnn demo`. With data of your own: `emhrnn train reviews.csv --out run`, then "
    "`emhrnn explain run 'The room was not what we had hoped for.'`",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, prepare, train, evaluate, predict, explain, info):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"emhrnn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Show the version.", callback=_print_version, is_eager=True),
) -> None: ...


def main() -> None:
    """Run a command. A user's mistake is one line on stderr and exit code 2; Ctrl-C is exit code 130."""
    try:
        app()
    except EmhrnnError as error:
        _fail(str(error), 2)
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output has left, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        _fail(f"{error.filename or 'input/output'}: {error.strerror or error}", 2)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        if os.environ.get("EMHRNN_DEBUG"):
            raise
        _fail(f"internal error, please report it: {type(error).__name__}: {error} (EMHRNN_DEBUG=1 shows where)", 1)


def _fail(message: str, code: int) -> None:
    print(f"emhrnn: {message}", file=sys.stderr)
    sys.exit(code)
