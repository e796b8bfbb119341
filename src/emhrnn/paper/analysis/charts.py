"""Bars side by side: how many times chance each word weighs, under one model or two."""

from collections.abc import Sequence
from dataclasses import dataclass

from emhrnn.explain.svg import WIDTH, canvas, round_ticks, shorten, text

LEFT, RIGHT, TOP, BAR, GAP = 96, 44, 26, 14, 10


@dataclass(frozen=True)
class Group:
    """The bars of one word, one for each model; None where it does not occur."""

    name: str
    values: list[float | None]


def lift_chart(groups: Sequence[Group], names: Sequence[str]) -> str:
    largest = max([1.0, *(value for group in groups for value in group.values if value is not None)])
    ticks = round_ticks(0, largest)
    scale = (WIDTH - LEFT - RIGHT) / ticks[-1]
    height = BAR * len(names) + GAP
    foot = TOP + height * len(groups)
    parts = [_legend(names)]
    for tick in ticks:
        x = LEFT + tick * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{foot}"/>')
        parts.append(text(x, foot + 16, f"{tick:g}"))
    chance = LEFT + scale
    parts.append(f'<line class="reference" x1="{chance:.1f}" x2="{chance:.1f}" y1="{TOP - 4}" y2="{foot}"/>')
    for row, group in enumerate(groups):
        parts.append(_group(group, TOP + row * height + GAP / 2, scale))
    told = "; ".join(
        f"{group.name} " + ", ".join("none" if value is None else f"{value:.2f}" for value in group.values)
        for group in groups
    )
    label = f"Attention as a multiple of chance ({', '.join(names)}): {told}"
    return canvas(label, "".join(parts), height=foot + 26)


def _legend(names: Sequence[str]) -> str:
    parts, x = [], float(LEFT)
    for name, kind in zip(names, ("first", "second"), strict=False):
        parts.append(f'<rect class="lift {kind}" x="{x:.1f}" y="2" width="12" height="12" rx="2"/>')
        parts.append(text(x + 17, 12, shorten(name, 20), anchor="start", kind="ink"))
        x += 17 + 7 * min(len(name), 20) + 18
    return "".join(parts)


def _group(group: Group, y: float, scale: float) -> str:
    middle = y + BAR * len(group.values) / 2 + 4
    parts = [text(LEFT - 10, middle, shorten(group.name, 12), anchor="end", kind="ink")]
    for value, kind in zip(group.values, ("first", "second"), strict=False):
        wide = 0.0 if value is None else value * scale
        parts.append(
            f'<rect class="lift {kind}" x="{LEFT}" y="{y + 1:.1f}" width="{wide:.1f}" height="{BAR - 2}" rx="2"/>'
        )
        shown = "does not occur" if value is None else f"\u00d7{value:.1f}"
        parts.append(text(LEFT + wide + 5, y + BAR - 3, shown, anchor="start", kind="halo"))
        y += BAR
    return "".join(parts)
