"""`emhrnn train`: a model from labelled documents."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Data, Format, Json, LabelColumn, Quiet, Split, TextColumn


def train(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the run; must not exist yet.", show_default=False)],
    model: Annotated[str, typer.Option(help="Which system to train.", metavar="NAME")] = "em-hrnn",
    estep: Annotated[
        str | None,
        typer.Option(
            help="How boundaries are learned: exact, blocks, local, first-order, importance, reinforce, semi-markov, "
            "or none.",
            show_default="from the preset: local",
            metavar="NAME",
        ),
    ] = None,
    preset: Annotated[str, typer.Option(help="paper: the letter of the paper; default: ours.")] = "default",
    vectors: Annotated[
        Path | None,
        typer.Option(help="Word vectors: GloVe or word2vec text, word2vec binary, .npz.", show_default="none"),
    ] = None,
    valid: Annotated[
        Path | None, typer.Option(help="Validation data, in any format.", show_default="10 % of DATA")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings.", show_default="none")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="One setting, e.g. training.epochs=3. May be repeated.", metavar="SECTION.KEY=VALUE"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same model.", show_default="0")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    format: Format = None,
    split: Split = None,
    valid_split: Annotated[
        str | None, typer.Option(help="Validate on the rows of DATA whose `split` column says this.", metavar="NAME")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier and leave everything about it in a run folder.

    Example: emhrnn train reviews.jsonl.gz --out run --vectors glove.npz --set training.epochs=5
    """
    from emhrnn.corpus import Columns
    from emhrnn.errors import ConfigError
    from emhrnn.products.cli.printing import percent, print_json, say
    from emhrnn.text import read_vectors
    from emhrnn.training.config import make_config
    from emhrnn.training.data import Named
    from emhrnn.training.train import train as train_run

    assignments = list(set_ or [])
    if estep is not None:
        assignments.append(f"em.estep={estep}")
    if seed is not None:
        assignments.append(f"training.seed={seed}")
    if valid is not None and valid_split is not None:
        raise ConfigError("--valid and --valid-split both name the validation data; give one of them")
    settings = make_config(preset, config, [f"model.name={model}", *assignments])
    columns = Columns(text=text_column, label=label_column)
    valid_data = None
    if valid is not None or valid_split is not None:
        valid_data = Named(path=valid or data, format=format, columns=columns, split=valid_split)
    result = train_run(
        Named(path=data, format=format, columns=columns, split=split),
        out,
        config=settings,
        valid=valid_data,
        vectors=None if vectors is None else read_vectors(vectors),
        progress=not quiet,
    )
    scores, best = result.fitted.scores, result.fitted.best
    if json:
        print_json({"run": str(out), "best_epoch": best.epoch, "valid": scores.to_dict()})
        return
    say(
        f"Best epoch {best.epoch + 1}: accuracy {percent(scores.accuracy)}, macro-F1 {percent(scores.macro_f1)} on "
        f"{scores.documents:,} validation documents."
    )
    if scores.phrases is not None:
        say(f"Phrases of {scores.phrases.mean:.1f} words on average, {scores.phrases.longest} at most.")
    say(f"\nNext: emhrnn evaluate {out} TEST_DATA\n      emhrnn explain {out} 'A text of your own.'")
