"""Figures by matplotlib: the history of runs and their phrase lengths (`emhrnn paper plot`), and SVG files that are the
same for the same data."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_bytes
from emhrnn.training.progress import Epoch, read_history
from emhrnn.training.run import HISTORY, read_description, read_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check_plots() -> None:
    """Before the work begins: is the extra there?"""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError("figures need matplotlib; install emhrnn[plots], or pass --no-figures") from None


def pyplot() -> Any:
    """matplotlib.pyplot without a window."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "emhrnn"  # the same data, the same file
    from matplotlib import pyplot

    return pyplot


def save_svg(figure: Any, path: Path) -> None:
    """Write the figure and close it."""
    buffer = BytesIO()
    figure.tight_layout()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    pyplot().close(figure)
    write_bytes(path, buffer.getvalue())


# Okabe and Ito's colours, which people with any colour vision can tell apart; marks and dashes tell them in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P")
SHADES = {"warm-up": "#F0F0F0", "indicator": "#DCDCDC", "em": "#FFFFFF"}
NAMES = {"accuracy": "accuracy", "macro_f1": "macro-F1", "loss": "loss (nats)", "ece": "calibration error"}
LONGEST = 20  # words; longer phrases are counted together


@dataclass(frozen=True)
class PlottedRun:
    """What the figure shows of a run."""

    name: str
    metric: str  # that picked the best epoch
    epochs: list[Epoch]
    phrases: list[int] | None  # phrases of 1, 2, ... words in the validation data; None: the model has none, or no end

    @property
    def best(self) -> int:
        return max(epoch.epoch for epoch in self.epochs if epoch.best)

    def phases(self) -> list[tuple[str, int, int]]:
        """Name, first and last epoch, counted from 1."""
        found: list[tuple[str, int, int]] = []
        for epoch in self.epochs:
            if found and found[-1][0] == epoch.phase:
                found[-1] = (epoch.phase, found[-1][1], epoch.epoch + 1)
            else:
                found.append((epoch.phase, epoch.epoch + 1, epoch.epoch + 1))
        return found


def draw_runs(runs: Sequence[PlottedRun]) -> Any:
    """A matplotlib Figure, made without pyplot: nothing global, no window."""
    from matplotlib.figure import Figure

    bottom = ["rate"]
    if any("boundary_rate" in epoch.boundaries for run in runs for epoch in run.epochs):
        bottom.append("boundaries")
    if any(run.phrases for run in runs):
        bottom.append("phrases")
    width = 6 // len(bottom)
    figure = Figure(figsize=(9, 5.8), layout="constrained")
    top = ["loss"] * 3 + ["metric"] * 3
    axes: dict[str, Axes] = figure.subplot_mosaic(cast(Any, [top, [name for name in bottom for _ in range(width)]]))
    metric = runs[0].metric
    _titles(axes, metric, runs)
    for number, run in enumerate(runs):
        _draw_history(axes, run, number, metric, several=len(runs) > 1)
    if "phrases" in axes:
        _draw_phrases(axes["phrases"], runs)
    for name, panel in axes.items():
        _tidy(panel)
        if name != "phrases":
            _number_epochs(panel, max(len(run.epochs) for run in runs))
            _shade(panel, runs, named=name == "loss")
    axes["loss"].legend(frameon=False)
    if len(runs) > 1:
        handles, labels = axes["metric"].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(runs), 4), frameon=False)
    return figure


def _titles(axes: dict[str, "Axes"], metric: str, runs: Sequence[PlottedRun]) -> None:
    axes["loss"].set(title="Loss", ylabel="nats per document")
    axes["metric"].set(title=f"Validation {NAMES.get(metric, metric)}", ylabel=NAMES.get(metric, metric))
    axes["rate"].set(title="Learning rate", ylabel="at the end of the epoch")
    if "boundaries" in axes:
        axes["boundaries"].set(title="Boundary rate", ylabel="of words, sentence ends left out")
    if "phrases" in axes:
        axes["phrases"].set(title="Phrases, validation data", xlabel="words", ylabel="share of phrases")
    if len(runs) == 1:
        axes["loss"].figure.suptitle(runs[0].name, fontweight="bold")


def _draw_history(axes: dict[str, "Axes"], run: PlottedRun, number: int, metric: str, *, several: bool) -> None:
    colour, mark = COLOURS[number], MARKS[number]
    style: dict[str, Any] = {"color": colour, "marker": mark, "markersize": 3.5, "linewidth": 1.4}
    x = [epoch.epoch + 1 for epoch in run.epochs]
    labels = ("training", "validation") if number == 0 else (None, None)
    axes["loss"].plot(x, [epoch.train_loss for epoch in run.epochs], label=labels[0], **style)
    axes["loss"].plot(x, [epoch.valid["loss"] for epoch in run.epochs], label=labels[1], linestyle="--", **style)
    known = [epoch for epoch in run.epochs if metric in epoch.valid]
    axes["metric"].plot([e.epoch + 1 for e in known], [e.valid[metric] for e in known], label=run.name, **style)
    best = next((epoch.valid[metric] for epoch in known if epoch.epoch == run.best), None)
    if best is not None:
        axes["metric"].plot(run.best + 1, best, "o", color=colour, markersize=11, fillstyle="none")
        if not several:
            axes["metric"].set_title(f"Validation {NAMES.get(metric, metric)} (best {best:.3f})")
    stepped = [epoch for epoch in run.epochs if epoch.learning_rate > 0]  # models that are fitted at once have none
    axes["rate"].plot([e.epoch + 1 for e in stepped], [e.learning_rate for e in stepped], **style)
    if "boundaries" in axes:
        cut = [epoch for epoch in run.epochs if "boundary_rate" in epoch.boundaries]
        axes["boundaries"].plot([e.epoch + 1 for e in cut], [e.boundaries["boundary_rate"] for e in cut], **style)


