"""Faults in every command that writes: kill, torn write, power loss, full disk, I/O error, short write, EINTR, refused
rename, no descriptors. After each, the same command is given again.

    python -m tests.faults.campaign --faults 1000 [--seed N] [--commands train,predict-csv] [--record]

Four things must hold. The bytes after the second call are those of an undisturbed call. No other file of the folder
was touched. No file is left over. A call that ended with an error said so in one line that names a file.
"""

import argparse
import json
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.behaviour.commands import tiny, write_reviews, write_rows
from tests.faults.power_loss import lose_unsynced, read_log
from tests.faults.processes import BITS, CLASSES, KILLED, Ended, Nursery
from tests.faults.report import record, recorded

SETTINGS = ["--set", "training.threads=1", "--quiet"]
TRAINED = [*tiny("evidence", "training.epochs=2", "training.batch_words=200", "model.embedding_size=4"), *SETTINGS]
FITTED = [*tiny("tfidf-lr"), *SETTINGS]
ALONE = ["--workers", "1", "--quiet"]
COMMANDS: dict[str, list[str]] = {
    "train": ["train", "reviews.csv", "--out", "new", "--resume", *TRAINED],
    "train-fitted": ["train", "reviews.csv", "--out", "new", "--resume", *FITTED],
    "train-overwrite": ["train", "reviews.csv", "--out", "run", "--overwrite", *TRAINED],
    "predict-csv": ["predict", "run", "rows.csv", "--out", "out.csv", "--mistakes", "out.wrong.csv", *ALONE],
    "predict-jsonl": ["predict", "run", "rows.csv", "--out", "out.jsonl", "--explain", *ALONE],
    "predict-parquet": ["predict", "run", "rows.csv", "--out", "out.parquet", *ALONE],
    "calibrate": ["calibrate", "run", "later.csv", "--quiet"],
    "calibrate-out": ["calibrate", "run", "later.csv", "--out", "new", "--quiet"],
    "audit": ["audit", "later.csv", "--out", "suspects.csv", "--html", "audit.html", "--folds", "2"],
    "pack": ["pack", "run"],
    "prepare": ["paper", "prepare", "reviews.csv", "--out", "corpus", "--overwrite", "--quiet"],
    "explain": ["explain", "run", "The soup was good.", "--html", "why.html"],
    "export-web": ["export", "run", "--web", "page", "--overwrite"],
    "tune": ["tune", "reviews.csv", "--out", "study", "--trials", "1", "--minutes", "5", *FITTED],
}
NAMED = re.compile(r"\b(new|run|out|rows|reviews|later|suspects|audit|corpus|why|page|study)\b")  # a file
ONCE = {"calibrate-out"}  # refuse to replace what is whole
VOLATILE = {"seconds", "words_per_second", "waiting", "finished", "checksum", "meter"}  # keys of JSON
UNEQUAL = {"study/journal.log", "study/trials.csv", "study/best.toml"}  # hold times, and trials that were cut short


@dataclass(frozen=True)
class Outcome:
    """What came of one fault; `wrong` is empty where all four things hold."""

    command: str
    fault: str
    moment: int
    first: int | None  # exit codes
    again: int | None
    said: str
    wrong: tuple[str, ...]


def make_template(folder: Path, nursery: Nursery) -> None:
    """Data, a trained run, and files of other people, one of them with a name as of ours."""
    write_reviews(folder / "reviews.csv", 24)
    later = [(f"The soup was {('good', 'bad')[i % 3 > 1]}, visit {i}.", ("good", "bad")[i % 2]) for i in range(60)]
    write_rows(folder / "later.csv", later)
    texts = [(f"A good soup number {i}. The waiter was bad.", "good") for i in range(99)]
    write_rows(folder / "rows.csv", [*texts, ("", "good")])
    for name in ("notes.txt", ".hidden", ".out.parquet.partial", ".somebody.0123abcd.partial"):
        (folder / name).write_text("of other people\n")
    ended = nursery.run(["train", "reviews.csv", "--out", "run", *TRAINED], folder)
    assert ended.code == 0, ended.said


class Campaign:
    """Runs commands with faults in copies of one folder."""

    def __init__(self, nursery: Nursery) -> None:
        self.nursery = nursery
        self.template, self.place = nursery.folder / "template", nursery.folder / "place"
        self.template.mkdir()
        make_template(self.template, nursery)
        self._foreign = contents(self.template)
        self._expected: dict[str, dict[str, Any]] = {}
        self._counts: dict[str, Counter[int]] = {}

    def moments(self, command: str, fault: str) -> int:
        """At how many places of a command the fault can come."""
        if command not in self._expected:
            self._fresh()
            ended = self.nursery.run(COMMANDS[command], self.place)
            assert ended.code == 0, (command, ended)
            self._expected[command] = contents(self.place)
            self._counts[command] = Counter(BITS[change.what] for change in read_log(self.nursery.log))
        return sum(n for bit, n in self._counts[command].items() if bit & CLASSES[fault].operations)

    def disturb(self, command: str, fault: str, moment: int) -> Outcome:
        """One fault, and the same command again."""
        expected_calls = self.moments(command, fault)
        assert moment <= expected_calls
        self._fresh()
        first = self.nursery.run(COMMANDS[command], self.place, CLASSES[fault], moment)
        if fault.startswith("power loss") and first.code == KILLED:
            lose_unsynced(read_log(self.nursery.log), self.nursery.backups, names=fault.endswith("names too"))
        wrong = _wrong_end(first, killed=CLASSES[fault].ends)
        again = self.nursery.run(COMMANDS[command], self.place)
        found, expected = contents(self.place), self._expected[command]
        if again.code and not (command in ONCE and found == expected):
            wrong.append("the second call failed")
        if any(found.get(name) != content for name, content in expected.items()):
            wrong.append("other bytes")
        if found.keys() - expected.keys():
            wrong.append("files left over")
        written = {name for name in expected if expected[name] != self._foreign.get(name)}
        if any(found.get(name) != self._foreign[name] for name in self._foreign.keys() - written):
            wrong.append("other files touched")
        differing = sorted(name for name in expected.keys() | found.keys() if found.get(name) != expected.get(name))
        said = " | ".join([first.said.strip(), again.said.strip() if again.code else "", *differing[:4]])
        return Outcome(command, fault, moment, first.code, again.code, said, tuple(wrong))

    def _fresh(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.template, self.place, symlinks=True)


