"""`emhrnn tune`: search for good settings."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import (
    GUESSED,
    ConfigFile,
    Data,
    DataOptions,
    Preset,
    Quiet,
    Seed,
    Settings,
    ValidData,
    VectorsFile,
    WeightColumn,
    flag,
    option,
)
from emhrnn.cli.output import Answer


def tune(
    data: Data,
    out: Annotated[Path, option("Folder for the study.", "FOLDER", shown=True)] = Path("tuning"),
    minutes: Annotated[float, option("Time limit; it also stops a trial.", shown=True, min=0.01)] = 10.0,
    trials: Annotated[int | None, option("Limit for the whole study.", "N", shown="no limit", min=1)] = None,
    vary: Annotated[
        list[str] | None,
        option(
            "A range for a setting: section.key=low:high, low:high:log or a,b,c; may be repeated.", "SECTION.KEY=RANGE"
        ),
    ] = None,
    only: Annotated[bool, flag("--only", "Vary only the settings of --vary.")] = False,
    model: Annotated[str | None, option("The model to tune.", "NAME", shown="evidence")] = None,
    preset: Preset = "default",
    vectors: VectorsFile = None,
    valid: ValidData = None,
    config: ConfigFile = None,
    set_: Settings = None,
    seed: Seed = None,
    read: DataOptions = GUESSED,
    weight_column: WeightColumn = None,
    quiet: Quiet = False,
) -> Answer:
    """Search for settings that score well on the validation data, and save them for `train --config`.

    \b
    Examples:
      emhrnn tune reviews.csv --minutes 10
      emhrnn tune reviews.csv --model hn-att --minutes 30
      emhrnn tune reviews.csv --only --vary training.learning_rate=0.0005:0.01:log
      emhrnn train reviews.csv --config tuning/best.toml --out run

    Writes FOLDER with best.toml, trials.csv and the study. The first trial uses the settings as given; settings of
    --set do not vary. Trials below the median after as many epochs are pruned. The same command resumes a study, also
    after Ctrl-C or a kill (docs/tuning.md).
    """
    from emhrnn.corpus import is_corpus
    from emhrnn.errors import ConfigError
    from emhrnn.training.config import make_config
    from emhrnn.training.data import Named

    try:
        from emhrnn.tuning import tune as search
    except ImportError as error:
        if not (error.name or "").startswith("optuna"):
            raise
        raise ConfigError("emhrnn tune needs Optuna; pip install 'emhrnn[tune]'") from None

    assignments = [] if model is None else [f"model.name={model}"]
    assignments += set_ or []
    if seed is not None:
        assignments.append(f"training.seed={seed}")
    settings = make_config(preset, config, assignments)
    held_out = None
    if valid is not None:
        held_out = Named(path=valid) if is_corpus(valid) else replace(read, split=None).named(valid)
    command = shlex.join(["emhrnn", *sys.argv[1:]])
    try:
        tuned = search(
            read.named(data, weight=weight_column), out,
            config=settings, valid=held_out, vectors=vectors, vary=vary or (), only=only,
            fixed=[assignment.partition("=")[0].strip() for assignment in assignments],
            minutes=minutes, trials=trials, progress=not quiet, command=command,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command resumes the study in {out}") from None
    best_file = out / "best.toml"
    given = [str(data), *(["--vectors", str(vectors)] if vectors else []), *(["--valid", str(valid)] if valid else [])]
    following = f"Next: emhrnn train {shlex.join(given)} --config {shlex.quote(str(best_file))} --out run"
    facts = {"study": str(out), "config": str(best_file), **tuned.to_dict()}
    return Answer(facts, f"{tuned.summary()}\n\n{following}")
