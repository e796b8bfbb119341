"""The results of a study: best settings that can be read back."""

from pathlib import Path

from emhrnn.training.config import make_config
from emhrnn.tuning.report import toml_of


def test_settings_are_written_as_toml(tmp_path: Path) -> None:
    values = {"model.name": "transformer", "model.pretrained": 'a "quoted" \\ path', "training.weight_decay": 1e-7,
              "model.frozen": False, "model.pooling": None, "training.learning_rate": 0.1 + 0.2}  # fmt: skip
    config = make_config("paper", settings=values)
    (tmp_path / "best.toml").write_text(toml_of(config, "a command\na score"), encoding="utf-8")
    assert make_config(file=tmp_path / "best.toml").model_dump() == config.model_dump()
    assert (tmp_path / "best.toml").read_text().startswith("# a command\n# a score\n")