def _wrong_end(first: Ended, *, killed: bool) -> list[str]:
    if first.code is None:
        return ["hung"]
    if first.code == 0 or (killed and first.code == KILLED):
        return []
    if "Traceback" in first.said or first.code == 1:
        return ["traceback"]
    if first.code != 2:
        return [f"ended with {first.code}"]
    said = first.said.strip().splitlines()
    if not said or not NAMED.search(said[-1]):
        return ["file not named"]
    return []


def contents(folder: Path) -> dict[str, Any]:
    """Every file by its name, as bytes; of JSON, what does not depend on the clock."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            found[name] = "folder"
        elif name in UNEQUAL:
            found[name] = "a file"
        else:
            found[name] = _without_times(path)
    return found


def _without_times(path: Path) -> Any:
    content = path.read_bytes()
    if path.suffix in (".json", ".jsonl"):
        try:
            return [_timeless(json.loads(line)) for line in content.splitlines()]
        except ValueError:
            try:
                return _timeless(json.loads(content))
            except ValueError:
                return content
    if path.suffix == ".md":
        return re.sub(rb"[\d.,]+ (seconds|s|words/s|words per second|minutes)\b", b"T", content)
    if path.parent.name == "checkpoint":
        return _timeless(_tensors(path))
    return content


def _tensors(path: Path) -> Any:
    from emhrnn.training.arrays import load_arrays

    arrays, note = load_arrays(path)
    return {"note": note, **{name: [str(array.dtype), array.tobytes()] for name, array in arrays.items()}}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(inner) for key, inner in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_timeless(inner) for inner in value]
    return value


def draw(campaign: Campaign, commands: list[str], faults: int, seed: int) -> Iterator[tuple[str, str, int]]:
    """So many faults, spread over commands, classes and places; all there are, where that is fewer."""
    generator = np.random.default_rng(seed)
    places = {
        (command, fault): generator.permutation(campaign.moments(command, fault)) + 1
        for command in commands
        for fault in CLASSES
    }
    drawn = 0
    for turn in range(max(map(len, places.values()))):
        for index in generator.permutation(len(places)).tolist():
            (command, fault), moments = list(places.items())[index]
            if turn < len(moments) and drawn < faults:
                drawn += 1
                yield command, fault, int(moments[turn])


def section(outcomes: list[Outcome], command: str) -> dict[str, Any]:
    """Counts by command and class, and what was wrong."""
    tried = Counter((outcome.command, outcome.fault) for outcome in outcomes)
    wrong = Counter((outcome.command, outcome.fault, what) for outcome in outcomes for what in outcome.wrong)
    rows = [
        {
            "command": command,
            "fault": fault,
            "tried": count,
            "wrong": {what: n for (*place, what), n in wrong.items() if place == [command, fault]},
        }
        for (command, fault), count in tried.items()
    ]
    return {"command": command, "rows": rows}


def merged(before: dict[str, Any] | None, now: dict[str, Any], *, add: bool) -> dict[str, Any]:
    """The counts of both campaigns: added, or those of now in place of those of the same commands before."""
    if before is None:
        return now
    tried_now = {row["command"] for row in now["rows"]}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (*(row for row in before["rows"] if add or row["command"] not in tried_now), *now["rows"]):
        sofar = rows.setdefault((row["command"], row["fault"]), {**row, "tried": 0, "wrong": {}})
        sofar["tried"] += row["tried"]
        sofar["wrong"] = dict(Counter(sofar["wrong"]) + Counter(row["wrong"]))
    return {"command": f"{before['command']}`, `{now['command']}", "rows": list(rows.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=30, help="no fault begins later")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", default=",".join(COMMANDS), help="some: their counts replace those of before")
    parser.add_argument("--record", action="store_true", help="write the counts to results/reliability.md and .json")
    parser.add_argument("--add", action="store_true", help="with --record: add to the counts of earlier campaigns")
    options = parser.parse_args()
    began = time.monotonic()
    outcomes: list[Outcome] = []
    with Nursery() as nursery:
        campaign = Campaign(nursery)
        for command, fault, moment in draw(campaign, options.commands.split(","), options.faults, options.seed):
            if time.monotonic() - began > 60 * options.minutes:
                break
            outcome = campaign.disturb(command, fault, moment)
            outcomes.append(outcome)
            if len(outcomes) % 50 == 0:
                print(f"{len(outcomes)} faults, {time.monotonic() - began:.0f} s", flush=True)
            if outcome.wrong:
                print(json.dumps(asdict(outcome), ensure_ascii=False), flush=True)
    wrong = sum(bool(outcome.wrong) for outcome in outcomes)
    print(f"{len(outcomes)} faults, {wrong} with something wrong, {time.monotonic() - began:.0f} s")
    if options.record and outcomes:
        command = f"python -m tests.faults.campaign --faults {len(outcomes)} --seed {options.seed} --record"
        some = options.commands != ",".join(COMMANDS)
        command += f" --commands {options.commands}" * some + " --add" * options.add
        before = recorded("faults") if some or options.add else None
        record("faults", merged(before, section(outcomes, command), add=options.add))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
