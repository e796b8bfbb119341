"""Trains the model that the package ships, `emhrnn.load("demo")`, on generated reviews, long ones and
short everyday ones.

python -m tools.demo_model        # writes src/emhrnn/demo/model
"""

import json
import shutil
import tempfile
from pathlib import Path

from emhrnn.api import train
from emhrnn.corpus.reviews import everyday_reviews, generate_reviews, write_reviews
from emhrnn.files import write_json, write_text

MODEL = Path(__file__).parents[1] / "src" / "emhrnn" / "demo" / "model"
DOCUMENTS, SEED = 6000, 0  # as many of each kind
SETTINGS = {
    "model.megabytes": 4.0, "model.embedding_size": 50, "model.encoder_size": 32, "training.epochs": 6,
    "training.metric": "accuracy", "training.threads": 1, "training.seed": SEED,
    "model.mixing": False,  # it was trained before
    "model.sentence_weights": 32, "data.folds": 0,  # the defaults, also in a test with few documents
}  # fmt: skip
COMMAND = "python -m tools.demo_model"
KEPT = ("config.json", "model.safetensors", "vocabulary.txt", "history.jsonl", "metrics.json", "card.md")


def make(folder: Path, *, documents: int = DOCUMENTS, progress: bool = True) -> None:
    """Train, and leave what is needed to use the model in `folder`."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        reviews = [*generate_reviews(documents, SEED), *everyday_reviews(documents, SEED)]
        write_reviews(scratch / "reviews.jsonl", reviews)
        train(scratch / "reviews.jsonl", scratch / "run", settings=SETTINGS, progress=progress)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for kept in KEPT:
            shutil.copyfile(scratch / "run" / kept, folder / kept)
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    for part in described["data"].values():
        part["source"] = Path(part["source"]).name  # not where it was on this machine
    write_json(folder / "config.json", {**described, "command": COMMAND})
    card = (folder / "card.md").read_text(encoding="utf-8")
    card = card.replace("# Model card: run", "# Model card: demo").replace(f"{Path(__file__).name}\n", f"{COMMAND}\n")
    write_text(folder / "card.md", card)


if __name__ == "__main__":
    make(MODEL)
