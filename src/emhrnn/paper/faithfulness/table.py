"""Faithfulness of explanations as data, Markdown and curves: how far p falls as more is removed, or less is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from emhrnn.explain.removal import LEVELS
from emhrnn.paper.faithfulness.attributions import SHARES
from emhrnn.paper.plot import pyplot, save_svg

METHODS = {
    "random": "random",
    "attention": "attention",
    "effect": "weight x effect",
    "thorough": "weight x effect, looking twice",
    "gradients": "integrated gradients",
    "occlusion": "occlusion",
}
PREDICTION = "prediction"
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
class FaithfulnessRow:
    """One explanation at one level."""

    level: str
    method: str
    comprehensiveness: Mean
    sufficiency: Mean
    curve: Mapping[str, Sequence[float]]  # both, by share
    forward: float  # passes per document
    backward: float
    predictions: float  # CPU time in that of a plain prediction


@dataclass(frozen=True)
class AreaDifference:
    """Comprehensiveness of ours minus that of another, on the same documents."""

    level: str
    ours: str
    method: str
    difference: Mean
    cost: float  # the other's CPU time over ours


@dataclass(frozen=True)
class FaithfulnessTable:
    """The rows, the differences, and a header: command, commit, machine, run, data."""

    header: Mapping[str, Any]
    rows: Sequence[FaithfulnessRow]
    differences: Sequence[AreaDifference]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.header,
            "shares": SHARES,
            "rows": [asdict(row) for row in self.rows],
            "differences": [asdict(difference) for difference in self.differences],
        }


def make_table(header: Mapping[str, Any], results: Sequence[Mapping[str, Any]], seed: int) -> FaithfulnessTable:
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
        AreaDifference(
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
    return FaithfulnessTable(header, rows, differences)


def _row(
    level: str,
    method: str,
    parts: Sequence[Mapping[str, Any]],
    bootstrap: Float64[np.ndarray, "samples documents"],
    predictions: float,
) -> FaithfulnessRow:
    removed, alone = (_column(parts, name) for name in ("comprehensiveness", "sufficiency"))
    return FaithfulnessRow(
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


INTRODUCTION = """
p is the probability of the predicted class. *Comprehensiveness*: how far p falls when the top 1, 5, 10, 20, 50 % of the
words (phrases, sentences) are taken out, mean of the five; the higher, the more the explanation names what was needed.
*Sufficiency*: how far p falls when only these are kept; the lower, the more they are enough. In brackets: 95 % of
bootstrap samples of documents. *Passes*: forward and backward passes of the model per document. *Time*: CPU time in
that of a plain prediction of the same documents (word ids to probabilities).
"""


def to_markdown(table: FaithfulnessTable) -> str:
    """faithfulness.md."""
    lines = ["# How faithful explanations are", ""]
    lines += [f"- {name}: {value}" for name, value in table.header.items()]
    lines += INTRODUCTION.splitlines()
    for level in LEVELS:
        lines += [
            "", f"## By {level}s", "",
            "| explanation | comprehensiveness | sufficiency | passes | time |", "|---|--:|--:|--:|--:|",
        ]  # fmt: skip
        for row in (row for row in table.rows if row.level == level):
            name = f"**{METHODS[row.method]}**" if row.method in OURS else METHODS[row.method]
            passes = f"{row.forward:.0f} + {row.backward:.0f}"
            lines.append(f"| {name} | {row.comprehensiveness} | {row.sufficiency} | {passes} | {row.predictions:.1f} |")
    lines += ["", "## Weight x effect against the others", ""]
    lines += ["Differences of comprehensiveness on the same documents; *cost*: the other's CPU time over ours.", ""]
    lines += ["| level | explanation | against | difference | | cost |", "|---|---|---|--:|---|--:|"]
    lines += [_difference(difference) for difference in table.differences]
    return "\n".join(lines) + "\n"


def _difference(one: AreaDifference) -> str:
    mean = one.difference
    verdict = "better" if mean.low > 0 else "worse" if mean.high < 0 else "no clear difference"
    cost = f"{one.cost:.1f}" if one.cost < 10 else f"{one.cost:.0f}"
    signed = f"{mean.value:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}]"
    return f"| {one.level} | {METHODS[one.ours]} | {METHODS[one.method]} | {signed} | {verdict} | {cost} |"


STYLES = {
    "random": ":",
    "attention": "--",
    "effect": "-",
    "thorough": (0, (8, 2)),
    "gradients": "-.",
    "occlusion": (0, (5, 1, 1, 1, 1, 1)),
}
MARKERS = {"random": "x", "attention": "s", "effect": "o", "thorough": "v", "gradients": "^", "occlusion": "D"}
TITLES = {
    "comprehensiveness": "fall of p when these are taken out",
    "sufficiency": "fall of p when only these are kept",
}


def draw_curves(table: FaithfulnessTable, path: Path) -> None:
    """How far p falls, by share, as SVG."""
    plt = pyplot()
    figure, axes = plt.subplots(2, len(LEVELS), figsize=(11, 6.4), sharex=True, sharey="row", squeeze=False)
    places = range(len(SHARES))
    for row in table.rows:
        for axis_row, what in zip(axes, TITLES, strict=True):
            axis_row[LEVELS.index(row.level)].plot(
                places, row.curve[what], linestyle=STYLES[row.method], marker=MARKERS[row.method], markersize=4,
                linewidth=2.2 if row.method in OURS else 1.2, label=METHODS[row.method],
            )  # fmt: skip
    for axis, level in zip(axes[0], LEVELS, strict=True):
        axis.set_title(f"{level}s")
    for axis in axes[1]:
        axis.set_xticks(list(places), [f"{share:.0%}" for share in SHARES])
        axis.set_xlabel("top share by the explanation")
    for axis_row, title in zip(axes, TITLES.values(), strict=True):
        axis_row[0].set_ylabel(title)
        for axis in axis_row:
            axis.axhline(0, color="0.6", linewidth=0.8)
            axis.grid(visible=True, alpha=0.3)
    axes[0][-1].legend(fontsize=8, loc="upper left")  # where the curves leave room
    save_svg(figure, path)
