"""`emhrnn train`: train a classifier on labelled documents."""

import shlex
from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import (
    GUESSED,
    ConfigFile,
    DataOptions,
    Json,
    OptionalData,
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

PICKED = {
    "accuracy": "highest validation accuracy",
    "macro_f1": "highest validation macro-F1",
    "loss": "lowest validation loss",
    "ece": "lowest calibration error",
}


def train(
    out: Annotated[Path, option("Folder for the run.", "RUN")],
    data: OptionalData = None,
    model: Annotated[
        str | None, option("The model to train; `emhrnn models` lists them.", "NAME", shown="evidence")
    ] = None,
    preset: Preset = "default",
    from_: Annotated[
        Path | None,
        option("Continue from this run with new documents; words and classes may be new.", "RUN", name="--from"),
    ] = None,
    vectors: VectorsFile = None,
    valid: ValidData = None,
    config: ConfigFile = None,
    set_: Settings = None,
    small: Annotated[
        bool, flag("--small", "evidence: a model file of at most 20 MB, with the 15,000 most frequent words of DATA.")
    ] = False,
    seed: Seed = None,
    read: DataOptions = GUESSED,
    weight_column: WeightColumn = None,
    spans_column: Annotated[
        str | None,
        option("Column of [start, end) lists: parts that people marked as reasons (evidence).", "NAME", shown="none"),
    ] = None,
    valid_split: Annotated[
        str | None, option("Validate on the rows of DATA with this value in the split column.", "NAME", shown=True)
    ] = None,
    overwrite: Annotated[
        bool, flag("--overwrite", "Replace a run at --out, after the first epoch of the new one.")
    ] = False,
    resume: Annotated[
        bool, flag("--resume", "Resume the run at --out; other options may be left out, or must be the same.")
    ] = False,
    log: Annotated[
        list[str] | None,
        option("Also send losses and scores to tensorboard, mlflow or wandb; may be repeated.", "NAME"),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier on labelled documents, and write it to a run folder.

    \b
    Examples:
      emhrnn train reviews.csv --out run
      emhrnn train reviews.jsonl.gz --out run --vectors glove.npz --set training.epochs=5
      emhrnn train all.parquet --out run --split train --valid-split dev --label-column stars
      emhrnn train reviews.csv --out hn --model hn-att --seed 1
      emhrnn train corrections.jsonl --from run --out run2       # learn from more documents
      emhrnn train --out run --resume

    DATA needs a column of text and one of labels (docs/data.md). Rows without text or label are skipped and counted.

    Writes RUN with the weights of the best epoch, its words, settings, history, scores and model card (docs/run.md). If
    training fails before the first epoch or checkpoint, --out is removed; if the loss becomes NaN, the failing batch
    is kept for debugging. After Ctrl-C or a crash, `--out RUN --resume` continues with the same result as without the
    interruption. With --set training.epochs=N, a finished run is trained up to N epochs.

    With --from, training continues from another run with DATA and a sample of that run's own documents, so
    that it does not forget. Words and classes may be new. The other run stays as it is (docs/updating.md).
    """
    from emhrnn.api import train as train_run
    from emhrnn.cli.output import complain, percent, print_json, say, tell_of_rows
    from emhrnn.errors import ConfigError
    from emhrnn.models.table import DEFAULT, MODELS
    from emhrnn.training.config import SMALL, make_config, settings_of
    from emhrnn.training.distributed import joined
    from emhrnn.training.pack import located
    from emhrnn.training.resume import is_finished
    from emhrnn.training.run import is_run, model_of

    try:
        with joined() as job:
            usual = model_of(out) if resume and is_run(out) else DEFAULT
            if from_ is not None:
                usual = model_of(located(from_))
                if model not in (None, usual):
                    raise ConfigError(f"{from_} has the model {usual}; leave --model out, or train {model} again")
            assignments = [*([] if model is None else [f"model.name={model}"]), *(set_ or [])]
            if seed is not None:
                assignments.append(f"training.seed={seed}")
            settings = make_config(preset, config, assignments, model=usual)
            if small:
                bounded = [name for name in MODELS if "model.megabytes" in settings_of(name)]
                if settings.model.name not in bounded:
                    raise ConfigError(
                        f"--small bounds the model file, and {settings.model.name} has no such bound; leave it out, or "
                        f"train --model {', '.join(bounded)}"
                    )
                settings = make_config(preset, config, [*SMALL, *assignments], model=usual)
            finished = resume and is_run(out) and is_finished(out, settings)
            trained = train_run(
                data, out, config=settings, start=from_, vectors=vectors, valid=valid, valid_split=valid_split,
                weight_column=weight_column, spans_column=spans_column, **vars(read), overwrite=overwrite,
                resume=resume, log=log or (), progress=not quiet, say=complain,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_left(out)) from None
    except SystemExit:  # SIGTERM
        complain(f"terminated; {_left(out)}")
        raise
    if not job.first:
        return
    from emhrnn.evaluation.baselines import baselines, cross_validated  # not above: after the check of memory
    from emhrnn.training.validation import fold_numbers

    scores, best = trained.fitted.scores, trained.fitted.best
    report, valid_report = trained.train.report, trained.valid.report
    skipped, repaired = report.skipped, report.repaired
    own = trained.valid.path != trained.train.path  # else it is a part of the data, and one report has both
    valid_skipped, valid_repaired = (valid_report.skipped, valid_report.repaired) if own else ({}, {})
    tell_of_rows(str(data or "the data"), skipped, repaired)
    tell_of_rows(str(valid or "the validation data"), valid_skipped, valid_repaired)
    settings = trained.model.run.config
    folds = settings.data.folds if trained.valid is trained.train else 0
    if folds:
        beside = cross_validated(trained.train, fold_numbers(settings, trained.train))
    elif trained.valid is trained.train:
        beside = {}
    else:
        beside = {name: other.accuracy for name, other in baselines(trained.train, trained.valid).items()}
    if json:
        print_json(
            {
                "run": str(out), "best_epoch": best.epoch + 1, "valid": scores.to_dict(), "baselines": beside,
                "skipped": skipped, "repaired": repaired,
                "valid_skipped": valid_skipped, "valid_repaired": valid_repaired,
            }
        )  # fmt: skip
        return
    epochs = len(trained.fitted.epochs)
    system = MODELS[settings.model.name]
    if finished:
        more = f"to train on, give --set training.epochs=N with N above {epochs}"
        say(f"{out} is finished" + (f"; {more}." if system.learns != "fit" and not folds else "."))
    held_out = own or (from_ is None and settings.data.validation > 0)
    selected, kind = held_out and from_ is None, "validation documents" if held_out else "training documents"
    if folds:
        kind = f"documents, by cross-validation in {folds} folds"
    result = f"accuracy {percent(scores.accuracy)}, macro-F1 {percent(scores.macro_f1)} on {scores.documents:,} {kind}."
    if system.learns == "fit":
        say(result[0].upper() + result[1:])
    elif selected:
        if epochs < settings.training.epochs and not finished and not folds:
            waited = epochs - 1 - best.epoch
            say(f"Stopped after epoch {epochs} of {settings.training.epochs}: {waited} without improvement.")
        say(f"Best epoch {best.epoch + 1} ({PICKED[settings.training.metric]}): {result}")
    else:
        say(f"Last epoch {best.epoch + 1}: {result}")
    if beside:
        say("For comparison: " + ", ".join(f"{name} {percent(accuracy)}" for name, accuracy in beside.items()) + ".")
    if scores.phrases is not None:
        say(f"Phrases of {scores.phrases.mean:.1f} words on average, {scores.phrases.longest} at most.")
    folder = shlex.quote(str(out))
    say(f"\nNext: emhrnn evaluate {folder} TEST_DATA")
    if system.explains:
        say(f"      emhrnn explain {folder} 'A text of your own.'")
    say(f"      emhrnn serve {folder}")


def _left(out: Path) -> str:
    """What an interrupted training left at `out`, and how to resume."""
    from emhrnn.training.folder import is_begun
    from emhrnn.training.progress import read_history
    from emhrnn.training.run import HISTORY, WEIGHTS

    if not is_begun(out):
        return f"no epoch was done, so nothing is left at {out}"
    holds = "what was learned so far"
    if (out / WEIGHTS).exists():
        epochs = read_history(out / HISTORY)
        best = max((epoch.epoch for epoch in epochs if epoch.best), default=0) + 1
        holds = f"the best model so far (epoch {best} of {len(epochs)} that were done)"
    return f"{out} holds {holds}; resume with: emhrnn train --out {shlex.quote(str(out))} --resume"
