"""Some of the documents: every explanation at every level, measured, with its cost."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.explain.explainer import read
from emhrnn.explain.removal import LEVELS
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.faithfulness import attributions
from emhrnn.paper.faithfulness.attributions import Attribution
from emhrnn.paper.faithfulness.documents import load_texts
from emhrnn.paper.faithfulness.perturbation import Subject, measure
from emhrnn.paper.job_process import report_progress
from emhrnn.training.run import load_run

METHODS = {
    "random": "random",
    "attention": "attention",
    "effect": "weight x effect",
    "thorough": "weight x effect, looking twice",
    "gradients": "integrated gradients",
    "occlusion": "occlusion",
}
PREDICTION = "prediction"


def run_job(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`arguments`: run, texts (a file), first, last, seed, steps, methods."""
    torch.set_num_threads(1)
    run = load_run(Path(arguments["run"]))
    assert isinstance(run.model, EMHRNN)
    run.model.precompute_words()
    first, last = int(arguments["first"]), int(arguments["last"])
    texts = load_texts(Path(arguments["texts"]))[first:last]
    subject = Subject.of(run, read(run, texts))
    for warm_up in (
        attributions.attention,
        attributions.effect,
        attributions.thorough,
    ):  # the first backward pass of a process is slow
        warm_up(subject)
    seconds = {PREDICTION: _seconds(lambda: attributions.attention(subject))[1]}
    rows = []
    for number, method in enumerate(arguments["methods"]):
        report_progress(folder, number / len(arguments["methods"]), METHODS[method])
        for levels, attribution, taken in _attributions(method, subject, first, arguments):
            for level in levels:
                rows.append(_row(subject, method, level, attribution))
                seconds[f"{method} {level}"] = taken
    return {"rows": rows, "seconds": seconds, "words": subject.batch.document_lengths.tolist()}


def _attributions(
    method: str, subject: Subject, first: int, arguments: dict[str, Any]
) -> list[tuple[tuple[str, ...], Attribution, float]]:
    """The levels that an explanation serves, and CPU seconds."""
    if method == "occlusion":
        return [((level,), *_seconds(lambda level=level: attributions.occlusion(subject, level))) for level in LEVELS]  # type: ignore[misc]
    generator = np.random.default_rng([int(arguments["seed"]), first])
    explain: dict[str, Callable[[], Attribution]] = {
        "random": lambda: attributions.random(subject, generator),
        "attention": lambda: attributions.attention(subject),
        "effect": lambda: attributions.effect(subject),
        "thorough": lambda: attributions.thorough(subject),
        "gradients": lambda: attributions.integrated_gradients(subject, int(arguments["steps"])),
    }
    return [(LEVELS, *_seconds(explain[method]))]


def _seconds(explain: Callable[[], Attribution]) -> tuple[Attribution, float]:
    begin = time.process_time()
    attribution = explain()
    return attribution, time.process_time() - begin


def _row(subject: Subject, method: str, level: str, attribution: Attribution) -> dict[str, Any]:
    """One line per document."""
    measured = measure(subject, level, attribution.scores[level])
    return {
        "method": method,
        "level": level,
        "comprehensiveness": measured.comprehensiveness.round(6).tolist(),
        "sufficiency": measured.sufficiency.round(6).tolist(),
        "forward": attribution.forward[level].tolist(),
        "backward": attribution.backward[level].tolist(),
    }
