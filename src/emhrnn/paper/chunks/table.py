"""chunks.md and chunks.json."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emhrnn.files import sha256, write_json, write_text
from emhrnn.paper.chunks.agreement import Agreement, agreements
from emhrnn.paper.chunks.conll import read_chunks
from emhrnn.paper.provenance import commit, machine
from emhrnn.training.run import WEIGHTS, load_run

EXPECTATION = """
Phrase ends against chunk ends, word by word; ends of sentences are left out, since every method is given them. The
model has learned its phrases from labels of documents, and with model.pauses from their punctuation, with no chunk in
sight: the loss of the task need not find the phrases of linguists. What counts is whether it does better than
segmentations of the same rate that have learned nothing.
"""


@dataclass(frozen=True)
class Table:
    header: dict[str, Any]
    rows: Sequence[Agreement]

    def to_dict(self) -> dict[str, Any]:
        return {**self.header, "rows": [row.to_dict() for row in self.rows]}

    def to_markdown(self) -> str:
        lines = ["# Phrases and chunks (CoNLL-2000)", ""]
        lines += [f"- {name}: {value}" for name, value in self.header.items()]
        lines += EXPECTATION.splitlines()
        lines += [
            "",
            "| segmentation | precision | recall | F1 | ends | gold | both |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        lines += [
            f"| {row.name} | {100 * row.precision:.1f} | {100 * row.recall:.1f} | {100 * row.f1:.1f} | "
            f"{row.predicted:,.0f} | {row.gold:,} | {row.both:,.0f} |"
            for row in self.rows
        ]
        return "\n".join(lines) + "\n"


def chunk_table(folders: Sequence[Path], conll: Path, part: str, out: Path, *, command: str, seed: int) -> Table:
    """Of one or several runs; what needs no learning is shown at the rate of the first."""
    chunked = read_chunks(conll, part)
    rows: list[Agreement] = []
    for folder in folders:
        found = agreements(load_run(folder), chunked, seed=seed)
        rows = [*rows, *found[:2]] if rows else found
    words = len(chunked.ends)
    header = {
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "runs": ", ".join(f"{folder.name} (weights {sha256(folder / WEIGHTS)[:12]})" for folder in folders),
        "data": f"{part}: {len(chunked.sentences):,} sentences, {words:,} words; random is the mean of 20 draws",
    }
    table = Table(header, rows)
    write_json(out / "chunks.json", table.to_dict())
    write_text(out / "chunks.md", table.to_markdown())
    return table
