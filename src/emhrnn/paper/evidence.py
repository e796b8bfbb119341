"""evidence.md and evidence.json: phrase evidence with learned segmentations against fixed ones, from the records alone.

RESULTS/evidence-SET/       a comparison that `emhrnn compare` made: data/, runs/, and command.txt, the command of it
RESULTS/table2/             the records of `emhrnn paper table2`: rows to stand beside the model
RESULTS/evidence-speed.json what `python -m benchmarks.evidence --json` printed, if it is there
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emhrnn.errors import DataError
from emhrnn.files import write_json, write_text
from emhrnn.paper.comparison import COMMAND
from emhrnn.paper.comparison.data import pooled
from emhrnn.paper.comparison.table import METHOD, Runs, TableRow, describe_set, rows_table, table_rows
from emhrnn.paper.reports import markdown_table, percent, plain
from emhrnn.paper.table2.plan import OTHER_ROWS, PAPER_ROWS

LEARNED, OVERLAPPING = "learned", "overlapping"
TABLE2 = "table2"
MADE_BY = "emhrnn paper evidence --report"
EVIDENCE = next(name for name, row in OTHER_ROWS.items() if row == "evidence")  # as table 2 calls it
BESIDE = ("model", "accuracy %", "sd", "seeds", "95 %", "vs reference", "p", "McNemar p", "words/s")
INTRODUCTION = """# Phrase evidence: learned segmentations against fixed ones

The rows from `learned` to `overlapping` are one model, `evidence`, with the same counts, tables, encoder and training.
They differ only in how words form phrases: the exact sum over all segmentations (`learned`), one fixed segmentation, or
all candidate phrases at once (`overlapping`: the usual bag of n-grams, here of up to six words). `random` ends phrases
at 40 % of the words. A set named `parts` leaves out one part of the model in each row, or changes the longest phrase.
The model is described in [docs/evidence.md](../docs/evidence.md).

