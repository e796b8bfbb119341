"""A run as bytes, so that a classifier can be pickled by those who trust their pickles: the files of its run folder.

Inside the pickle are only plain bytes; they are read back as a run folder is, with the same checks.
"""

import tempfile
from pathlib import Path

from emhrnn.training.run import Run, describe, load_run, save_weights


def packed(run: Run) -> dict[str, bytes]:
    """The files of the run folder by name."""
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        folder = Path(scratch)
        describe(folder, run)
        save_weights(folder, run, 0)
        return {path.name: path.read_bytes() for path in folder.iterdir()}


def unpacked(files: dict[str, bytes]) -> Run:
    """Raises:
    CheckpointError: they are of another version of emhrnn.
    """
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        folder = Path(scratch)
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
        return load_run(folder)
