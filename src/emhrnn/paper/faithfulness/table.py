"""The table: means over documents with bootstrap intervals, costs, and the differences that decide."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from emhrnn.explain.removal import LEVELS
from emhrnn.paper.faithfulness.job import METHODS, PREDICTION
from emhrnn.paper.faithfulness.perturbation import SHARES

SAMPLES, LEVEL = 10_000, 0.05
OURS, RIVALS = ("effect", "thorough"), ("random", "attention", "gradients", "occlusion")


@dataclass(frozen=True)
class Mean:
    """With the bootstrap's 95 % interval over documents."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Row:
    level: str
    method: str
    comprehensiveness: Mean
    sufficiency: Mean
    curve: Mapping[str, Sequence[float]]  # both, by share
    forward: float  # passes per document
    backward: float
    predictions: float  # CPU time in that of a plain prediction


@dataclass(frozen=True)
class Difference:
    """Comprehensiveness of ours minus that of another, on the same documents."""

    level: str
    ours: str
    method: str
    difference: Mean
    cost: float  # the other's CPU time over ours


@dataclass(frozen=True)
class Table:
    header: Mapping[str, Any]
    rows: Sequence[Row]
    differences: Sequence[Difference]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.header,
            "shares": SHARES,
            "rows": [asdict(row) for row in self.rows],
            "differences": [asdict(difference) for difference in self.differences],
        }


def make_table(header: Mapping[str, Any], results: Sequence[Mapping[str, Any]], seed: int) -> Table:
    """From the results of the jobs, in the order of the documents."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    seconds: dict[str, float] = {}
    for result in results:
        for row in result["rows"]:
            found.setdefault((row["level"], row["method"]), []).append(row)
        for name, value in result["seconds"].items():
            seconds[name] = seconds.get(name, 0.0) + value
    documents = sum(len(result["words"]) for result in results)
    counts = np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=SAMPLES)
    bootstrap: Float64[np.ndarray, "samples documents"] = counts / documents
    keys = [(level, method) for level in LEVELS for method in METHODS if (level, method) in found]
    areas = {key: _column(found[key], "comprehensiveness").mean(1) for key in keys}
    cost = {(level, method): seconds[f"{method} {level}"] for level, method in keys}
    rows = [_row(*key, found[key], bootstrap, cost[key] / seconds[PREDICTION]) for key in keys]
    differences = [
        Difference(
            level,
            ours,
            rival,
            _mean(areas[level, ours] - areas[level, rival], bootstrap),
            cost[level, rival] / cost[level, ours],
        )
        for level in LEVELS
        for ours in OURS
        for rival in RIVALS
        if {(level, ours), (level, rival)} <= set(keys)
    ]
    return Table(header, rows, differences)


def _row(
    level: str,
    method: str,
    parts: Sequence[Mapping[str, Any]],
    bootstrap: Float64[np.ndarray, "samples documents"],
    predictions: float,
) -> Row:
    removed, alone = (_column(parts, name) for name in ("comprehensiveness", "sufficiency"))
    return Row(
        level=level,
        method=method,
        comprehensiveness=_mean(removed.mean(1), bootstrap),
        sufficiency=_mean(alone.mean(1), bootstrap),
        curve={"comprehensiveness": removed.mean(0).tolist(), "sufficiency": alone.mean(0).tolist()},
        forward=float(_column(parts, "forward").mean()),
        backward=float(_column(parts, "backward").mean()),
        predictions=predictions,
    )


def _column(parts: Sequence[Mapping[str, Any]], name: str) -> Float64[np.ndarray, "documents ..."]:
    return np.concatenate([np.array(part[name], dtype=np.float64) for part in parts])


def _mean(values: Float64[np.ndarray, " documents"], bootstrap: Float64[np.ndarray, "samples documents"]) -> Mean:
    low, high = np.quantile(bootstrap @ values, [LEVEL / 2, 1 - LEVEL / 2])
    return Mean(float(values.mean()), float(low), float(high))
