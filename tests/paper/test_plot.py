"""`emhrnn paper plot`: the figure holds what the history says, and every refusal says what to do."""

import shutil
import sys
from pathlib import Path

import pytest

from emhrnn.paper.plot import COLOURS, MARKS, MOST, PlottedRun, draw_runs, read_run
from emhrnn.training.progress import Epoch, write_history
from tests.behaviour.commands import Cli

pytest.importorskip("matplotlib")


def drawn(name: str = "run", epochs: int = 4, *, phrases: list[int] | None = None) -> PlottedRun:
    return PlottedRun(
        name,
        "accuracy",
        [
            Epoch(
                epoch=i,
                phase="warm-up" if i < 1 else "em",
                train_loss=1.0 / (i + 1),
                learning_rate=0.001,
                valid={"accuracy": 0.5 + i / 10, "loss": 1.1 / (i + 1)},
                words_per_second=1000.0,
                seconds=1.0,
                waiting=0.0,
                boundaries={} if i < 1 else {"boundary_rate": 0.2},
                best=i in (0, 2),
            )
            for i in range(epochs)
        ],
        phrases,
    )


def test_lines_are_the_history() -> None:
    run = drawn(phrases=[3, 0, 1])
    assert run.best == 2
    assert run.phases() == [("warm-up", 1, 1), ("em", 2, 4)]
    panels = {panel.get_title().split(" (")[0]: panel for panel in draw_runs([run]).axes}
    loss = [line.get_ydata().tolist() for line in panels["Loss"].lines]
    assert loss == [[e.train_loss for e in run.epochs], [e.valid["loss"] for e in run.epochs]]
    assert panels["Validation accuracy"].get_title() == "Validation accuracy (best 0.700)"
    assert panels["Boundary rate"].lines[0].get_xdata().tolist() == [2, 3, 4]
    assert [bar.get_height() for bar in panels["Phrases, validation data"].patches] == [0.75, 0, 0.25]
    assert all(panel.get_xlabel() and panel.get_ylabel() for panel in panels.values())


def test_several_runs_are_told_apart_by_colour_and_mark() -> None:
    figure = draw_runs([drawn("a", phrases=[1] * 30), drawn("b", 2, phrases=[1, 1])])
    panels = {panel.get_title(): panel for panel in figure.axes}
    lines = [line for line in panels["Validation accuracy"].lines if not line.get_label().startswith("_")]
    assert [(line.get_label(), line.get_color(), line.get_marker()) for line in lines] == [
        ("a", COLOURS[0], MARKS[0]),
        ("b", COLOURS[1], MARKS[1]),
    ]
    shares = panels["Phrases, validation data"].lines[0].get_ydata()
    assert sum(shares) == pytest.approx(1)
    assert shares[-1] == pytest.approx(11 / 30)  # 20 words and more
    assert not [patch for patch in panels["Loss"].patches if patch.get_width()]  # other phases: none is shaded


def test_models_without_phrases_get_three_panels() -> None:
    plain = PlottedRun("plain", "loss", [Epoch(0, "fit", 0.2, 0.0, {"loss": 0.4}, 1.0, 1.0, 0.0, best=True)], None)
    assert [panel.get_title() for panel in draw_runs([plain]).axes] == [
        "Loss",
        "Validation loss (nats) (best 0.400)",
        "Learning rate",
    ]


@pytest.mark.parametrize(("name", "begin"), [("p.svg", b"<?xml"), ("p.PNG", b"\x89PNG"), ("p.pdf", b"%PDF")])
def test_files(cli: Cli, run: Path, tmp_path: Path, name: str, begin: bytes) -> None:
    assert cli.ok("paper", "plot", run, "--out", tmp_path / name, "--json").json["file"] == str(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(begin)
    cli.ok("paper", "plot", run, "--out", tmp_path / name)
    assert (tmp_path / name).read_bytes() == content
    assert read_run(run).phrases


def test_the_figure_is_put_into_the_run(cli: Cli, own_run: Path) -> None:
    assert cli.ok("paper", "plot", own_run, own_run).out == f"{own_run / 'plot.svg'}\n"
    assert "Boundary rate" in (own_run / "plot.svg").read_text(encoding="utf-8")


def test_refusals(cli: Cli, own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "end it in .svg, .png, .pdf" in cli.error("paper", "plot", own_run, "--out", tmp_path / "p.gif")
    assert f"room for {MOST}" in cli.error("paper", "plot", *[own_run] * (MOST + 1))
    assert "no such run folder" in cli.error("paper", "plot", tmp_path / "none")
    assert "give another file" in cli.error("paper", "plot", own_run, "--out", own_run / "config.json" / "p.svg")
    (own_run / "metrics.json").write_text("{")
    assert "metrics.json: corrupt" in cli.error("paper", "plot", own_run)
    (own_run / "metrics.json").unlink()  # as while training goes on
    cli.ok("paper", "plot", own_run)
    write_history(own_run / "history.jsonl", [])
    assert "wait for its first epoch" in cli.error("paper", "plot", own_run)
    (own_run / "history.jsonl").unlink()
    assert "wait for its first epoch" in cli.error("paper", "plot", own_run)
    shutil.rmtree(own_run)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'emhrnn[plots]'" in cli.error("paper", "plot", own_run)
