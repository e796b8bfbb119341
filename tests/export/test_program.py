"""The program of torch against the model, on random ragged documents, after it was saved and loaded."""

from pathlib import Path

import numpy as np
import pytest
import torch

from emhrnn.errors import DataError
from emhrnn.export.program_file import export_program, tensors
from emhrnn.training.run import Run
from tests.behaviour.commands import Cli
from tests.export.test_network import random_run
from tests.models.examples import make_batch


def compare(program: torch.nn.Module, run: Run, lengths: list[list[int]], seed: int) -> None:
    batch = make_batch(lengths, seed)
    with torch.inference_mode():
        output, given = run.model(batch), program(*tensors(batch))
    assert (given["z"].numpy() == output.z).all()
    expected = {
        "probabilities": run.probabilities(output.logits), "pi": output.pi, "alpha": output.alpha,
        "beta": output.beta, "gamma": output.gamma,
    }  # fmt: skip
    assert given.keys() == {"z", *expected}
    for name, tensor in expected.items():
        torch.testing.assert_close(given[name], tensor, atol=1e-5, rtol=1e-5, msg=name)


def random_lengths(rng: np.random.Generator, documents: int) -> list[list[int]]:
    return [rng.integers(1, 20, rng.integers(1, 8)).tolist() for _ in range(documents)]


@pytest.mark.slow  # torch takes its time to trace
@pytest.mark.parametrize(
    ("bidirectional", "multi_label", "cell"), [(True, False, "lstm"), (False, True, "lstm"), (True, False, "gru")]
)
def test_saved_and_loaded_it_takes_any_size(bidirectional: bool, multi_label: bool, cell: str, tmp_path: Path) -> None:
    run = random_run(bidirectional=bidirectional, multi_label=multi_label, cell=cell)
    rng = np.random.default_rng(1)
    exported = export_program(run, tmp_path / "a.pt2")
    assert exported.bytes == (tmp_path / "a.pt2").stat().st_size
    assert exported.difference < 1e-5
    program = torch.export.load(tmp_path / "a.pt2").module()
    for seed, documents in enumerate((1, 2, 7, 200)):
        compare(program, run, random_lengths(rng, documents), seed)
    compare(program, run, [[1]], 5)
    with pytest.raises(DataError, match="exists; give another name"):
        export_program(run, tmp_path / "a.pt2")


def test_what_is_asked_wrongly_is_told(cli: Cli, run: Path, tmp_path: Path) -> None:
    assert "give --onnx FOLDER, or --torch FILE.pt2" in cli.error("export", run)
    assert "are for ONNX" in cli.error("export", run, "--torch", tmp_path / "a.pt2", "--int8")
    assert "end it in .pt2" in cli.error("export", run, "--torch", tmp_path / "a.onnx")
