"""The two figures of the simulation, as SVG: recovery against epochs, and seconds against lengths."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.paper.drawing import pyplot, save
from emhrnn.paper.simulation.table import CHANCE, NAMES, PAPER, Table

Points = Mapping[tuple[str, str], Sequence[Sequence[Mapping[str, Any]]]]  # (reading, method) -> seeds -> epochs


def draw_recovery(table: Table, points: Points, path: Path) -> None:
    """One panel per reading: mean over seeds and range of each method; chance, oracle and the paper's values."""
    plt = pyplot()
    readings = table.readings
    figure, axes = plt.subplots(1, len(readings), figsize=(5.2 * len(readings), 4.4), squeeze=False, sharey=True)
    for axis, (reading, allowed) in zip(axes[0], readings.items(), strict=True):
        axis.axhline(CHANCE["all"], color="0.5", linestyle=":", linewidth=1)
        axis.text(1, CHANCE["all"] + 0.4, "chance", fontsize=7, color="0.4")
        if allowed is not None:
            axis.axhline(allowed.oracle_all, color="0.2", linestyle="--", linewidth=1)
            axis.text(1, allowed.oracle_all + 0.4, "oracle, one document", fontsize=7, color="0.2")
        for number, method in enumerate(NAMES):
            seeds = points.get((reading, method))
            if not seeds:
                continue
            test = 100 * np.array([[point["test"] for point in epochs] for epochs in seeds])
            epoch = [point["epoch"] for point in seeds[0]]
            colour = f"C{number}"
            axis.plot(epoch, test.mean(0), color=colour, label=NAMES[method], linewidth=1.4)
            axis.fill_between(epoch, test.min(0), test.max(0), color=colour, alpha=0.12, linewidth=0)
            if reading == "vocabulary" and method in PAPER:
                axis.plot([1.0, 1.03], [PAPER[method][1]] * 2, color=colour, linewidth=2, clip_on=False,
                          transform=axis.get_yaxis_transform())  # fmt: skip
        axis.set(title=reading, xlabel="epoch" if reading == "vocabulary" else "EM round, or epoch")
        axis.set_xscale("log")
    axes[0][0].set_ylabel("indicators recovered on test documents, %")
    axes[0][0].set_ylim(45, 101)
    handles = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    title = "ticks at the far right: the paper" if "vocabulary" in readings else None
    axes[0][0].legend(handles.values(), handles, fontsize=7, loc="best", title=title, title_fontsize=7)
    save(figure, path)


def draw_cost(cost: Mapping[str, Any], path: Path) -> None:
    """Left: block length; right: document length; both with enumeration by full passes."""
    plt = pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.2))
    _draw_curves(left, cost["by_block_length"], "block_length")
    left.set(xlabel="words of a block (documents of 40 words)", ylabel="CPU seconds of an E-step per document")
    _draw_curves(right, cost["by_document_length"], "words")
    right.set(xlabel="words of a document (sentences of 5)", ylabel="CPU seconds of an E-step per document")
    save(figure, path)


def _draw_curves(axis: Any, costs: Sequence[Mapping[str, Any]], along: str) -> None:
    for method in dict.fromkeys(cost["method"] for cost in costs):
        mine = [cost for cost in costs if cost["method"] == method]
        counted = mine[0]["counted"]
        axis.plot([cost[along] for cost in mine], [cost["seconds"] for cost in mine], marker="o", markersize=3,
                  linestyle="--" if counted else "-", label=f"{method} (counted)" if counted else method)  # fmt: skip
    axis.set_yscale("log")
    axis.grid(visible=True, which="major", alpha=0.3)
    axis.legend(fontsize=7)
