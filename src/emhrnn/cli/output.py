"""Output of the commands: text for people on stdout, or one JSON object and nothing else; messages on stderr."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from emhrnn.errors import TrainingError

_REPAIRS = {  # by their names in corpus/record.py
    "broken UTF-8": "bytes that are not UTF-8 (read as U+FFFD); give its --encoding",
    "NUL bytes": "NUL bytes (read as spaces)",
}


class Answer(NamedTuple):
    """What a command has to say: `app.py` prints the text or, with --json, the facts. Where runs `failed`, it names
    them and ends with exit code 2."""

    facts: dict[str, Any]
    text: str
    failed: Sequence[str] = ()
    code: int = 0


def print_json(value: dict[str, Any]) -> None:
    """Print one line of JSON to stdout. Non-ASCII characters are escaped if stdout cannot encode them."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    print(json.dumps(value, ensure_ascii=encoding != "utf8", allow_nan=False))


def say(text: str) -> None:
    """Print text for people to stdout."""
    print(text)


def complain(message: str) -> None:
    """Print a message to stderr as one line."""
    print(f"emhrnn: {' '.join(message.split())}", file=sys.stderr)


def tell_of_rows(data: str, skipped: Mapping[str, int], repaired: Mapping[str, int]) -> None:
    """Print to stderr how many rows were skipped or repaired, and why."""
    for reason, count in skipped.items():
        complain(f"{counted(count, 'row')} of {data} {'was' if count == 1 else 'were'} skipped: {reason}")
    for what, count in repaired.items():
        complain(f"{counted(count, 'document')} of {data} had {_REPAIRS.get(what, what)}")


def counted(number: int, what: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def percent(share: float) -> str:
    """`86.5 %` for 0.865."""
    return f"{100 * share:.1f} %"


def aligned(rows: Sequence[Sequence[str]], numbers: set[int] | None = None) -> str:
    """A text table. Columns listed in `numbers` are right-aligned; by default all but the first."""
    columns = range(len(rows[0]))
    right = set(columns) - {0} if numbers is None else numbers
    widths = [max(len(row[i]) for row in rows) for i in columns]
    cells = [[row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in columns] for row in rows]
    return "\n".join("  ".join(line).rstrip() for line in cells)


def report_at(out: Path, name: str) -> str:
    """Where a report is."""
    return f"This is in {out / name}.md, as data in {out / name}.json."


def end_if_failed(failed: Sequence[str]) -> None:
    """End a command with exit code 2 if some of its runs failed. The table of the others has been written.

    Raises:
        TrainingError: some runs failed; the message names them.
    """
    if failed:
        raise TrainingError(
            f"{counted(len(failed), 'run')} failed: {', '.join(failed)}; the table shows the others and the reasons; "
            "run the same command to try them again"
        )
