"""Small inline charts: a bar, lines, columns, a confusion table. Colours come from the page's stylesheet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from emhrnn.explain.escape import escape
from emhrnn.explain.page import percent
from emhrnn.training.progress import Epoch

WIDTH, HEIGHT = 420, 250  # drawn at 350 px on a phone: 12 px letters stay readable
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 14, 34
HEAT_STEPS = 5

T = TypeVar("T")
Number = float | int


@dataclass(frozen=True)
class Line:
    """Points in the order of x. The first line of a chart is solid, the second dashed: told apart without colour. One
    point may have a ring."""

    name: str
    points: Sequence[tuple[Number, Number]]
    ringed: Number | None = None  # its x


@dataclass(frozen=True)
class Frame:
    """From values to places on the canvas."""

    x: tuple[Number, Number]
    y: tuple[Number, Number]

    def across(self, value: Number) -> float:
        low, high = self.x
        return LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def up(self, value: Number) -> float:
        low, high = self.y
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)


def bar(fraction: Number, kind: str = "weight") -> str:
    """A decorative bar; the number always stands beside it as text."""
    width = round(100 * min(max(fraction, 0), 1), 1)
    return f'<svg class="bar {kind}" aria-hidden="true"><rect width="{width:g}%" height="100%"/></svg>'


def drawn(fraction: Number) -> str:
    """The class of what the stylesheet draws a bar of this width for: shorter than `bar`, for every word has one."""
    return f"w{round(100 * min(max(fraction, 0), 1))}"


def figure(title: str, caption: str, drawing: str) -> str:
    """A chart with its title and caption."""
    return (
        f'<figure class="card"><h3>{escape(title)}</h3><figcaption>{escape(caption)}</figcaption>\n{drawing}</figure>\n'
    )


def canvas(label: str, content: str) -> str:
    """An SVG image with its description."""
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{content}</svg>'


def text(x: Number, y: Number, content: str, *, anchor: str = "middle", kind: str = "axis") -> str:
    """A piece of text at a place of the canvas."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(content)}</text>'