K, `presence`, `table_documents` and the size of batches were chosen in exploratory runs (seed 0, IMDB, Yelp, ohsumed
and 20 newsgroups) that printed test figures beside validation figures: the test sets are not untouched. Averaging of
weights and `table_decay` were chosen by validation loss. All rows of a set share settings; its command names them.
Commits differ: `imdb` is of before 5316b9e, since when a word without a pretrained vector has the mean of all vectors;
counts of related classes are mixed since 13ec555, which two classes do not need. All 10,000 Yelp reviews are also in
[rows-yelp-folds.md](rows-yelp-folds.md), with other models.
"""
BESIDE_NOTE = f"""From the records of table 2, against *{EVIDENCE}* with its default settings, which weigh sentences
(`model.sentence_weights`, chosen by validation loss).
In a row with n-grams, the shares of network and n-grams are fitted on validation data. Words per second were measured
at different times and loads.
"""


@dataclass(frozen=True)
class EvidenceSet:
    """One set: what `prepare_data` found of it, its rows against `reference`, and the command that made the records."""

    name: str
    found: Mapping[str, Any]
    reference: str
    rows: Sequence[TableRow]
    command: str
    threads: Sequence[int]

    def to_dict(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "threads": list(self.threads),
            "reference": self.reference,
            "set": dict(self.found),
            "rows": [row.to_dict() for row in self.rows],
        }


@dataclass(frozen=True)
class EvidenceReport:
    """The sets of `evidence-*`, the sets of table 2 that have a row of the model, and ratios of speed."""

    sets: Sequence[EvidenceSet]
    table2: Sequence[EvidenceSet]
    speed: Mapping[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "command": MADE_BY,
            "method": METHOD,
            "sets": {one.name: one.to_dict() for one in self.sets},
            "table2": {one.name: one.to_dict() for one in self.table2},
            "speed": self.speed,
        }

    def to_markdown(self) -> str:
        parts = [INTRODUCTION, *(_summary(one) for one in self.sets), ""]
        for one in self.sets:
            parts += [f"## {plain(one.name)}\n", describe_set(one.found) + "\n", rows_table(one.rows, one.reference)]
            parts.append(_making(one))
        parts.append("## Beside the rows of table 2\n")
        parts.append(BESIDE_NOTE)
        for one in self.table2:
            parts += [f"### {plain(one.name)}\n", describe_set(one.found) + "\n"]
            parts += [rows_table(one.rows, one.reference, BESIDE), _making(one)]
        if self.speed is not None:
            told = f"`{self.speed['command']}` at {self.speed['commit']}, {self.speed['machine']}"
            ratios = [(name, value) for name, value in self.speed["ratios"].items() if "_s" not in name]
            parts.append(f"## Speed\n\n{told}. Ratios within one run, as the benchmark names them:\n")
            parts.append(markdown_table(["ratio", "value"], [[f"`{name}`", f"{value:.2f}"] for name, value in ratios]))
        parts.append(f"## How to read this\n\n**bold**: best, significantly so. {METHOD}\n")
        parts.append(f"Made by `{MADE_BY}` from the records.\n")
        return "\n".join(parts)


def report_evidence(results: Path, out: Path) -> EvidenceReport:
    """Read the records in `results`, and write evidence.md and evidence.json to `out`. Nothing is run.

    Raises:
        DataError: there are no records.
    """
    folders = sorted(folder for folder in results.glob("evidence-*") if (folder / "runs").is_dir())
    sets = [one for folder in folders for one in _sets(folder, LEARNED)]
    if not sets:
        raise DataError(f"{results} has no records of a comparison under evidence-*/runs; give --results FOLDER")
    speed = results / "evidence-speed.json"
    report = EvidenceReport(
        sets=sets,
        table2=_sets(results / TABLE2, EVIDENCE),
        speed=_read(speed) if speed.is_file() else None,
    )
    write_json(out / "evidence.json", report.to_dict())
    write_text(out / "evidence.md", report.to_markdown())
    return report


def _sets(folder: Path, reference: str) -> list[EvidenceSet]:
    """The sets of a comparison that have finished runs of the row `reference`."""
    sets = []
    command = folder / COMMAND
    told = command.read_text(encoding="utf-8").strip() if command.is_file() else "not recorded"
    folds: dict[str, list[Path]] = {}  # of each set; one where it is not cross-validated
    for file in sorted(folder.glob("data/*.json")):
        folds.setdefault(file.stem.partition(".fold-")[0], []).append(file)
    for name, files in folds.items():
        parts = {file.stem: _read(file)["result"] for file in files}
        runs = _runs(folder / "runs", name, parts)
        if reference in [one.model for one in runs]:
            threads = sorted({result["times"]["threads"] for one in runs for result in one.results})
            found = pooled(list(parts.values())) if len(parts) > 1 else parts[name]
            sets.append(EvidenceSet(name, found, reference, table_rows(runs, reference), told, threads))
    return sets


def _runs(folder: Path, data: str, parts: Mapping[str, Mapping[str, Any]]) -> list[Runs]:
    """The finished runs on the documents of `parts`, which are the set or its folds, row by row, seeds that are done on
    all folds; the rows of the model first, then by accuracy."""
    by_row: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for part, found in parts.items():
        documents = {name: one["sha256"] for name, one in found["parts"].items()}
        for file in sorted(folder.glob(f"{part}--*.json")):
            record = _read(file)
            arguments = record["arguments"]
            if record["state"] == "done" and arguments["data_sha256"] == documents and _wanted(folder, arguments):
                seed = arguments["settings"]["training"]["seed"]
                by_row.setdefault(arguments["row"], {}).setdefault(seed, []).append(record)
    runs = []
    for row, by_seed in by_row.items():
        whole = {seed: records for seed, records in by_seed.items() if len(records) == len(parts)}
        if whole:
            results = {seed: [record["result"] for record in records] for seed, records in whole.items()}
            settings = _settings(next(iter(whole.values()))[0]["arguments"]["settings"])
            runs.append(Runs.of(data, row, results, settings))
    return sorted(runs, key=lambda one: (one.model != LEARNED, not one.settings, -one.right.mean()))


def _wanted(folder: Path, arguments: Mapping[str, Any]) -> bool:
    """Of table 2, its own rows; other experiments have left records there, too."""
    known = arguments["row"] in {*PAPER_ROWS, *OTHER_ROWS} or arguments["settings"]["model"]["name"] == "transformer"
    return known or folder.parent.name != TABLE2


def _settings(settings: Mapping[str, Any]) -> tuple[str, ...]:
    model = settings["model"]
    return (f"model.segmentation={model['segmentation']}",) if model["name"] == "evidence" else ()


def _summary(one: EvidenceSet) -> str:
    """One line: the learned segmentation against the fixed ones and against the overlapping bag."""
    rows = {row.model: row for row in one.rows if row.settings}
    others = [row for name, row in rows.items() if name not in (LEARNED, OVERLAPPING) and row.against is not None]
    fixed = [row for row in others if row.settings != rows[LEARNED].settings]
    told = f"- {plain(one.name)}: learned {percent(rows[LEARNED].accuracy)} %"
    if others and not fixed:  # all segmentations are learned: the ablation of the parts
        changes = sorted(others, key=lambda row: row.accuracy)
        points = (
            f"{plain(row.model)} {100 * (row.accuracy - rows[LEARNED].accuracy):+.1f}"
            + " (significant)" * bool(row.against and row.against.counts)
            for row in changes
        )
        return f"{told}; {', '.join(points)} points."
    if fixed:
        gains = sorted(rows[LEARNED].accuracy - row.accuracy for row in fixed)
        counts = sum(row.against is not None and row.against.counts for row in fixed)
        told += f"; against {len(fixed)} fixed segmentations {100 * gains[0]:+.1f} to {100 * gains[-1]:+.1f} points"
        told += f", significant for {counts}"
    if (bag := rows.get(OVERLAPPING)) is not None and bag.against is not None:
        sure = "significant" if bag.against.counts else "not significant"
        told += f"; against the overlapping bag {100 * (rows[LEARNED].accuracy - bag.accuracy):+.1f} ({sure})"
    return told + "."


def _making(one: EvidenceSet) -> str:
    commits = ", ".join(sorted({commit for row in one.rows for commit in row.commits}))
    threads = " or ".join(map(str, one.threads))
    return f"- command: `{one.command}`\n- commits: {commits}; threads of a run: {threads}\n"


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value
