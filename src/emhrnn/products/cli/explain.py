"""`emhrnn explain`: which sentence, which phrase, which word."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Json, RunFolder


def explain(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="The text itself, or - to read it from stdin.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read the text from this file.", show_default=False)
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one self-contained page to this file.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Show why a text is classified as it is: in the terminal, as JSON, or as a page.

    Phrases are set apart by //; the darker a word, the more it weighed.
    """
    from emhrnn.errors import ConfigError
    from emhrnn.explain.explainer import explain_texts
    from emhrnn.explain.html import html_page
    from emhrnn.explain.terminal import print_explanation
    from emhrnn.files import write_text
    from emhrnn.products.cli.printing import print_json
    from emhrnn.training.run import load_run

    if (text is None) == (file is None):
        raise ConfigError("give one text to explain: as an argument, with --file F, or - to read stdin")
    explanation = explain_texts(load_run(run), [_read(text, file)])[0]
    if html is not None:
        write_text(html, html_page(explanation))
    if json:
        print_json(explanation.to_dict())
    elif html is None:
        print_explanation(explanation)
    else:
        print(f"{explanation.predicted}; see {html}")


def _read(text: str | None, file: Path | None) -> str:
    """Bytes that are not UTF-8 become U+FFFD, as in a corpus."""
    if file is not None:
        return file.read_bytes().decode("utf-8-sig", errors="replace")
    if text == "-":
        return sys.stdin.buffer.read().decode("utf-8-sig", errors="replace")
    assert text is not None
    return text
