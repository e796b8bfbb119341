"""The curves: how far p falls as more is taken out, or less is kept."""

from pathlib import Path

from emhrnn.explain.removal import LEVELS
from emhrnn.paper.drawing import pyplot, save
from emhrnn.paper.faithfulness.job import METHODS
from emhrnn.paper.faithfulness.perturbation import SHARES
from emhrnn.paper.faithfulness.table import OURS, Table

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


def draw(table: Table, path: Path) -> None:
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
    save(figure, path)
