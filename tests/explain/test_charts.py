import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.explain.charts import (
    HEIGHT,
    WIDTH,
    Line,
    bar,
    column_chart,
    confusion_table,
    level,
    line_chart,
    round_ticks,
    thin_out,
)

FINITE = st.floats(-1000, 1000).map(lambda value: round(value, 4))


@given(FINITE, FINITE)
def test_ticks_are_few_and_enclose_the_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    ticks = round_ticks(low, high)
    assert 2 <= len(ticks) <= 8
    assert ticks[0] <= low + 1e-9
    assert ticks[-1] >= high - 1e-9


@given(st.lists(FINITE, min_size=1, max_size=30), st.lists(FINITE, min_size=1, max_size=30))
def test_lines_stay_on_the_canvas(first: list[float], second: list[float]) -> None:
    lines = [Line("one", list(enumerate(first))), Line("two", list(enumerate(second)))]
    drawing = ElementTree.fromstring(line_chart(lines, label="<a> & b", show=str))
    for line in drawing.iter("polyline"):
        for x, y in re.findall(r"(\S+),(\S+)", line.attrib["points"]):
            assert 0 <= float(x) <= WIDTH
            assert 0 <= float(y) <= HEIGHT
    assert drawing.attrib["aria-label"] == "<a> & b"


def test_columns_have_the_height_of_their_share() -> None:
    drawing = ElementTree.fromstring(column_chart([1, 3], [2, 2, 4], label="", x_name="words"))
    heights = [float(box.attrib["height"]) for box in drawing.iter("rect")]
    assert heights[1] == pytest.approx(3 * heights[0], abs=0.2)
    assert len(list(drawing.iter("polyline"))) == 1


def test_cells_show_every_count_and_lead_to_their_documents() -> None:
    names = ["good", "<bad>"]
    drawing = ElementTree.fromstring(confusion_table([[8, 2], [0, 5]], names))
    assert ["".join(cell.itertext()) for row in drawing.iter("tr") for cell in row] == [
        "true \\ predicted", "good", "<bad>", "good", "8", "2", "<bad>", "0", "5"
    ]  # fmt: skip
    assert [cell.attrib["class"] for cell in drawing.iter("td")] == ["c4", "c1", "c0", "c5"]
    linked = confusion_table([[8, 2], [0, 5]], names, lambda *cell: f"?{cell}&", ("good", "<bad>"))
    links = list(ElementTree.fromstring(linked).iter("a"))
    assert [link.attrib["href"] for link in links] == [
        f"?{cell}&" for cell in (("good", "good"), ("good", "<bad>"), ("<bad>", "<bad>"))
    ]
    assert ["aria-current" in link.attrib for link in links] == [False, True, False]


def test_no_documents_no_error() -> None:
    ElementTree.fromstring(column_chart([], [], label="", x_name=""))
    ElementTree.fromstring(confusion_table([[0]], ["only"]))


@given(st.floats(0, 1), st.integers(1, 9))
def test_levels_run_from_none_to_all(fraction: float, steps: int) -> None:
    assert 0 <= level(fraction, steps) <= steps
    assert (level(0, steps), level(1, steps)) == (0, steps)


def test_bars_are_clamped() -> None:
    assert 'width="100%"' in bar(1.5)
    assert 'width="0%"' in bar(-1)


def test_axis_labels_are_thinned_out() -> None:
    assert list(thin_out(range(1, 25), 12)) == list(range(1, 25, 2))
    assert list(thin_out([1, 2], 12)) == [1, 2]
