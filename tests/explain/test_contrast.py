"""Letters on every tint pass WCAG AA, bars and lines pass 3:1, in both colour schemes; the ramps rise evenly."""

import re
from itertools import pairwise

import pytest

from emhrnn.explain.page import stylesheet


def colours(scheme: str) -> dict[str, str]:
    light, dark = stylesheet().split("@media screen and (prefers-color-scheme: dark)")[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    if scheme == "dark":
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark.split("@media")[0]))
    return found


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_can_be_read_on_every_ground(scheme: str) -> None:
    colour = colours(scheme)
    grounds = ["page", "card", *(f"heat-{n}" for n in range(1, 5))]
    grounds += [f"{ramp}-{n}" for ramp in ("for", "against") for n in range(1, 6)]
    pairs = [("ink", ground) for ground in grounds]
    pairs += [(text, ground) for text in ("muted", "good", "bad", "chance") for ground in ("page", "card")]
    pairs += [("on-chance", "chance")]
    low = {pair: round(contrast(colour[pair[0]], colour[pair[1]]), 2) for pair in pairs}
    assert {pair: value for pair, value in low.items() if value < 4.5} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_can_be_seen_on_their_ground(scheme: str) -> None:
    colour = colours(scheme)
    pairs = [("weight", "card"), ("column", "card"), ("chance", "card"), ("weight", "line"), ("chance", "line")]
    low = {pair: round(contrast(colour[pair[0]], colour[pair[1]]), 2) for pair in pairs}
    assert {pair: value for pair, value in low.items() if value < 3} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ramp", ["heat", "for", "against"])
def test_ramps_keep_their_order_in_grey(scheme: str, ramp: str) -> None:
    colour = colours(scheme)
    steps = [colour["card"], *(colour[f"{ramp}-{n}"] for n in range(1, 5 if ramp == "heat" else 6))]
    distances = [contrast(step, colour["card"]) for step in steps]
    assert distances == sorted(distances)
    assert all(later > earlier + 0.02 for earlier, later in pairwise(distances))
