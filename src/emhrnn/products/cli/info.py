"""`emhrnn info`: what a folder holds."""

from pathlib import Path
from typing import Annotated, Any

import typer

from emhrnn.products.cli.options import Json


def info(
    path: Annotated[Path, typer.Argument(help="A run folder, a prepared corpus, or a data file.", show_default=False)],
    json: Json = False,
) -> None:
    """Describe a run, a prepared corpus, or a data file (its format and its first row)."""
    from emhrnn.corpus import is_corpus
    from emhrnn.errors import DataError
    from emhrnn.products.cli.printing import print_json, say

    if not path.exists():
        raise DataError(f"{path} does not exist; give a run folder, a prepared corpus or a data file")
    if is_corpus(path):
        from emhrnn.corpus import Corpus

        report = Corpus.open(path).report
        return print_json({"kind": "corpus", **report.to_dict()}) if json else say(str(report))
    if path.is_dir() and (path / "config.json").exists():
        facts = _run_facts(path)
        return print_json({"kind": "run", **facts}) if json else say(_run_text(facts))
    facts = _file_facts(path)
    return print_json({"kind": "data", **facts}) if json else say(_lines(facts))


def _run_facts(path: Path) -> dict[str, Any]:
    import json as json_

    from emhrnn.errors import CheckpointError
    from emhrnn.training.run import METRICS, read_description

    description = read_description(path)
    metrics = path / METRICS
    try:
        description["metrics"] = json_.loads(metrics.read_text(encoding="utf-8")) if metrics.exists() else None
    except ValueError:
        raise CheckpointError(f"{metrics}: corrupt; copy the run again or train anew") from None
    return description


def _run_text(facts: dict[str, Any]) -> str:
    config, metrics, data = facts["config"], facts["metrics"], facts.get("data", {})
    lines: dict[str, Any] = {
        "model": f"{config['model']['name']}, {facts['parameters']:,} parameters",
        "classes": ", ".join(facts["classes"]),
        "E-step": config["em"]["estep"],
        "seed": config["training"]["seed"],
        "versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
    }
    for part, described in data.items():
        lines[part] = f"{described['documents']:,} documents, {described['words']:,} words ({described['source']})"
    if metrics is None:
        lines["state"] = "training has not finished"
    else:
        valid = metrics["valid"]
        lines["best epoch"] = f"{metrics['best_epoch'] + 1} of {metrics['epochs']}, {metrics['seconds']:.0f} s"
        lines["validation"] = f"accuracy {valid['accuracy']:.4f}, macro-F1 {valid['macro_f1']:.4f}"
        if valid["phrases"]:
            lines["phrases"] = f"{valid['phrases']['mean']:.2f} words on average, at most {valid['phrases']['longest']}"
    return _lines(lines)


def _file_facts(path: Path) -> dict[str, Any]:
    from emhrnn.corpus import Columns, Source

    source = Source(path, columns=Columns(labelled=False))
    first = next(iter(source), None)
    return {
        "format": source.formats[0],
        "bytes": source.meter.total,
        "columns": source.taken,
        "first_text": None if first is None else first.text[:200],
    }


def _lines(facts: dict[str, Any]) -> str:
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
