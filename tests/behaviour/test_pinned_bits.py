"""Training of the paper's preset and of hn-att gives the weights that it gave before the package was rebuilt.

The fixture keeps checksums for one processor, and sums of the weights for others: libraries of matrix products choose
their kernels by the processor's model, and these round differently. What changes weights on
purpose writes it again and says so in the changelog: `python -m tests.behaviour.test_pinned_bits`.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import emhrnn
from emhrnn.compiler import capability
from emhrnn.corpus.reviews import generate_reviews, write_reviews
from emhrnn.training.config import make_config

PINNED = Path(__file__).with_name("pinned") / "weights.json"
SETTINGS = {
    "em-hrnn": ("paper", ["data.vocabulary=data", "training.epochs=1", "em.rate=0.23"]),
    "hn-att": ("default", ["model.name=hn-att", "training.epochs=2"]),
}
SHORT = ["training.seed=1", "training.threads=1"]


def weights_of(name: str, folder: Path) -> dict[str, Any]:
    """The checksum of a short training on reviews of the demo, and the absolute sum of each weight."""
    data = folder / "reviews.jsonl"
    write_reviews(data, generate_reviews(120, seed=5))
    preset, settings = SETTINGS[name]
    config = make_config(preset, assignments=[*settings, *SHORT])
    trained = emhrnn.train(data, folder / name, config=config, progress=False)
    weights = load_file(trained.folder / "model.safetensors")
    digest = hashlib.sha256()
    for key in sorted(weights):
        digest.update(key.encode() + weights[key].tobytes())
    return {"sha256": digest.hexdigest(), "sums": {key: float(np.abs(weights[key]).sum()) for key in sorted(weights)}}


def machine() -> str:
    facts = Path("/proc/cpuinfo")  # where there is none, checksums are not compared
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.is_file() else []
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    processor = " ".join(told.get(name, "?") for name in ("vendor_id", "cpu family", "model", "stepping", "cache size"))
    return f"{processor}, {capability()}, torch {torch.__version__.partition('+')[0]}"


@pytest.mark.parametrize("name", SETTINGS)
def test_training_gives_the_weights_it_gave(name: str, tmp_path: Path) -> None:
    pinned = json.loads(PINNED.read_text(encoding="utf-8"))
    found = weights_of(name, tmp_path)
    assert found["sums"] == pytest.approx(pinned["weights"][name]["sums"], rel=1e-3)
    if machine() == pinned["machine"]:
        assert found["sha256"] == pinned["weights"][name]["sha256"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = {name: weights_of(name, Path(folder)) for name in SETTINGS}
    PINNED.write_text(json.dumps({"machine": machine(), "weights": found}, indent=1) + "\n", encoding="utf-8")