def _draw_phrases(panel: "Axes", runs: Sequence[PlottedRun]) -> None:
    shown = [(number, run.phrases) for number, run in enumerate(runs) if run.phrases]
    longest = min(LONGEST, max(len(counts) for _, counts in shown))
    cut = any(len(counts) > longest for _, counts in shown)
    for number, counts in shown:
        kept = counts[:longest] + [0] * (longest - len(counts))
        kept[-1] += sum(counts[longest:])
        shares = [count / sum(counts) for count in kept]
        x = range(1, longest + 1)
        if len(runs) == 1:
            panel.bar(x, shares, color=COLOURS[number], width=0.85)
        else:
            panel.plot(x, shares, color=COLOURS[number], marker=MARKS[number], markersize=3.5, linewidth=1.4)
    ticks = [tick for tick in (1, 5, 10, 15, 20) if tick <= longest]
    panel.set_xticks(ticks, [f"{tick}+" if cut and tick == longest else str(tick) for tick in ticks])
    panel.set_ylim(bottom=0)


def _shade(panel: "Axes", runs: Sequence[PlottedRun], *, named: bool) -> None:
    """The phases of EM, where all runs have the same."""
    phases = runs[0].phases()
    if len(phases) < 2 or any(run.phases() != phases for run in runs):
        return
    for name, first, last in phases:
        panel.axvspan(first - 0.5, last + 0.5, color=SHADES.get(name, "#FFFFFF"), zorder=0, linewidth=0)
        if named:
            panel.text((first + last) / 2, 0.02, name, transform=panel.get_xaxis_transform(), ha="center", va="bottom",
                       color="#555555", fontsize=8)  # fmt: skip


def _tidy(panel: "Axes") -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 4), useMathText=True)


def _number_epochs(panel: "Axes", epochs: int) -> None:
    from matplotlib.ticker import MaxNLocator

    panel.set_xlabel("epoch")
    panel.set_xlim(0.5, epochs + 0.5)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


FORMATS = (".svg", ".png", ".pdf")
MOST = 6  # runs in a figure: more lines than that cannot be told apart


def read_run(folder: Path, name: str | None = None) -> PlottedRun:
    """Raises:
    CheckpointError: the folder is no run, or has no epoch yet.
    """
    description = read_description(folder)
    if not (folder / HISTORY).is_file():
        raise CheckpointError(f"{folder} has no history yet; wait for its first epoch, or go on with --resume")
    epochs = read_history(folder / HISTORY)
    if not any(epoch.best for epoch in epochs):
        raise CheckpointError(f"{folder} has no history yet; wait for its first epoch, or go on with --resume")
    try:
        metrics = read_metrics(folder) or {}
        phrases = (metrics.get("valid", {}).get("phrases") or {}).get("histogram")
        metric = str(description["config"]["training"]["metric"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: its description or metrics are corrupt ({error}); copy the run again or train anew"
        ) from None
    return PlottedRun(name or folder.resolve().name, metric, epochs, phrases)


def plot(folders: Sequence[Path], out: Path) -> None:
    """Draw the runs over each other into an .svg, .png or .pdf file."""
    if out.suffix.lower() not in FORMATS:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(FORMATS)}")
    if len(folders) > MOST:
        raise DataError(f"{len(folders)} runs were given and a figure has room for {MOST}; give fewer")
    try:
        import matplotlib
    except ImportError:
        raise ConfigError(
            "plots need matplotlib, which is not installed; install it with: pip install 'emhrnn[plots]'"
        ) from None
    runs = [read_run(folder, name) for folder, name in zip(folders, _names(folders), strict=True)]
    buffer = io.BytesIO()
    # Text stays text in an SVG, and the same run gives the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "emhrnn", "font.size": 9}):
        figure = draw_runs(runs)
        figure.savefig(buffer, format=out.suffix[1:].lower(), dpi=160, metadata=_no_date(out))
    try:
        write_bytes(out, buffer.getvalue())
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror or error}; give another file") from None


def _no_date(out: Path) -> dict[str, Any] | None:
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(out.suffix.lower())


def _names(folders: Sequence[Path]) -> list[str]:
    """The name of each folder; the whole path where two have the same."""
    short = [folder.resolve().name for folder in folders]
    return [name if short.count(name) == 1 else str(folder) for name, folder in zip(short, folders, strict=True)]
