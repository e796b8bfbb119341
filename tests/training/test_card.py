"""The model card says what the files of the run say, whatever the classes are called."""

import json
from pathlib import Path

import pytest
import torch

from emhrnn.api import train
from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError
from emhrnn.training.card import LIMITS, PHRASE_LIMITS, card_of, escaped, markdown
from emhrnn.training.config import make_config
from emhrnn.training.run import CARD, CONFIG, METRICS, describe, new_run

NASTY = ["a|b", "*b*_c_", "<script>`x`"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with classes that are Markdown and HTML."""
    place = tmp_path_factory.mktemp("card")
    rows = [{"text": f"word{i % 3} again, and again. Row {i}.", "label": NASTY[i % 3]} for i in range(90)]
    (place / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = make_config(
        assignments=["training.epochs=1", "em.warmup_epochs=0", "data.validation=0.4", "model.word_size=4"],
        model="em-hrnn",
    )
    train(place / "data.jsonl", place / "my_run", config=config, progress=False)
    return place / "my_run"


def test_it_is_written_and_says_what_the_files_say(folder: Path) -> None:
    text, metrics = (folder / CARD).read_text(encoding="utf-8"), json.loads((folder / METRICS).read_text())
    assert text == markdown(card_of(folder))
    card = card_of(folder)
    assert json.loads(json.dumps(card.to_dict()))["calibration"] == metrics["calibration"]
    assert card.settings == {
        "training.epochs": 1, "em.warmup_epochs": 0, "data.validation": 0.4, "model.word_size": 4,
    }  # fmt: skip
    assert sum(row["documents"] for row in card.classes) == card.data[0]["documents"] == 54
    assert sum(row["share"] for row in card.classes) == pytest.approx(1)
    for part in (
        "# Model card: my\\_run",
        f"`{json.loads((folder / CONFIG).read_text())['data']['train']['sha256']}`",
        f"accuracy {metrics['valid']['accuracy']:.4f}",
        f"Temperature {metrics['calibration']['temperature']:.3f}",
        f"{metrics['valid']['phrases']['mean']:.2f} words on average",
        "Boundary rate in training",
        "training.epochs = 1",
        *LIMITS,
        *PHRASE_LIMITS,
    ):
        assert part in text
    assert str(folder.parent) not in text.replace(card.command, "")  # no place of this machine


def test_class_names_stay_in_their_cell(folder: Path) -> None:
    text = (folder / CARD).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and "%" in line]
    for name in NASTY:
        assert sum(line.startswith(f"| {escaped(name)} |") for line in rows) == 1
    assert "<script>" not in text.replace("\\<", "")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("good", "good"),
        ("a|b", r"a\|b"),
        ("*x*", r"\*x\*"),
        ("two\nlines\t", "two lines"),
        ("", "(empty)"),
        ("4.5", "4.5"),
    ],
)
def test_escaping(name: str, shown: str) -> None:
    assert escaped(name) == shown


def test_a_run_without_scores_has_no_card(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["a b.", "c d."], ["x", "y"])
    with pytest.raises(CheckpointError, match="no such run folder"):
        card_of(tmp_path / "none")
    run = new_run(
        make_config(model="em-hrnn"), corpus.vocabulary, corpus.classes, torch.zeros(len(corpus.vocabulary), 4),
        multi_label=False, text=corpus.text,
    )  # fmt: skip
    describe(tmp_path, run)
    with pytest.raises(CheckpointError, match="no scores yet; finish training it first: --resume"):
        card_of(tmp_path)
    (tmp_path / METRICS).write_text("{}")
    with pytest.raises(CheckpointError, match=r"is corrupt .*; copy the run again"):
        card_of(tmp_path)
