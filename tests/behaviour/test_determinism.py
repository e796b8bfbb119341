"""Same seed, same threads: identical weights, twice, for every E-step, for evidence, and on both back ends."""

from pathlib import Path

import pytest

from emhrnn.api import train
from emhrnn.training.config import make_config
from tests.back_ends import on_kernels
from tests.behaviour.commands import TINY

ESTEPS = ["none", "local", "blocks"]


EVIDENCE = "evidence"  # has no E-step to choose: its posterior is exact


def weights(data: Path, out: Path, estep: str, seed: int = 3) -> bytes:
    settings = [assignment for assignment in TINY if assignment != "--set"]
    chosen = ["training.epochs=2", "training.batch_words=150", f"training.seed={seed}"]
    if estep == EVIDENCE:
        chosen += ["model.name=evidence", "model.dropout=0.2", "model.sentence_weights=2"]
    else:
        chosen += [f"em.estep={estep}", "em.blocks=2", "em.block_length=3"]
    config = make_config(assignments=chosen, shared=settings)
    train(data, out, config=config, progress=False)
    return (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("estep", [*ESTEPS, EVIDENCE])
def test_the_same_seed_gives_the_same_weights(made: Path, tmp_path: Path, estep: str, native: bool) -> None:
    with on_kernels(native):
        first = weights(made / "reviews.csv", tmp_path / "first", estep)
        assert weights(made / "reviews.csv", tmp_path / "second", estep) == first


@pytest.mark.parametrize("estep", ["local", EVIDENCE])
def test_another_seed_gives_other_weights(made: Path, tmp_path: Path, estep: str) -> None:
    first = weights(made / "reviews.csv", tmp_path / "first", estep)
    assert weights(made / "reviews.csv", tmp_path / "second", estep, seed=4) != first
