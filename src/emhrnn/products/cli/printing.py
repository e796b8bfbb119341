"""What commands print: people's text, or one JSON object and nothing else."""

import json
from typing import Any


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def say(text: str) -> None:
    print(text)


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
