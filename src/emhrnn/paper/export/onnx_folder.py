"""`export_onnx`: a folder that runs without us: model.onnx, tokenizer.json, classes.json and an example."""

import json
import logging
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

from emhrnn.corpus import BatchPlan, Corpus, TextSettings
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

MODEL, INT8 = "model.onnx", "model.int8.onnx"
BATCH_WORDS = 8000
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
    """What was written. Accuracies are there where labelled documents were given."""

    folder: Path
    bytes: int
    difference: float  # largest one of a probability, on random documents
    int8_bytes: int | None = None
    documents: int = 0
    accuracy: float | None = None
    int8_accuracy: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"folder": str(self.folder)}


def export_onnx(
    run: Run, out: Path, *, int8: bool = False, check: Corpus | None = None, overwrite: bool = False
) -> Exported:
    """Write the folder; with `int8` also the quantised model. `check` are labelled documents in the run's words.

    Raises:
        ConfigError: the model is no em-hrnn with learned boundaries, or an extra is missing.
        DataError: `out` is taken.
    """
    model = exportable(run)
    with atomic_folder(out, overwrite=overwrite) as folder:
        write_bytes(folder / MODEL, network(run, model).SerializeToString())
        difference = checked_difference(run, session(folder / MODEL))
        if int8:
            quantise(folder / MODEL, folder / INT8)
        tokenizer(run.vocabulary, run.text).save(str(folder / "tokenizer.json"))
        write_text(folder / "classes.json", json.dumps(list(run.classes), ensure_ascii=False) + "\n")
        write_text(folder / "example.py", _example(INT8 if int8 else MODEL, run.multi_label))
        return Exported(
            folder=out,
            bytes=(folder / MODEL).stat().st_size,
            difference=difference,
            int8_bytes=(folder / INT8).stat().st_size if int8 else None,
            documents=0 if check is None else len(check),
            accuracy=None if check is None else accuracy(session(folder / MODEL), check),
            int8_accuracy=accuracy(session(folder / INT8), check) if int8 and check is not None else None,
        )


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


def quantise(path: Path, out: Path) -> None:
    """Weights and word vectors as 8-bit numbers; activations are quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.disable(logging.WARNING)  # it asks for a step that dynamic quantisation has no use for
    try:
        quantize_dynamic(
            path, out, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul", "LSTM", "Gather"]
        )
    finally:
        logging.disable(logging.NOTSET)


def accuracy(predict: Predict, corpus: Corpus) -> float:
    """Share of documents whose class is right; for several labels, of documents whose labels are all right."""
    right = 0
    for rows in BatchPlan(corpus.lengths, words=BATCH_WORDS).in_order():
        batch = corpus.batch(rows)
        table, labels = predict(batch), batch.labels
        assert labels is not None
        if labels.ndim == 2:
            right += int(((table > 0.5) == (labels > 0.5)).all(axis=1).sum())
        else:
            right += int((table.argmax(axis=1) == labels).sum())
    return right / len(corpus)


def _example(model: str, multi_label: bool) -> str:
    text = files("emhrnn.paper.export").joinpath("example.txt").read_text(encoding="utf-8")
    found = f"np.flatnonzero(row > {THRESHOLD})  # all labels that are more likely than not"
    filled = text.replace("{found}", found if multi_label else "[int(row.argmax())]")
    return filled.replace("{files}", f"{model} and tokenizer.json").replace("{model}", model)


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
