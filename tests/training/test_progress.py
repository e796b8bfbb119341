"""The view in a terminal and without one; the terminal is left as it was, whatever happens."""

import io
import sys

import pytest
from rich.console import Console

from emhrnn.evaluation.scores import METRICS
from emhrnn.training.config import make_config
from emhrnn.training.progress import (
    ASCII_BARS,
    Epoch,
    Lines,
    Meter,
    Moment,
    Step,
    Terminal,
    clock,
    make_view,
    sparkline,
)

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def epoch(number: int, accuracy: float, *, best: bool) -> Epoch:
    valid = dict.fromkeys(METRICS, 0.5) | {"accuracy": accuracy}
    return Epoch(number, "em", 0.6, 0.001, valid, 1000.0, 2.0, 0.0, {"boundary_rate": 0.23}, best)


def step(number: int, batch: int, *, seconds: float = 2.0) -> Step:
    return Step(10 * number + batch, number, batch, 10, 0.7, 0.001, 100, 4, seconds, 0.0, {"boundary_rate": 0.2})


def terminal(width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_is_seen() -> None:
    console = terminal()
    view = Terminal(
        12, "accuracy", [epoch(0, 0.5, best=True), epoch(1, 0.75, best=True), epoch(2, 0.7, best=False)], console
    )
    view.step(Moment(3, 12, "em", 5, 10, 0.4121, 15231.4, 0.234, 12.0, 130.0, False))
    console.print(view.render())
    for part in ("epoch 4/12", "em", "50%", "0:12 left, run 2:10", "loss 0.4121", "15,231 words/s", "boundaries 0.23"):
        assert part in written(console)
    assert "valid accuracy 0.7000   best 0.7500 (epoch 2)" in written(console)
    assert "▁█▇" in written(console)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, None])
def test_the_cursor_comes_back(error: type[BaseException] | None) -> None:
    console = terminal()
    view = Terminal(2, "accuracy", [], console)
    try:
        with view:
            view.step(Moment(0, 2, "em", 5, 10, 0.4, 15231.4, None, 12.0, 130.0, True))
            view.epoch([epoch(0, 0.5, best=True)])
            if error is not None:
                raise error
    except (KeyboardInterrupt, SystemExit, ValueError):
        pass
    text = written(console)
    assert text.count(HIDE) == text.count(SHOW) == 1
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert "epoch   1/2  em         loss 0.6000  valid accuracy 0.5000" in text
    assert "run over 2:10" in text


@pytest.mark.parametrize("width", [10, 30, 60])
def test_a_narrow_terminal_gets_three_lines_all_the_same(width: int) -> None:
    console = terminal(width)
    view = Terminal(2, "accuracy", [epoch(0, 0.5, best=True)], console)
    view.step(Moment(1, 2, "em", 5, 10, 0.4, 15231.4, 0.2, 12.0, 130.0, False))
    console.print(view.render())
    assert written(console).count("\n") == 3


def test_without_a_terminal_there_is_a_line_per_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    config = make_config(assignments=["training.epochs=3"], model="em-hrnn")
    assert isinstance(make_view(config, [], show=True), Lines)
    with Meter(config, show=True) as meter:
        for batch in range(10):
            meter.add(step(0, batch))
        assert capsys.readouterr().err == ""
        meter.view.epoch([epoch(0, 0.5, best=True)])
    assert capsys.readouterr().err == (
        "epoch   1/3  em         loss 0.6000  valid accuracy 0.5000  loss 0.5000      1,000 words/s  "
        "boundaries 0.23  best\n"
    )
    with Meter(config, show=False) as meter:
        meter.view.epoch([epoch(0, 0.5, best=True)])
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_the_view_unless_it_is_dumb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(make_view(make_config(model="em-hrnn"), [], show=True), Terminal)
    assert isinstance(make_view(make_config(model="em-hrnn"), [], show=False), Lines)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_view(make_config(model="em-hrnn"), [], show=True), Lines)


def test_time_left() -> None:
    with Meter(make_config(assignments=["training.epochs=3"], model="em-hrnn"), show=False) as meter:
        for batch in range(4):
            meter.add(step(1, batch))
        now = meter.moment(step(1, 3))
    assert (now.epoch_left, now.run_left) == (12.0, 32.0)  # 6 batches of 2 s, then 10
    assert now.boundary_rate == pytest.approx(0.2)
    assert not now.slower_to_come
    assert meter.moment(step(0, 3)).slower_to_come  # the warm-up is faster than EM


def test_small_parts() -> None:
    assert [clock(seconds) for seconds in (0.0, 7.4, 60.0, 3725.0)] == ["0:00", "0:07", "1:00", "1:02:05"]
    assert sparkline([0.0, 1.0, 0.5]) == "▁█▅"
    assert sparkline([3.0, 3.0]) == "▁▁"
    assert sparkline([0.0, 1.0], ASCII_BARS) == "_#"
