"""`tune`: settings that do well on the validation data, searched for within a given time."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from emhrnn.cores import cores
from emhrnn.errors import ConfigError
from emhrnn.training.config import Config
from emhrnn.training.data import Named
from emhrnn.training.train import check_settings
from emhrnn.tuning.space import PAPER_GRID, space_of
from emhrnn.tuning.varying import Varied, assignments_of, varied

if TYPE_CHECKING:
    from emhrnn.tuning.session import Tuned


def tune(
    data: Named,
    out: Path,
    *,
    config: Config,
    valid: Named | None = None,
    vectors: Path | None = None,
    vary: Sequence[str] = (),
    only: bool = False,
    fixed: Sequence[str] = (),
    paper: bool = False,
    minutes: float | None = 10.0,
    trials: int | None = None,
    processes: int = 1,
    progress: bool = True,
    command: str = "emhrnn tune",
) -> "Tuned":
    """Search, and leave the study, best.toml and trials.csv at `out`. The same call goes on with a study that is there.

    Args:
        vary: ranges in the notation of `--vary`, on top of the model's own; with `only`, instead of them.
        fixed: names of settings that are not to vary.
        paper: run every learning rate of the paper's grid, whole, and nothing else.
        minutes: None sets no limit. A trial under way is stopped then.
        trials: how many the study is to have in all.
        processes: that share the work, one of them being this one.

    Raises:
        ConfigError, DataError: a setting, a range or the data cannot be used, or `out` holds another study.
        TrainingError: no trial came to a score.
    """
    deadline = float("inf") if minutes is None else time.time() + 60 * minutes
    try:
        from emhrnn.tuning.search import Plan
        from emhrnn.tuning.session import Session
    except ImportError as error:
        if not (error.name or "").startswith("optuna"):
            raise
        raise ConfigError("emhrnn tune needs Optuna; pip install 'emhrnn[tune]'") from None
    most = cores()
    if processes > most:
        raise ConfigError(f"{processes} processes were asked for, {most} cores are there; give at most {most}")
    if paper and (vary or only or trials):
        raise ConfigError(
            "--paper varies the learning rate alone, over the whole grid; leave --vary, --only and --trials out"
        )
    check_settings(config)
    space = _space(config, assignments_of(vary), only=only, fixed=fixed, paper=paper)
    plan = Plan(out, config, tuple(space), grid=paper, trials=trials, deadline=deadline, command=command)
    return Session(plan, data, valid, vectors).run(processes, most // processes, progress=progress)


def _space(config: Config, given: dict[str, str], *, only: bool, fixed: Sequence[str], paper: bool) -> list[Varied]:
    if paper:
        return varied(PAPER_GRID)
    own = {} if only else {name: text for name, text in space_of(config).items() if name not in fixed}
    space = varied({**own, **given})
    if not space:
        raise ConfigError("nothing varies; give a setting with --vary, e.g. training.learning_rate=0.001:0.01:log")
    return space
