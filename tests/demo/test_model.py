"""The model in the package: what it is, that it is whole, and that the command in the repository makes it again."""

import json
from pathlib import Path

from tools import demo_model

from emhrnn.api import load
from emhrnn.files import sha256
from emhrnn.training.compatibility import migrated
from emhrnn.training.pack import located
from emhrnn.training.run import SHIPPED, read_description

SHA256 = "32e5a1dda38886a1632495f18ac44927e6647a89a6e4285104ae44da9f968a4c"


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


FIRST = {  # what a newcomer may type, and the stars that it deserves; grammar and list were written together
    "I will never come back!": 1,
    "Terrible service and cold food.": 1,
    "Not bad at all, I would return.": 4,
    "The room was dirty": 1,
    "Best meal I have had in years": 5,
    "The food was delicious and the staff was friendly.": 5,
    "I want my money back.": 1,
    "It was okay, nothing special.": 3,
    "Great food, but the service was slow.": 3,
    "We loved it and will be back soon.": 5,
    "I would not recommend this hotel.": 2,
    "What a wonderful evening!": 5,
    "The film was boring and far too long.": 2,
    "The battery is great, the screen is awful.": 3,
    "I can't complain.": 4,
    "I was not happy with the room.": 2,
}
LATER = {  # written after the grammar, and not used for it
    "The staff could not have been nicer.": 5,
    "Absolutely amazing!": 5,
    "We had a lovely time and the kids enjoyed the pool.": 5,
    "A wonderful room, and a great view!": 5,
    "The pasta was excellent, but the service was dreadful.": 3,
    "The phone stopped working after a month.": 2,
    "I'm very disappointed with this purchase.": 2,
    "They ignored us for an hour.": 1,
    "The dessert was horrible. The servers were awful.": 1,
    "The soup was not bad at all.": 4,
}


def test_first_sentences_get_sensible_stars() -> None:
    """Within one star, and of the later ones at least eight of ten."""
    model = load("demo")
    off = {text: abs(int(model.predict([text])[0]) - stars) for text, stars in (FIRST | LATER).items()}
    assert {text for text in FIRST if off[text] > 1} == set()
    assert sum(off[text] <= 1 for text in LATER) >= 8, off


def test_a_run_of_that_name_comes_first(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert located("demo") == SHIPPED
    (tmp_path / "demo").mkdir()
    assert located("demo") == SHIPPED  # `emhrnn demo` writes a folder of this name, which is not a run
    (tmp_path / "demo" / "config.json").write_text("{}")
    assert located("demo") == Path("demo")
    assert located(tmp_path / "other") == tmp_path / "other"


def test_the_command_makes_it_with_the_same_settings(tmp_path: Path) -> None:
    """Fewer documents, so that it takes seconds."""
    demo_model.make(tmp_path / "model", documents=300, progress=False)
    ours, made = read_description(SHIPPED), read_description(tmp_path / "model")
    assert migrated(ours["config"]) == made["config"]
    assert {ours["command"], made["command"]} == {demo_model.COMMAND}
    assert (ours["classes"], ours["embedding_size"]) == (made["classes"], made["embedding_size"])
    assert load(tmp_path / "model").predict_proba(["Good soup."]).shape == (1, 5)
