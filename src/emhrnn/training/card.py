"""The model card: what a run is, what it was made from, how good it is, and what it is not for. Data first
(`card_of`), Markdown second (`markdown`)."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import CheckpointError
from emhrnn.files import UNFINISHED, write_text
from emhrnn.training.config import validated
from emhrnn.training.progress import FitResult, read_history, write_history
from emhrnn.training.run import CARD, HISTORY, Run, read_description, read_metrics, save_metrics, save_weights

LIMITS = (
    "It only predicts the classes above: a text that belongs to none of them still gets one.",
    "The scores hold for texts like those it was trained on. The validation data picked the best epoch and, where "
    "it says so above, the temperature, so they are slightly optimistic: score it on data that it has not "
    "seen (`emhrnn evaluate`).",
    "It reproduces the biases of its training data. Do not let it decide alone about people: about work, credit, "
    "health, education or law.",
    "Probabilities are calibrated on average over texts like those they were fitted on, not for each class or each "
    "text.",
)
PHRASE_LIMITS = (
    "An explanation shows how the parts of a text change the prediction. It describes the model, not the world: other "
    "words might have led to the same class.",
    "Phrases are learned for the label. They need not be grammatical phrases.",
)


@dataclass(frozen=True)
class Card:
    """What the model card says."""

    name: str
    model: str
    parameters: int
    multi_label: bool
    data: list[dict[str, Any]]  # training and validation data: name, source, documents, words, sha256
    classes: list[dict[str, Any]]  # name, documents and share in the training data if counted, precision, recall, f1
    valid: dict[str, Any]  # as in metrics.json
    stale: bool  # the scores are of before it was calibrated again
    calibration: dict[str, Any] | None  # as in metrics.json
    boundary_rate: float | None
    settings: dict[str, Any]  # those that the model reads and that are not its defaults
    versions: dict[str, str]
    seed: int
    command: str
    best_epoch: int
    epochs: int
    seconds: float
    finished: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_results(folder: Path, run: Run, fitted: FitResult) -> None:
    """History, weights, scores and card of a run that was trained elsewhere, and is described in the folder."""
    write_history(folder / HISTORY, fitted.epochs)
    save_weights(folder, run, fitted.best.epoch)
    write_metrics(folder, run, fitted)


def write_metrics(folder: Path, run: Run, fitted: FitResult) -> None:
    """Scores of the best epoch, and what training took; and the model card."""
    write_card(
        folder,
        {
            "parameters": run.model.parameter_count,  # before training, evidence knows no phrases
            "best_epoch": fitted.best.epoch,
            "epochs": len(fitted.epochs),
            "seconds": sum(epoch.seconds for epoch in fitted.epochs),
            "words_per_second": float(np.median([epoch.words_per_second for epoch in fitted.epochs])),
            "finished": datetime.now(UTC).date().isoformat(),
            "valid": fitted.scores.to_dict(),
            "calibration": None if fitted.calibration is None else fitted.calibration.to_dict(),
        },
    )


def write_card(folder: Path, metrics: dict[str, Any]) -> None:
    """The model card, then the metrics: they are the last file of a run, and say that training is done."""
    write_text(folder / CARD, markdown(card_of(folder, metrics)))
    save_metrics(folder, metrics)


def card_of(folder: Path, metrics: dict[str, Any] | None = None) -> Card:
    """From the files of a run folder; its metrics may be given before they are written.

    Raises:
        CheckpointError: the folder is not a run, is damaged, or training has not finished.
    """
    description = read_description(folder)
    metrics = read_metrics(folder) if metrics is None else metrics
    if metrics is None:
        raise CheckpointError(f"{folder} has no scores yet; finish training it first: --resume")
    try:
        config, valid, data = description["config"], metrics["valid"], description.get("data", {})
        best = [epoch for epoch in read_history(folder / HISTORY) if epoch.epoch == metrics["best_epoch"]]
        return Card(
            name=UNFINISHED.sub(r"\1", folder.resolve().name),
            model=config["model"]["name"],
            parameters=metrics.get("parameters", description["parameters"]),
            multi_label=description["multi_label"],
            data=[
                {"name": name, "source": Path(part["source"]).name}
                | {what: part[what] for what in ("documents", "words", "sha256")}
                for name, part in data.items()
            ],
            classes=_classes(data.get("train", {}), valid["classes"]),
            valid=valid,
            stale="valid" in metrics.get("stale", ()),
            calibration=metrics.get("calibration"),
            boundary_rate=best[0].boundaries.get("boundary_rate") if best else None,
            settings=validated(config).changed_settings(),
            versions=description["versions"],
            seed=config["training"]["seed"],
            command=_command(description.get("command", "")),
            best_epoch=metrics["best_epoch"] + 1,
            epochs=metrics["epochs"],
            seconds=metrics["seconds"],
            finished=metrics.get("finished", ""),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{folder}: its description is corrupt ({error}); copy the run again") from None


def _classes(train: dict[str, Any], scores: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    counts, total = train.get("classes", {}), train.get("documents", 0)
    shares = {name: count / total for name, count in counts.items()} if total else {}
    return [
        {"name": name, "documents": counts.get(name), "share": shares.get(name)}
        | {what: of_class[what] for what in ("precision", "recall", "f1")}
        for name, of_class in scores.items()
    ]


def _command(command: str) -> str:
    """Without the place of the program, which says nothing about the model."""
    words = shlex.split(command)
    if not words:
        return ""
    program = Path(words[0]).name
    return shlex.join(["emhrnn" if program == "__main__.py" else program, *words[1:]])


def markdown(card: Card) -> str:
    """The card as a Markdown document."""
    parts = [
        f"# Model card: {escaped(card.name)}",
        f"A classifier of documents into {len(card.classes)} classes"
        + (", several of which may hold at once" if card.multi_label else "")
        + f": {escaped(card.model)}"
        + (f" with {card.parameters:,} parameters" if card.parameters else "")  # models fitted at once count none
        + ", made by emhrnn"
        + (f" on {card.finished}." if card.finished else "."),
        "## Training data",
        _data(card),
        "## Scores on validation data",
        _scores(card),
        "## Calibration",
        _calibration(card),
    ]
    phrased = bool(card.valid.get("phrases"))
    if phrased:
        parts += ["## Phrases", _phrases(card)]
    parts += ["## How it was made", _making(card)]
    parts += ["## Limits", "\n".join(f"- {limit}" for limit in LIMITS + (PHRASE_LIMITS if phrased else ()))]
    return "\n\n".join(parts) + "\n"


def _data(card: Card) -> str:
    if not card.data:
        return "Texts given in memory; their source was not recorded."
    rows = [
        [p["name"], escaped(p["source"]), f"{p['documents']:,}", f"{p['words']:,}", f"`{p['sha256']}`"]
        for p in card.data
    ]
    return _table(["part", "source", "documents", "words", "SHA-256 of the source"], rows)


def _scores(card: Card) -> str:
    valid = card.valid
    said = (
        f"{valid['documents']:,} documents; epoch {card.best_epoch} of {card.epochs}, picked on them: accuracy "
        f"{valid['accuracy']:.4f}, macro-F1 {valid['macro_f1']:.4f}, loss {valid['loss']:.4f} nats per document."
    )
    if card.stale:
        said += (
            " This was at the end of training. It has been calibrated again since, which changes probabilities, and "
            "may change decisions: score it again (`emhrnn evaluate`)."
        )
    rows = [
        [
            escaped(row["name"]),
            "" if row["documents"] is None else f"{row['documents']:,}",
            *("" if row[what] is None else _percent(row[what]) for what in ("share", "precision", "recall", "f1")),
        ]
        for row in card.classes
    ]
    return f"{said}\n\n" + _table(["class", "in training", "share", "precision", "recall", "F1"], rows)


def _calibration(card: Card) -> str:
    fitted = card.calibration
    if fitted is None:
        return "Probabilities are the model's own; no temperature was fitted."
    source = fitted.get("source")  # runs from before it was kept were fitted on validation data
    kind = "validation documents" if source is None else f"documents of {escaped(source)}"
    said = (
        f"Temperature {fitted['temperature']:.3f}, fitted on {fitted['documents']:,} {kind}"
        + (f" ({fitted['remark']})" if fitted["remark"] else "")
        + f". Expected calibration error in {len(fitted['after'])} bins: {fitted['ece_before']:.4f} before, "
        f"{fitted['ece_after']:.4f} after, on the same documents."
    )
    if shares := fitted.get("shares"):  # runs from before there were any have none
        said += f" Its experts count: {', '.join(f'{name} {share:.2f}' for name, share in shares.items())}."
    rows = [
        [f"{b['low']:.2f} to {b['high']:.2f}", f"{b['predictions']:,}", _percent(b["confidence"]), _percent(b["right"])]
        for b in fitted["after"]
        if b["predictions"]
    ]
    return f"{said}\n\n" + _table(["confidence", "predictions", "mean confidence", "right"], rows)


def _phrases(card: Card) -> str:
    phrases = card.valid["phrases"]
    rate = "" if card.boundary_rate is None else f" Boundary rate in training {card.boundary_rate:.3f}."
    return (
        f"{phrases['mean']:.2f} words on average, {phrases['shortest']} to {phrases['longest']}, in "
        f"{phrases['phrases']:,} phrases of the validation data.{rate}"
    )


def _making(card: Card) -> str:
    settings = "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in card.settings.items())
    lines = [
        f"Seed {card.seed}, {card.seconds:.0f} s; "
        + ", ".join(f"{name} {version}" for name, version in card.versions.items())
        + ".",
        *([_fenced(card.command)] if card.command else []),
        "Settings that differ from the model's defaults:" if settings else "All settings are the model's defaults.",
        *([_fenced(settings)] if settings else []),
    ]
    return "\n\n".join(lines)


def escaped(text: str) -> str:
    """As Markdown that shows the text itself, in a line and in a table's cell."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return re.sub(r"([\\`*_\[\]<>|~&$!#])", r"\\\1", plain) or "(empty)"


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}\n{text}\n{fence}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
