"""What commands print: people's text, or one JSON object and nothing else."""

import json
import sys
from collections.abc import Mapping
from typing import Any

_REPAIRS = {  # by their names in corpus/record.py
    "broken UTF-8": "bytes that are not UTF-8 (read as U+FFFD); is it Latin-1?",
    "NUL bytes": "NUL bytes (read as spaces)",
}


def print_json(value: dict[str, Any]) -> None:
    """One line. Letters beyond ASCII are escaped where stdout cannot hold them."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    print(json.dumps(value, ensure_ascii=encoding != "utf8", allow_nan=False))


def say(text: str) -> None:
    print(text)


def complain(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    print(f"emhrnn: {' '.join(message.split())}", file=sys.stderr)


def tell_of_rows(data: str, skipped: Mapping[str, int], repaired: Mapping[str, int]) -> None:
    """What became of rows that could not be used as they are, on stderr."""
    for reason, count in skipped.items():
        complain(f"{counted(count, 'row')} of {data} {'was' if count == 1 else 'were'} skipped: {reason}")
    for what, count in repaired.items():
        complain(f"{counted(count, 'document')} of {data} had {_REPAIRS.get(what, what)}")


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
