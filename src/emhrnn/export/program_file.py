"""`export_program`: the network as one file of `torch.export`, for programs that have torch and nothing of ours."""

import io
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.export.checking import arrays, checked_difference, exportable
from emhrnn.export.program import Program
from emhrnn.files import write_bytes
from emhrnn.training.run import Run

SUFFIX = ".pt2"  # torch's own


@dataclass(frozen=True)
class ExportedProgram:
    file: Path
    bytes: int
    difference: float  # largest one of a probability, on random documents

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"file": str(self.file)}


def export_program(run: Run, out: Path, *, overwrite: bool = False) -> ExportedProgram:
    """Write the file.

    Raises:
        ConfigError: the model is no em-hrnn with learned boundaries.
        DataError: `out` is taken, or not named as such a file.
    """
    exportable(run)
    if out.suffix != SUFFIX:
        raise DataError(f"{out} is no name for a program of torch; end it in {SUFFIX}")
    if out.is_dir() or (out.exists() and not overwrite):
        raise DataError(f"{out} exists; give another name, or --overwrite to replace a file")
    made = trace(run)
    loaded = made.module()

    def predict(batch: Batch) -> np.ndarray:
        with torch.inference_mode():
            probabilities: np.ndarray = loaded(*tensors(batch))["probabilities"].numpy()
        return probabilities

    difference = checked_difference(run, predict)
    content = io.BytesIO()
    torch.export.save(made, content)
    write_bytes(out, content.getvalue())
    return ExportedProgram(out, out.stat().st_size, difference)


def trace(run: Run) -> torch.export.ExportedProgram:
    """The program, with all three sizes open; how torch finds it needs some documents, of no particular size."""
    example = Batch.from_lists([[[0, 0, 0], [0, 0]], [[0, 0, 0, 0]]])
    dynamic = {0: torch.export.Dim.DYNAMIC}
    with torch.no_grad():
        return torch.export.export(
            Program(run, exportable(run)).eval(), tensors(example), dynamic_shapes=(dynamic,) * 3, strict=False
        )


def tensors(batch: Batch) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays(batch).values())