def line_chart(
    lines: Sequence[Line],
    *,
    label: str,
    show: Callable[[Number], str],
    references: Sequence[tuple[str, Number]] = (),
) -> str:
    """Up to two lines by epoch on one scale; `references` are named horizontal lines to compare with."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points] + [y for _, y in references]
    ticks = round_ticks(min(ys), max(ys))
    frame = Frame((min(xs), max(xs)), (ticks[0], ticks[-1]))
    parts = [
        horizontal(frame.up(tick), "grid") + text(LEFT - 8, frame.up(tick) + 4, show(tick), anchor="end")
        for tick in ticks
    ]
    parts += [text(frame.across(x), HEIGHT - BOTTOM + 16, f"{x:g}") for x in thin_out(sorted(set(xs)), 8)]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, "epoch"))
    for name, y in references:
        parts.append(horizontal(frame.up(y), "reference"))
        parts.append(text(WIDTH - RIGHT, frame.up(y) - 5, f"{name} {show(y)}", anchor="end"))
    for line, kind in zip(lines, ("first", "second"), strict=False):
        places = [(frame.across(x), frame.up(y)) for x, y in line.points]
        parts.append(f'<polyline class="line {kind}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
        for at in (place for place, (x, _) in zip(places, line.points, strict=True) if x == line.ringed):
            parts.append(f'<circle class="ring {kind}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="6"/>')
        x, y = places[-1]
        parts.append(f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
        words = f"{line.name} {show(line.points[-1][1])}".strip()
        if x < WIDTH * 0.7:  # a line that ends early: beside its end
            parts.append(text(x + 9, y + 4, words, anchor="start", kind="strong"))
            continue
        lower = line.points[-1][1] < max(other.points[-1][1] for other in lines)
        under = y < TOP + 16 or (lower and y < HEIGHT - BOTTOM - 24)  # never over the axis
        parts.append(text(x - 2, y + 20 if under else y - 10, words, anchor="end", kind="strong"))
    return canvas(label, "".join(parts))


def column_chart(counts: Sequence[int], outline: Sequence[int], *, label: str, x_name: str) -> str:
    """Columns for 1, 2, 3, ...; `outline` is a second distribution over them. Both are shares of their own total."""
    shares = [count / (sum(counts) or 1) for count in counts]
    others = [count / (sum(outline) or 1) for count in outline]
    n = max(len(shares), len(others), 1)
    ticks = round_ticks(0, max([*shares, *others, 0.01]))
    frame = Frame((0, n), (ticks[0], ticks[-1]))
    wide, floor = frame.across(1) - frame.across(0), frame.up(0)
    parts = [
        horizontal(frame.up(tick), "grid") + text(LEFT - 8, frame.up(tick) + 4, percent(tick), anchor="end")
        for tick in ticks
    ]
    for k, share in enumerate(shares):
        x, y = frame.across(k) + wide * 0.12, frame.up(share)
        size = f'width="{wide * 0.76:.1f}" height="{floor - y:.1f}"'
        parts.append(f'<rect class="column" x="{x:.1f}" y="{y:.1f}" {size} rx="3"/>')
    corners = [
        f"{frame.across(k + side):.1f},{frame.up(share):.1f}" for k, share in enumerate(others) for side in (0, 1)
    ]
    parts.append(f'<polyline class="step" points="{" ".join(corners)}"/>')
    parts += [text(frame.across(k - 0.5), HEIGHT - BOTTOM + 16, str(k)) for k in thin_out(range(1, n + 1), 12)]
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3, x_name))
    return canvas(label, "".join(parts))


def confusion_table(
    counts: Sequence[Sequence[int]],
    names: Sequence[str],
    link: Callable[[str, str], str] | None = None,
    chosen: tuple[str, str] = ("", ""),
) -> str:
    """Rows are true classes, columns predicted ones; each cell shows its count and is tinted by share of its row.
    `link` is the address of the documents of a cell; those of the `chosen` one are shown."""

    def cell(true: str, predicted: str, count: int, share: float) -> str:
        shown = str(count)
        if count and link is not None:
            here = ' aria-current="true"' if (true, predicted) == chosen else ""
            shown = f'<a href="{escape(link(true, predicted))}"{here}>{count}</a>'
        return f'<td class="c{level(share, HEAT_STEPS)}">{shown}</td>'

    many = " many" if len(names) > 6 or max(map(len, names)) > 9 else ""
    head = "".join(f'<th scope="col"><span title="{escape(name)}">{escape(name)}</span></th>' for name in names)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(true)}</th>'
        + "".join(cell(true, name, count, count / (sum(row) or 1)) for name, count in zip(names, row, strict=True))
        + "</tr>"
        for true, row in zip(names, counts, strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="confusion{many}"><thead><tr>'
        f'<th scope="col">true \\ predicted</th>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )


def level(fraction: Number, steps: int) -> int:
    """0 for almost nothing, `steps` for all."""
    return min(round(fraction * steps + 0.15), steps)


def horizontal(y: Number, kind: str) -> str:
    """A horizontal line over the whole chart."""
    return f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def round_ticks(low: Number, high: Number) -> list[float]:
    """Four to seven round numbers that enclose low and high."""
    spread = (high - low) or abs(high) or 1.0
    step = 10.0
    for candidate in (base * 10.0**power for power in range(-6, 7) for base in (1, 2, 5)):
        if spread / candidate <= 5:
            step = candidate
            break
    first, last = int(low // step), int(-(-high // step))
    return [round(k * step, 10) for k in range(first, max(last, first + 1) + 1)]


def thin_out(values: Sequence[T], most: int) -> Sequence[T]:
    """Every second, third, ... value, so that axis labels never touch."""
    return values[:: -(-len(values) // most) or 1]


KEPT = "on the validation data; the ring is the epoch that was kept"


def history_charts(histories: Mapping[str, Sequence[Epoch]], accuracies: Sequence[tuple[str, float]] = ()) -> str:
    """One line for each run, by its name, and for a single run its training loss beside that of validation.
    `accuracies` are named ones to compare with."""

    def lines(value: Callable[[Epoch], float | None]) -> list[Line]:
        points = {
            name: [(epoch.epoch + 1, at) for epoch in epochs if (at := value(epoch)) is not None]
            for name, epochs in histories.items()
        }
        return [Line(name if len(histories) > 1 else "", some, kept[name]) for name, some in points.items() if some]

    kept = {name: max((e.epoch + 1 for e in epochs if e.best), default=None) for name, epochs in histories.items()}
    losses = lines(lambda epoch: epoch.valid["loss"])
    if len(histories) == 1:
        (epochs,) = histories.values()
        training = Line("training", [(epoch.epoch + 1, epoch.train_loss) for epoch in epochs])
        losses = [replace(losses[0], name="validation"), training]
    rates = lines(lambda epoch: epoch.boundaries.get("boundary_rate"))
    drawn = [
        ("Accuracy", KEPT, lines(lambda epoch: epoch.valid["accuracy"]), percent, accuracies),
        ("Loss", "per document, by epoch", losses, lambda value: f"{value:.2f}", ()),
        ("Boundaries", "share of free positions that end a phrase", rates, percent, (("none", 0.0),)),
    ]
    return "".join(
        figure(title, told, line_chart(some, label=f"{title} by epoch", show=show, references=others))
        for title, told, some, show, others in drawn
        if some
    )
