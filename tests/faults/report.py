"""results/reliability.md and .json: one section for each campaign, written by the command that ran it."""

import json
import platform
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from emhrnn.files import write_json, write_text

RESULTS = Path(__file__).parents[2] / "results"
TITLES = {"faults": "Faults", "fuzz": "Fuzzing", "damage": "Damaged files", "sanitizers": "Sanitizers", "soak": "Soak"}


def record(name: str, section: dict[str, Any], folder: Path = RESULTS) -> None:
    """Put a section in place of the one of that name, and write both files."""
    path = folder / "reliability.json"
    sections = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    date = datetime.now(UTC).date().isoformat()
    sections[name] = {**section, "source": source(), "date": date, "python": platform.python_version()}
    write_json(path, {key: sections[key] for key in TITLES if key in sections})
    write_text(folder / "reliability.md", to_markdown(sections))


def recorded(name: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    """A section as it is, if there is one and it is about the source of now: counts of two versions are never added."""
    path = folder / "reliability.json"
    sections: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found: dict[str, Any] | None = sections.get(name)
    return found if found and found.get("source") == source() else None


def source() -> str:
    """The commit that last changed the package."""

    def git(*command: str) -> str:
        done = subprocess.run(
            ["git", *command, "--", "src"], cwd=RESULTS.parent, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return git("log", "-1", "--format=%h", "--abbrev=8") + " and changes" * bool(git("status", "--porcelain"))


def to_markdown(sections: dict[str, Any]) -> str:
    """The report for people."""
    lines = [
        "# Reliability",
        "",
        "Each section names the command that made it. A command that fails here fails with a non-zero exit code, too.",
    ]
    for name, title in TITLES.items():
        if name in sections:
            section = sections[name]
            commit = f", source of {section['source']}" if "source" in section else ""
            lines += ["", f"## {title}", "", f"`{section['command']}`, {section['date']}{commit}", ""]
            lines += faults_table(section) if name == "faults" else counts_table(section)
    return "\n".join(lines) + "\n"


def faults_table(section: dict[str, Any]) -> list[str]:
    """A row for each command, a column for each class: faults tried, and how many went wrong."""
    rows = section["rows"]
    classes = list(dict.fromkeys(row["fault"] for row in rows))
    tried = {(row["command"], row["fault"]): row for row in rows}
    wrong = sum((Counter(row["wrong"]) for row in rows), Counter())
    total = sum(row["tried"] for row in rows)
    named = ", ".join(f"{count} {what}" for what, count in wrong.items()) or "none went wrong"
    lines = [
        f"{total:,} faults, each followed by the same command again: {named}. Wrong would be: other bytes than an "
        "undisturbed call, another file touched, a file left over, a second call that fails, a traceback, a hang, or "
        "an error that names no file.",
        "",
        f"| command | {' | '.join(classes)} |",
        f"|---|{'--:|' * len(classes)}",
    ]
    for command in dict.fromkeys(row["command"] for row in rows):
        cells = [_cell(tried.get((command, fault))) for fault in classes]
        lines.append(f"| {command} | {' | '.join(cells)} |")
    return lines


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    wrong = sum(row["wrong"].values())
    return f"{row['tried']}" + (f" ({wrong} wrong)" if wrong else "")


def counts_table(section: dict[str, Any]) -> list[str]:
    """The rows of a section as they are, under the names of their fields."""
    rows = section["rows"]
    names = list(rows[0])
    lines = [*section.get("remarks", []), ""] if section.get("remarks") else []
    lines += [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    shown = [[f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in names] for row in rows]
    return [*lines, *(f"| {' | '.join(cells)} |" for cells in shown)]
