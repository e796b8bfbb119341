"""`export_onnx`: a folder that runs without us: model.onnx, tokenizer.json, classes.json and an example."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordLevel

from emhrnn.corpus import TextSettings
from emhrnn.corpus.batch import Batch
from emhrnn.errors import TrainingError
from emhrnn.evaluation.decision import THRESHOLD
from emhrnn.export import unsupported
from emhrnn.files import atomic_folder, write_bytes, write_text
from emhrnn.paper.export.network import network
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.text import UNK, Vocabulary
from emhrnn.text.words import token_pattern
from emhrnn.training.run import Run

MODEL = "model.onnx"
CLOSE = 1e-4
TRIED = 20  # random documents
SHORTENED = [  # long runs of marks, as in text/words.py
    (r"(?=[!?]*!)(?=[!?]*\?)[!?]{2,}", "?!"),
    (r"!{4,}", "!!!"),
    (r"\?{4,}", "???"),
    (r"-{3,}", "--"),
    *((rf"\{mark}{{4,}}", mark * 3) for mark in ".*=_~#+'`"),
]

Predict = Callable[[Batch], Float32[np.ndarray, "documents classes"]]  # probabilities


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    bytes: int
    difference: float  # largest one of a probability, on random documents

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"folder": str(self.folder)}


def export_onnx(run: Run, out: Path, *, overwrite: bool = False) -> Exported:
    """Write the folder.

    Raises:
        ConfigError: the model is no em-hrnn with learned boundaries.
        DataError: `out` is taken.
    """
    model = exportable(run)
    with atomic_folder(out, overwrite=overwrite) as folder:
        write_bytes(folder / MODEL, network(run, model).SerializeToString())
        difference = checked_difference(run, session(folder / MODEL))
        tokenizer(run.vocabulary, run.text).save(str(folder / "tokenizer.json"))
        write_text(folder / "classes.json", json.dumps(list(run.classes), ensure_ascii=False) + "\n")
        write_text(folder / "example.py", _example(run.multi_label))
        return Exported(out, (folder / MODEL).stat().st_size, difference)


def session(path: Path) -> Predict:
    """The file as a function from batches to probabilities."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    opened = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run_batch(batch: Batch) -> np.ndarray:
        (probabilities,) = opened.run(["probabilities"], arrays(batch))
        return np.asarray(probabilities)

    return run_batch


def _example(multi_label: bool) -> str:
    text = files("emhrnn.paper.export").joinpath("example.txt").read_text(encoding="utf-8")
    found = f"np.flatnonzero(row > {THRESHOLD})  # all labels that are more likely than not"
    return text.replace("{found}", found if multi_label else "[int(row.argmax())]")


def exportable(run: Run) -> EMHRNN:
    """The run's model, or a ConfigError where it is no em-hrnn with learned boundaries."""
    model = run.model
    if isinstance(model, EMHRNN) and model.rule is None:
        return model
    what = f"segmentation {run.config.segmentation}" if isinstance(model, EMHRNN) else run.config.model.name
    raise unsupported(what)


def checked_difference(run: Run, predict: Predict) -> float:
    """The largest difference of a probability on random documents; a TrainingError if it is not small."""
    rng = np.random.default_rng(0)
    documents = [
        [rng.integers(0, len(run.vocabulary), rng.integers(1, 30)).tolist() for _ in range(rng.integers(1, 8))]
        for _ in range(TRIED)
    ]
    batch = Batch.from_lists(documents)
    with torch.inference_mode():
        expected = run.probabilities(run.model.infer(batch).logits)
    difference = float(np.abs(predict(batch) - expected).max())
    if not difference < CLOSE:
        raise TrainingError(f"the exported model differs by {difference:.1e} on random documents; please report it")
    return difference


def arrays(batch: Batch) -> dict[str, np.ndarray]:
    """The inputs of every exported model."""
    return {
        "words": batch.words,
        "sentence_lengths": batch.sentence_lengths,
        "document_lengths": np.diff(batch.document_offsets),
    }


def _spelt_out(pattern: str) -> str:
    """Characters for their escapes, which the library's regular expressions do not know."""
    escapes = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
    return escapes.sub(lambda match: chr(int(match[1] or match[2], 16)), pattern)


def tokenizer(vocabulary: Vocabulary, text: TextSettings) -> Tokenizer:
    """Our words as a file of the `tokenizers` library, for programs that have nothing else of ours. It splits by the
    same pattern. What cannot be said there differs in rare words: lower case comes before splitting, and so does the
    shortening of runs of marks; and unknown words stay unknown in languages with compounds, too."""
    made = Tokenizer(WordLevel({word: i for i, word in enumerate(vocabulary.words)}, unk_token=UNK))
    steps = [normalizers.Replace(Regex(r"<[bB][rR]\s?/?>"), " "), normalizers.NFC()]
    if text.lowercase:
        steps.append(normalizers.Lowercase())
    steps.append(normalizers.Replace("\u2019", "'"))
    steps += [normalizers.Replace(Regex(pattern), short) for pattern, short in SHORTENED]
    made.normalizer = normalizers.Sequence(steps)
    pattern = _spelt_out(token_pattern(text.language))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(pattern), "isolated")]
    )
    return made
