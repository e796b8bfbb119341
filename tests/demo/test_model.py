"""The model in the package: what it is, that it is whole, and that the command in the repository makes it again."""

import json
from pathlib import Path

from tools import demo_model

from emhrnn.api import load
from emhrnn.files import sha256
from emhrnn.training.run import SHIPPED, located, read_description

SHA256 = "24364a6350c1295217ec55e9060c55e40770b3f1005fb268b920acc1a98dacfc"


def test_it_is_small_whole_and_has_a_card() -> None:
    assert sha256(SHIPPED / "model.safetensors") == SHA256
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 5_000_000
    assert {path.name for path in SHIPPED.iterdir()} == set(demo_model.KEPT)
    assert "# Model card: demo" in (SHIPPED / "card.md").read_text(encoding="utf-8")
    written = (SHIPPED / "config.json").read_text(encoding="utf-8")
    assert "/" not in json.loads(written)["data"]["train"]["source"]


def test_it_reads_reviews() -> None:
    model = load("demo")
    assert model.classes == ("1", "2", "3", "4", "5")
    texts = ["The dessert was horrible. The servers were awful.", "The soup was excellent, and the view was superb."]
    worst, best = model.predict(texts)
    assert worst in ("1", "2")
    assert best in ("4", "5")


def test_a_run_of_that_name_comes_first(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("demo") == SHIPPED
    (tmp_path / "demo").mkdir()
    assert located("demo") == SHIPPED  # `emhrnn demo` writes a folder of this name, which is no run
    (tmp_path / "demo" / "config.json").write_text("{}")
    assert located("demo") == Path("demo")
    assert located(tmp_path / "other") == tmp_path / "other"


def test_the_command_makes_it_with_the_same_settings(tmp_path: Path) -> None:
    """Fewer documents, so that it takes seconds."""
    demo_model.make(tmp_path / "model", documents=300, progress=False)
    ours, made = read_description(SHIPPED), read_description(tmp_path / "model")
    assert ours["config"] == made["config"]
    assert {ours["command"], made["command"]} == {demo_model.COMMAND}
    assert (ours["classes"], ours["embedding_size"]) == (made["classes"], made["embedding_size"])
    assert load(tmp_path / "model").predict_proba(["Good soup."]).shape == (1, 5)
