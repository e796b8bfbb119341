"""`emhrnn info`: what a run folder, a prepared corpus or a data file holds. Data files need no torch."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from emhrnn.cli.options import Encoding, Json, LabelColumn, TextColumn, argument, flag

if TYPE_CHECKING:
    from emhrnn.corpus import Columns, Source

SHOWN = 200  # characters of the first text


def info(
    path: Annotated[Path, argument("A run folder, a prepared corpus, or data.", "PATH")],
    card: Annotated[bool, flag("--card", "Print the model card of a run, as Markdown.")] = False,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Describe a run (model, data, scores), a prepared corpus (sizes), or data (columns, classes, likely problems).

    \b
    Examples:
      emhrnn info run
      emhrnn info run --card > card.md
      emhrnn info reviews.csv
      emhrnn info letters.csv --text-column body      # which columns would `train` use?

    Writes nothing.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.corpus import Columns, is_corpus
    from emhrnn.errors import DataError
    from emhrnn.training.pack import located

    facts: dict[str, Any]
    path = located(path)
    if not path.exists():
        raise DataError(f"{path} does not exist; give a run folder, a prepared corpus or data")
    is_data = not is_corpus(path) and not (path / "config.json").is_file()
    if not is_data and (text_column or label_column):
        raise DataError(f"{path} is no data with columns to choose; leave --text-column and --label-column out")
    if card and (not path.is_dir() or is_corpus(path)):
        raise DataError(f"{path} is data, and only a run has a model card; leave --card out, or give a run folder")
    if card:
        from emhrnn.training.card import card_of, markdown

        of_run = card_of(path)
        check_whole(path)
        facts, text = {"kind": "card", **of_run.to_dict()}, markdown(of_run).rstrip()
    elif is_corpus(path):
        from emhrnn.corpus import Corpus

        report = Corpus.open(path).report
        facts, text = {"kind": "corpus", **report.to_dict()}, str(report)
    elif not is_data:
        described = run_facts(path)
        check_whole(path)
        facts, text = {"kind": "run", **described}, run_text(path, described)
    else:
        described, text = described_data(path, Columns(text=text_column, label=label_column), encoding)
        facts = {"kind": "data", **described}
    if json:
        print_json(facts)
    else:
        say(text)


def run_facts(path: Path) -> dict[str, Any]:
    """config.json of a run, with metrics.json where training has finished.

    Raises:
        CheckpointError: the folder is not a run, or one of the two files is damaged.
    """
    from emhrnn.training.folder import MARK
    from emhrnn.training.run import WEIGHTS, read_description, read_metrics

    description = read_description(path)
    description["metrics"] = read_metrics(path)
    description["weights"] = (path / WEIGHTS).is_file()
    description["unfinished"] = (path / MARK).exists()
    return description


def check_whole(path: Path) -> None:
    """Check that a trained run still has its weights and words.

    Raises:
        CheckpointError: a file is missing or damaged.
    """
    from emhrnn.errors import CheckpointError
    from emhrnn.text import Vocabulary
    from emhrnn.training.arrays import load_arrays
    from emhrnn.training.run import METRICS, VOCABULARY, WEIGHTS

    if (path / METRICS).exists():
        load_arrays(path / WEIGHTS)
        if not (path / VOCABULARY).is_file():
            raise CheckpointError(f"{path}: {VOCABULARY} is missing; copy the run again or train again")
        Vocabulary.load(path / VOCABULARY)


def run_text(path: Path, facts: dict[str, Any]) -> str:
    """The facts of a run as aligned lines.

    Raises:
        CheckpointError: the description lacks something.
    """
    from emhrnn.corpus.store import in_columns
    from emhrnn.errors import CheckpointError

    try:
        return in_columns([*_training_lines(facts).items(), *_score_lines(facts).items()])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path}: its description is corrupt ({error}); copy the run again") from None


def _training_lines(facts: dict[str, Any]) -> dict[str, Any]:
    config = facts["config"]
    parameters = (facts["metrics"] or {}).get("parameters", facts["parameters"])
    size = f"{parameters:,} parameters" if parameters else "fitted at once"
    lines = {"model": f"{config['model']['name']}, {size}", "classes": ", ".join(facts["classes"])}
    for part, name in (("train", "training data"), ("valid", "validation data")):
        if described := facts.get("data", {}).get(part):
            lines[name] = f"{described['documents']:,} documents, {described['words']:,} words ({described['source']})"
    if config["model"]["name"] == "em-hrnn":
        lines["E-step"] = config["em"]["estep"]
    lines["seed"] = config["training"]["seed"]
    lines["versions"] = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return lines


def _score_lines(facts: dict[str, Any]) -> dict[str, Any]:
    metrics = facts["metrics"]
    if metrics is None and facts["unfinished"]:
        usable = "holds the best model so far" if facts["weights"] else "holds no model yet"
        return {"state": f"training has not finished; {usable}"}
    if metrics is None:
        return {"state": "saved without scores, as after partial_fit; `emhrnn evaluate` computes them"}
    valid = metrics["valid"]
    lines = {
        "best epoch": f"{metrics['best_epoch'] + 1} of {metrics['epochs']}, trained in {metrics['seconds']:.0f} s",
        "validation": f"accuracy {valid['accuracy']:.4f}, macro-F1 {valid['macro_f1']:.4f}",
    }
    if "valid" in metrics.get("stale", ()):
        lines["validation"] += ", measured before `emhrnn calibrate`"
    if valid["phrases"]:
        lines["phrases"] = f"{valid['phrases']['mean']:.2f} words on average, at most {valid['phrases']['longest']}"
    if calibration := metrics.get("calibration"):
        error = f"calibration error (ECE) {calibration['ece_before']:.4f} before, {calibration['ece_after']:.4f} after"
        lines["temperature"] = f"{calibration['temperature']:.3f}; {calibration['remark'] or error}"
        if source := calibration.get("source"):
            lines["temperature"] += f", on {calibration['documents']:,} documents of {source}"
        if shares := calibration.get("shares"):
            lines["shares"] = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return lines


def described_data(path: Path, columns: "Columns", encoding: str | None = None) -> tuple[dict[str, Any], str]:
    """Format, columns, first row and summary of data, as facts and as text. `trouble`: why it cannot be trained on."""
    from emhrnn.corpus.store import in_columns
    from emhrnn.corpus.summary import look_at
    from emhrnn.errors import DataError

    summary, trouble = None, None
    try:
        source, first = _first(path, columns, encoding)
    except DataError as error:
        columns, trouble = replace(columns, label=None, labelled=False), str(error)
        source, first = _first(path, columns, encoding)
    try:
        summary = look_at(path, columns=columns, encoding=encoding)
    except DataError as error:
        trouble = trouble or str(error)
    facts = {
        **(summary.to_dict() if summary else {}),
        "format": source.formats[0],
        "bytes": source.meter.total,
        "encoding": next(iter(source.encodings), None),
        "columns": source.taken,
        "first_label": None if first is None else first.label,
        "first_text": None if first is None else first.text[:SHOWN],
        "trouble": trouble,
    }
    columns_taken = ", ".join(f"{role} = {name}" for role, name in source.taken.items())
    lines = [("format", f"{source.formats[0]}, {source.meter.total:,} bytes")]
    lines += [("first label", str(facts["first_label"]))] if facts["first_label"] is not None else []
    lines += [("first text", " ".join(str(facts["first_text"]).split()))] if first is not None else []
    lines += summary.lines() if summary else [("columns", columns_taken)]
    return facts, in_columns(lines + ([("problem", trouble)] if trouble else []))


def _first(path: Path, columns: "Columns", encoding: str | None) -> "tuple[Source, Any]":
    from emhrnn.corpus import Source

    source = Source(path, columns=columns, encoding=encoding)
    return source, next(iter(source), None)
