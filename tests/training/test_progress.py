"""What is shown of training: a bar in a terminal, a line per epoch everywhere."""

import errno
import sys
from pathlib import Path

import pytest

from emhrnn.evaluation.scores import METRICS, Scores
from emhrnn.training.config import make_config
from emhrnn.training.progress import Epoch, Meter, Step, append_history, clock, epoch_line

CONFIG = make_config(assignments=["training.epochs=3"], model="em-hrnn")
SCORES = Scores(8, 0.5, 0.5, 0.5, [], None, 0.5, [])


def step(number: int, batch: int) -> Step:
    return Step(10 * number + batch, number, batch, 10, 0.7, 0.001, 100, 4, 2.0, 0.0, {"boundary_rate": 0.23})


def test_a_line_per_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    valid = dict.fromkeys(METRICS, 0.5)
    line = epoch_line(Epoch(0, "em", 0.6, 0.001, valid, 1000.0, 2.0, 0.0, {"boundary_rate": 0.23}, True), 3)
    assert line == (
        "epoch   1/3  em         loss 0.6000  valid accuracy 0.5000  macro-F1 0.5000  loss 0.5000      1,000 words/s  "
        "boundaries 0.23  kept"
    )
    for show in (True, False):
        with Meter(CONFIG, 40, show=show) as meter:
            for batch in range(10):
                meter.add(step(1, batch))
            assert capsys.readouterr().err == ""  # without a terminal there is no bar
            epoch = meter.end_epoch(step(1, 9), SCORES, True, {})
        assert epoch.words_per_second == 50
        assert capsys.readouterr().err == (epoch_line(epoch, 3) + "\n") * show


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, None])
def test_a_terminal_gets_a_bar_that_goes_away(
    error: type[BaseException] | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    try:
        with Meter(CONFIG, 40, show=True) as meter:
            for batch in range(5):
                meter.add(step(1, batch))
            assert meter.bar is not None
            meter.bar.refresh()
            if error is not None:
                raise error
    except (KeyboardInterrupt, ValueError):
        pass
    text = capsys.readouterr().err
    for part in ("epoch 2/3 em", "50%", "left", "20 of 40 rows", "loss 0.7000", "50 words/s"):
        assert part in text
    assert text.endswith("\r")
    assert not text.rstrip("\r").rpartition("\r")[2].strip()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_with_the_name_of_the_history() -> None:
    epoch = Epoch(0, "em", 0.6, 0.001, {}, 1000.0, 2.0, 0.0, {}, True)
    with pytest.raises(OSError, match="'/dev/full'") as told:
        append_history(Path("/dev/full"), epoch)
    assert told.value.errno == errno.ENOSPC


def test_small_parts() -> None:
    assert [clock(seconds) for seconds in (0.0, 7.4, 60.0, 3725.0)] == ["0:00", "0:07", "1:00", "1:02:05"]
