"""The table of trials: a line each, nothing but the settings cut; and best settings that can be read back."""

import io
from pathlib import Path

from rich.console import Console

from emhrnn.training.config import make_config
from emhrnn.tuning.report import TrialRow, table_of, toml_of
from emhrnn.tuning.space import Varied
from emhrnn.tuning.study import SearchPlan

PLAN = SearchPlan(
    Path("out"), make_config(model="em-hrnn"), (Varied("model.dropout", (0.0, 0.5), True),), grid=False, trials=None,
    deadline=float("inf"), command="emhrnn tune x",
)  # fmt: skip


def shown(rows: list[TrialRow], best: int | None, width: int = 60) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(table_of(rows, PLAN, best, width))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_line_for_each_trial() -> None:
    settings = {f"model.setting_{i}": 0.123456 for i in range(9)}
    states = ["done", "done, cut at the time limit", "running"]
    rows = [TrialRow(i, [0.5, 0.75, None][i], settings, states[i], 10 + i, 61.0) for i in range(3)]
    head, *lines, caption = shown(rows, best=1, width=90)
    assert head.split() == ["trial", "accuracy", "epochs", "time", "state", "settings"]
    assert len(lines) == 3
    assert lines[1].split()[:5] == ["1", "0.7500", "11", "1:01", "done,"]
    assert "cut at the time limit" in lines[1]
    assert lines[1].endswith("…")
    assert caption.strip() == "3 trials"


def test_the_best_is_among_many() -> None:
    rows = [TrialRow(i, i / 100, {}, "done", 1, 1.0) for i in range(40)]
    numbers = [line.split()[0] for line in shown(rows, best=3)[1:-1]]
    assert numbers == ["3", *map(str, range(28, 40))]
    assert shown([], None)[-1].strip() == "0 trials"


def test_settings_are_written_as_toml(tmp_path: Path) -> None:
    values = {"model.name": "transformer", "model.pretrained": 'a "quoted" \\ path', "training.weight_decay": 1e-7,
              "model.frozen": False, "model.pooling": None, "training.learning_rate": 0.1 + 0.2}  # fmt: skip
    config = make_config("paper", settings=values)
    (tmp_path / "best.toml").write_text(toml_of(config, "a command\na score"), encoding="utf-8")
    assert make_config(file=tmp_path / "best.toml").model_dump() == config.model_dump()
    assert (tmp_path / "best.toml").read_text().startswith("# a command\n# a score\n")
