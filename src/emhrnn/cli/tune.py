"""`emhrnn tune`: search for good settings."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import (
    Data,
    Format,
    Json,
    LabelColumn,
    Quiet,
    Settings,
    Split,
    TextColumn,
    WeightColumn,
)


def tune(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the study.", metavar="FOLDER")] = Path("tuning"),
    minutes: Annotated[float, typer.Option(min=0.01, help="Time limit; it also stops a trial.")] = 10.0,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Limit for the whole study.", show_default="no limit", metavar="N")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="A range for a setting: section.key=low:high, low:high:log or a,b,c; may be repeated.",
            metavar="SECTION.KEY=RANGE",
            show_default=False,
        ),
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Vary only the settings of --vary.")] = False,
    model: Annotated[
        str | None, typer.Option(help="The model to tune.", show_default="evidence", metavar="NAME")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="default: ours; paper: the paper's exact settings.", metavar="NAME")
    ] = "default",
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors, as for train.", show_default="none", metavar="FILE")
    ] = None,
    valid: Annotated[
        Path | None, typer.Option(help="Validation data, in any format.", show_default="10 % of DATA", metavar="DATA")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of settings to start from.", show_default="none", metavar="FILE")
    ] = None,
    set_: Settings = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of training and search.", show_default="0", metavar="N")
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    weight_column: WeightColumn = None,
    format: Format = None,
    split: Split = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
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
    from dataclasses import replace

    from emhrnn.cli.output import print_json, say
    from emhrnn.corpus import Columns, is_corpus
    from emhrnn.errors import ConfigError
    from emhrnn.training.config import make_config
    from emhrnn.training.data import Named

    try:
        from emhrnn.tuning.tune import tune as search
    except ImportError as error:
        if not (error.name or "").startswith("optuna"):
            raise
        raise ConfigError("emhrnn tune needs Optuna; pip install 'emhrnn[tune]'") from None

    assignments = [] if model is None else [f"model.name={model}"]
    assignments += set_ or []
    if seed is not None:
        assignments.append(f"training.seed={seed}")
    settings = make_config(preset, config, assignments)
    columns = Columns(text=text_column, label=label_column)
    held_out = None
    if valid is not None:
        held_out = Named(path=valid) if is_corpus(valid) else Named(path=valid, format=format, columns=columns)
    command = shlex.join(["emhrnn", *sys.argv[1:]])
    try:
        tuned = search(
            Named(path=data, format=format, columns=replace(columns, weight=weight_column), split=split), out,
            config=settings, valid=held_out, vectors=vectors, vary=vary or (), only=only,
            fixed=[assignment.partition("=")[0].strip() for assignment in assignments],
            minutes=minutes, trials=trials, progress=not quiet, command=command,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command resumes the study in {out}") from None
    best_file = out / "best.toml"
    if json:
        print_json({"study": str(out), "config": str(best_file), **tuned.to_dict()})
        return
    say(tuned.summary())
    given = [str(data), *(["--vectors", str(vectors)] if vectors else []), *(["--valid", str(valid)] if valid else [])]
    say(f"\nNext: emhrnn train {shlex.join(given)} --config {shlex.quote(str(best_file))} --out run")
