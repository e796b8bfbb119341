"""Table 1 as data: rows of means over seeds, and what a reading allows. For JSON, and for people."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from emhrnn.paper.simulation.methods import METHODS

PAPER: dict[str, tuple[float, float]] = {  # train and test, in percent
    "hm-rnn": (95.2, 90.1),
    "mhs-rnn": (97.7, 91.9),
    "window-1": (97.2, 89.68),
    "window-2": (97.2, 90.0),
    "window-5": (97.6, 91.0),
    "local": (98.0, 92.7),
    "exact": (98.0, 93.0),
}
NAMES = {
    "hm-rnn": "HM-RNN",
    "mhs-rnn": "MHS-RNN",
    "window-1": "EM-HRNN, window 1",
    "window-2": "EM-HRNN, window 2",
    "window-5": "EM-HRNN, window 5",
    "local": "EM-HRNN, local",
    "exact": "EM-HRNN, exact",
    "printed-q": "EM-HRNN, Q as printed",
}
CAPTION = """Percent of indicators recovered, mean over seeds. *Test* is without the label and counts all ten positions,
as the paper does; 60 % is chance, because two of ten are given. *With label*: by the posterior of the learned model."""
CHANCE = {"free": 50.0, "all": 60.0}


@dataclass(frozen=True)
class Row:
    """Recovered indicators in percent, of all positions unless it says free; without the label unless it says with."""

    reading: str
    method: str
    train: float
    test: float
    test_sd: float | None  # over seeds; none with one seed
    seeds: int
    test_free: float
    train_with_label: float | None  # none where a method has no posterior
    test_with_label: float | None
    test_free_with_label: float | None
    log_evidence: float | None  # test: mean log p(y | w)
    seconds: float  # CPU, of learning


@dataclass(frozen=True)
class Allowed:
    """What the oracle of a reading says; entropies in bits, recoveries in percent."""

    reading: str
    label_entropy: float
    information: float
    oracle_free: float
    oracle_all: float


def make_row(reading: str, method: str, results: Sequence[Mapping[str, Any]]) -> Row:
    """From the results of one job per seed."""

    def mean(split: str, key: str, scale: float = 100.0) -> float | None:
        values = [result[split][key] for result in results if key in result[split]]
        return round(scale * fmean(values), 3) if values else None

    def given(split: str, key: str) -> float:
        value = mean(split, key)
        assert value is not None
        return value

    tests = [100 * result["test"]["all"] for result in results]
    return Row(
        reading=reading,
        method=method,
        train=given("train", "all"),
        test=given("test", "all"),
        test_sd=round(stdev(tests), 3) if len(tests) > 1 else None,
        seeds=len(results),
        test_free=given("test", "free"),
        train_with_label=mean("train", "all_with_label"),
        test_with_label=mean("test", "all_with_label"),
        test_free_with_label=mean("test", "free_with_label"),
        log_evidence=mean("test", "log_evidence", scale=1.0),
        seconds=round(fmean(result["seconds"] for result in results), 1),
    )


def make_allowed(reading: str, results: Sequence[Mapping[str, Any]]) -> Allowed:
    def mean(key: str, scale: float = 1.0) -> float:
        return round(scale * fmean(result[key] for result in results), 3)

    return Allowed(reading, mean("label_entropy"), mean("information"), mean("free", 100.0), mean("all", 100.0))


@dataclass(frozen=True)
class Table:
    header: Mapping[str, Any]  # command, commit, seeds, machine, documents
    rows: Sequence[Row]
    allowed: Sequence[Allowed]
    failures: Sequence[str] = ()

    @property
    def readings(self) -> dict[str, Allowed | None]:
        """What each allows; None where its oracle failed or has not been asked yet: its rows are there all the same."""
        known = {allowed.reading: allowed for allowed in self.allowed}
        return {**known, **{row.reading: known.get(row.reading) for row in self.rows}}

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.header,
            "unit": "percent of indicators recovered",
            "chance": CHANCE,
            "rows": [{**asdict(row), "paper_test": PAPER.get(row.method, (None, None))[1]} for row in self.rows],
            "oracle": [asdict(allowed) for allowed in self.allowed],
            "failures": list(self.failures),
        }

    def to_markdown(self) -> str:
        lines = ["# Table 1: recovered indicators", ""]
        lines += [f"- {name}: {value}" for name, value in self.header.items()]
        lines += ["", CAPTION, ""]
        for reading, allowed in self.readings.items():
            told = [] if allowed is None else [_told(allowed), ""]
            lines += [f"## {reading}", "", *told, *self._lines(reading), ""]
        if self.failures:
            lines += ["## Failed", "", *[f"- {failure}" for failure in self.failures], ""]
        return "\n".join(lines)

    def _lines(self, reading: str) -> list[str]:
        columns = ["method", "train", "test", "sd", "test, free", "test with label", "free with label", "seeds",
                   "CPU s to learn"]  # fmt: skip
        if reading == "vocabulary":
            columns.append("paper: test")
        lines = ["| " + " | ".join(columns) + " |", "|---" + "|--:" * (len(columns) - 1) + "|"]
        for row in sorted((row for row in self.rows if row.reading == reading), key=lambda r: METHODS.index(r.method)):
            cells = [NAMES[row.method], *map(_number, (row.train, row.test)), _number(row.test_sd, 2)]
            cells += map(_number, (row.test_free, row.test_with_label, row.test_free_with_label))
            cells += [str(row.seeds), f"{row.seconds:.0f}"]
            if reading == "vocabulary":
                cells.append(_number(PAPER.get(row.method, (None, None))[1]))
            lines.append("| " + " | ".join(cells) + " |")
        return lines


def _told(allowed: Allowed) -> str:
    return (
        f"H(y) = {allowed.label_entropy:.2f} bits, I(z; y | x) = {allowed.information:.2f} bits. An oracle that knows "
        f"the teacher, the tokens and the label, but no rule for z, recovers {allowed.oracle_all:.1f} % "
        f"(free positions: {allowed.oracle_free:.1f} %)."
    )


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
