"""The whole measurement: documents are drawn, groups of them are jobs, then table and figure.

OUT/faithfulness.md, faithfulness.json   the table
OUT/faithfulness.svg                     the curves
OUT/jobs/                                what is done so far; may be deleted
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emhrnn.errors import ConfigError, TrainingError
from emhrnn.files import sha256, write_json, write_text
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.drawing import check_plots
from emhrnn.paper.faithfulness.attributions import STEPS
from emhrnn.paper.faithfulness.documents import drawn_texts, save_texts
from emhrnn.paper.faithfulness.figure import draw
from emhrnn.paper.faithfulness.job import METHODS, run_job
from emhrnn.paper.faithfulness.markdown import to_markdown
from emhrnn.paper.faithfulness.table import Table, make_table
from emhrnn.paper.job_records import Job, so_far
from emhrnn.paper.jobs import run_jobs
from emhrnn.paper.provenance import commit, machine
from emhrnn.training.data import Named
from emhrnn.training.run import WEIGHTS, load_run

GROUP = 25  # documents of a job


@dataclass(frozen=True)
class Plan:
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
    plan: Plan,
    out: Path,
    *,
    command: str,
    processes: int,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> Table:
    """Runs what is not done yet, and writes table and figure to `out`."""
    if plan.figure:
        check_plots()
    _check_captum()
    run = load_run(folder)
    if not isinstance(run.model, EMHRNN):
        raise ConfigError(f"{folder} is a run of {run.told_model}; faithfulness needs em-hrnn with one level, give one")
    texts = drawn_texts(data, plan.documents, plan.seed)
    digest = hashlib.sha256("\0".join([sha256(folder / WEIGHTS), *texts]).encode("utf-8", "surrogatepass"))
    name = digest.hexdigest()[:12]  # other documents or another model are other jobs
    jobs_folder = out / "jobs"
    path = jobs_folder / f"{name}.texts.jsonl"
    save_texts(path, texts)
    jobs = [
        Job(
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
        draw(table, out / "faithfulness.svg")
    return table


def _count(done: int, drawn: int) -> str:
    return f"{done}" if done == drawn else f"{done} (so far) of {drawn}"


def _check_captum() -> None:
    """Before the work begins: is the extra there?"""
    try:
        import captum  # noqa: F401
    except ImportError:
        raise ConfigError("integrated gradients need captum; install emhrnn[analysis]") from None
