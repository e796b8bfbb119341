"""What a run folder or a data file holds: facts as data, then as a few aligned lines. Needs no torch for data files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from emhrnn.corpus import Columns, Source
from emhrnn.errors import CheckpointError, DataError

SHOWN = 200  # characters of the first text


def run_facts(path: Path) -> dict[str, Any]:
    """config.json, and metrics.json where training has finished."""
    from emhrnn.training.folder import MARK
    from emhrnn.training.run import METRICS, WEIGHTS, read_description

    description = read_description(path)
    metrics = path / METRICS
    try:
        description["metrics"] = json.loads(metrics.read_text(encoding="utf-8")) if metrics.exists() else None
    except (OSError, ValueError):
        raise CheckpointError(f"{metrics}: corrupt; copy the run again or train anew") from None
    description["weights"] = (path / WEIGHTS).is_file()
    description["unfinished"] = (path / MARK).exists()
    return description


def check_whole(path: Path) -> None:
    """Raise a CheckpointError for a run that has been trained and has lost what it needs: it is not to be described as
    if it could be used."""
    from emhrnn.text import Vocabulary
    from emhrnn.training.checkpoint import load_tensors
    from emhrnn.training.run import METRICS, VOCABULARY, WEIGHTS

    if (path / METRICS).exists():
        load_tensors(path / WEIGHTS)
        if not (path / VOCABULARY).is_file():
            raise CheckpointError(f"{path}: {VOCABULARY} is missing; copy the run again or train anew")
        Vocabulary.load(path / VOCABULARY)


def run_text(path: Path, facts: dict[str, Any]) -> str:
    try:
        return _run_lines(facts)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: its description is corrupt ({error}); copy the run again") from None


def _run_lines(facts: dict[str, Any]) -> str:
    config, metrics, data = facts["config"], facts["metrics"], facts.get("data", {})
    size = f"{facts['parameters']:,} parameters" if facts["parameters"] else "fitted at once"
    lines: dict[str, Any] = {
        "model": f"{config['model']['name']}, {size}",
        "classes": ", ".join(facts["classes"]),
        "E-step": config["em"]["estep"],
        "seed": config["training"]["seed"],
        "versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    }
    if config["model"]["name"] != "em-hrnn":
        del lines["E-step"]
    for part, described in data.items():
        lines[part] = f"{described['documents']:,} documents, {described['words']:,} words ({described['source']})"
    if metrics is None:
        usable = "holds the best model so far" if facts["weights"] else "holds no model yet"
        increments = "saved without scores, as after partial_fit; `emhrnn evaluate` tells them"
        lines["state"] = f"training has not finished; {usable}" if facts["unfinished"] else increments
    else:
        valid = metrics["valid"]
        lines["best epoch"] = f"{metrics['best_epoch'] + 1} of {metrics['epochs']}, {metrics['seconds']:.0f} s"
        lines["validation"] = f"accuracy {valid['accuracy']:.4f}, macro-F1 {valid['macro_f1']:.4f}"
        if "valid" in metrics.get("stale", ()):
            lines["validation"] += ", before it was calibrated anew"
        if calibration := metrics.get("calibration"):  # runs from before there was one have none
            ece = f"ECE {calibration['ece_before']:.4f} before, {calibration['ece_after']:.4f} after"
            lines["temperature"] = f"{calibration['temperature']:.3f}; {calibration['remark'] or ece}"
            if source := calibration.get("source"):
                lines["temperature"] += f", on {calibration['documents']:,} documents of {source}"
            if shares := calibration.get("shares"):
                lines["shares"] = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
        if valid["phrases"]:
            lines["phrases"] = f"{valid['phrases']['mean']:.2f} words on average, at most {valid['phrases']['longest']}"
    return _aligned(lines)


def file_facts(path: Path, columns: Columns) -> dict[str, Any]:
    """Format, columns and first row. A label column that is not there is told, not refused."""
    try:
        source, first, trouble = *_first(path, columns), None
    except DataError as error:
        source, first, trouble = *_first(path, replace(columns, label=None, labelled=False)), str(error)
    return {
        "format": source.formats[0],
        "bytes": source.meter.total,
        "columns": source.taken,
        "first_label": None if first is None else first.label,
        "first_text": None if first is None else first.text[:SHOWN],
        "trouble": trouble,
    }


def _first(path: Path, columns: Columns) -> tuple[Source, Any]:
    source = Source(path, columns=columns)
    return source, next(iter(source), None)


def file_text(facts: dict[str, Any]) -> str:
    lines = {
        "format": facts["format"],
        "size": f"{facts['bytes']:,} bytes",
        "columns": ", ".join(f"{role} = {name}" for role, name in facts["columns"].items()),
        "first label": facts["first_label"],
        "first text": None if facts["first_text"] is None else " ".join(facts["first_text"].split()),
        "trouble": facts["trouble"],
    }
    return _aligned({name: value for name, value in lines.items() if value is not None})


def _aligned(lines: dict[str, Any]) -> str:
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items())
