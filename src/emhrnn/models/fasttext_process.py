"""Trains fastText in a process of its own: `python -m emhrnn.models.fasttext_process SETTINGS.json FOLDER`.

The library reads memory that it has not set (version 0.9.3 and its builds: random "Encountered NaN", or silently wrong
vectors). glibc can hand out zeroed memory instead, but only to a process that is started so; see `ENVIRONMENT`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ENVIRONMENT = {"MALLOC_PERTURB_": "255"}  # new memory is filled with the complement of this byte: zeros

WORDS, LABELS, INPUT, OUTPUT = "words.json", "labels.json", "input.npy", "output.npy"


def train(settings: dict[str, Any], folder: Path) -> None:
    """Writes the model's words, labels and two matrices."""
    import fasttext

    model = fasttext.train_supervised(**settings)
    (folder / WORDS).write_text(json.dumps(model.get_words()), encoding="utf-8")
    (folder / LABELS).write_text(json.dumps(model.get_labels()), encoding="utf-8")
    np.save(folder / INPUT, model.get_input_matrix(), allow_pickle=False)
    np.save(folder / OUTPUT, model.get_output_matrix(), allow_pickle=False)


if __name__ == "__main__":
    train(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
