"""`emhrnn paper faithfulness`: documents drawn from a file, every explanation at every level measured in jobs of some
documents each, with its cost; then the table and the figure."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.corpus import is_corpus
from emhrnn.corpus.readers.source import Source
from emhrnn.errors import ConfigError, DataError, TrainingError
from emhrnn.explain.explainer import read
from emhrnn.explain.removal import LEVELS
from emhrnn.files import sha256, write_json, write_text
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.faithfulness import attributions
from emhrnn.paper.faithfulness.attributions import STEPS, Attribution, Subject, measure
from emhrnn.paper.faithfulness.table import METHODS, PREDICTION, FaithfulnessTable, draw_curves, make_table, to_markdown
from emhrnn.paper.jobs import JobSpec, report_progress, run_jobs, so_far
from emhrnn.paper.plot import check_plots
from emhrnn.paper.provenance import commit, machine
from emhrnn.paper.sampling import Reservoir
from emhrnn.text import read_document
from emhrnn.training.data import Named
from emhrnn.training.run import WEIGHTS, load_run


def drawn_texts(data: Named, count: int, seed: int) -> list[str]:
    """`count` texts, each set of them as likely as any other; all texts where there are fewer. Those without words are
    left out, after the drawing, since finding them means reading all."""
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no texts; give the data that it was made from")
    source = Source(data.path, format=data.format, columns=data.columns, split=data.split)
    reservoir = Reservoir[str](count, seed)
    for record in source:
        if record.text.strip():
            reservoir.offer(record.text)
    texts = [text for text in reservoir.drawn if len(read_document(text))]  # a text may be all `<br>`
    if not texts:
        raise DataError(f"{data.path} has no text with words; give data with documents")
    return texts


def _save_texts(path: Path, texts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(text) + "\n" for text in texts))


def _load_texts(path: Path) -> list[str]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_job(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """`arguments`: run, texts (a file), first, last, seed, steps, methods."""
    torch.set_num_threads(1)
    run = load_run(Path(arguments["run"]))
    assert isinstance(run.model, EMHRNN)
    run.model.precompute_words()
    first, last = int(arguments["first"]), int(arguments["last"])
    texts = _load_texts(Path(arguments["texts"]))[first:last]
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


GROUP = 25  # documents of a job


@dataclass(frozen=True)
class FaithfulnessPlan:
    """What to measure."""

    documents: int = 500
    seed: int = 0
    steps: int = STEPS
    figure: bool = True
    report: bool = False  # run nothing: the table of what is done so far

    def __post_init__(self) -> None:
        if self.documents < 2:
            raise ConfigError(f"{self.documents} documents; intervals need at least 2, the table is meant for 500")


def measure_faithfulness(
    folder: Path,
    data: Named,
    plan: FaithfulnessPlan,
    out: Path,
    *,
    command: str,
    processes: int,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> FaithfulnessTable:
    """Runs what is not done yet, and writes table and figure to `out`."""
    if plan.figure:
        check_plots()
    _check_captum()
    run = load_run(folder)
    if not isinstance(run.model, EMHRNN):
        raise ConfigError(f"{folder} is a run of {run.config.model.name}; faithfulness needs em-hrnn, give one")
    texts = drawn_texts(data, plan.documents, plan.seed)
    digest = hashlib.sha256("\0".join([sha256(folder / WEIGHTS), *texts]).encode("utf-8", "surrogatepass"))
    name = digest.hexdigest()[:12]  # other documents or another model are other jobs
    jobs_folder = out / "jobs"
    path = jobs_folder / f"{name}.texts.jsonl"
    _save_texts(path, texts)
    jobs = [
        JobSpec(
            f"{name}-{first:06d}",
            {
                "first": first, "last": min(first + GROUP, len(texts)), "seed": plan.seed, "steps": plan.steps,
                "methods": list(METHODS),
            },
            {"run": str(folder.resolve()), "texts": str(path.resolve())},
        )
        for first in range(0, len(texts), GROUP)
    ]  # fmt: skip
    if plan.report:
        outcomes = [outcome for outcome in so_far(jobs_folder, jobs) if outcome is not None]
    else:
        outcomes = run_jobs(run_job, jobs, jobs_folder, processes=processes, progress=progress, say=say)
    results = []
    for outcome in outcomes:
        if outcome.result is None:
            raise TrainingError(f"{outcome.name}: {outcome.error}")
        results.append(outcome.result)
    if not results:
        raise ConfigError(f"nothing is done yet in {jobs_folder}; run the same command without --report")
    words = [count for result in results for count in result["words"]]
    header = {
        "command": command,
        "commit": commit(),
        "machine": machine(),
        "model": f"{run.config.model.name}, {run.config.em.estep}; weights {sha256(folder / WEIGHTS)[:12]}",
        "documents": f"{_count(len(words), len(texts))} drawn with seed {plan.seed}, "
        f"{sum(words) / len(words):.0f} words on average",
    }
    table = make_table(header, results, plan.seed)
    write_json(out / "faithfulness.json", table.to_dict())
    write_text(out / "faithfulness.md", to_markdown(table))
    if plan.figure:
        draw_curves(table, out / "faithfulness.svg")
    return table


def _count(done: int, drawn: int) -> str:
    return f"{done}" if done == drawn else f"{done} (so far) of {drawn}"


def _check_captum() -> None:
    """Before the work begins: is the extra there?"""
    try:
        import captum  # noqa: F401
    except ImportError:
        raise ConfigError("integrated gradients need captum; install emhrnn[analysis]") from None
