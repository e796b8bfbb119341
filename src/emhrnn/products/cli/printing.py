"""What commands print: people's text, or one JSON object and nothing else."""

import json
import sys
from typing import Any


def print_json(value: dict[str, Any]) -> None:
    """One line. Letters beyond ASCII are escaped where stdout cannot hold them."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    print(json.dumps(value, ensure_ascii=encoding != "utf8", allow_nan=False))


def say(text: str) -> None:
    print(text)


def complain(message: str) -> None:
    """One line on stderr, whatever the message holds."""
    print(f"emhrnn: {' '.join(message.split())}", file=sys.stderr)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
