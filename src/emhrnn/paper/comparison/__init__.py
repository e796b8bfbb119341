"""Rows of systems on sets of data, under one protocol, with error bars.

    compare([DataSet("yelp", Path("yelp.jsonl.gz"))], parse_rows(["tfidf-lr", "em-hrnn"]), Path("out"), ...)

    data.py     a set: which documents are trained on, validated and tested on, prepared once for all rows
    rows.py     what is compared, a system and its own settings; the job of one row, one set, one seed
    table.py    the results, with significance, as data and as Markdown

out/data/SET/           train, valid and test as corpora; SET.json tells what is in them
out/runs/NAME.json      one run: its settings, scores and times; NAME/ holds the model and the predictions
                        the two kinds of JSON files are all that a table needs, and name no place of this machine
out/table.md, table.json
out/command.txt         the command that makes all of it
"""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from emhrnn.corpus import Columns
from emhrnn.errors import ConfigError, DataError
from emhrnn.files import sha256, write_json, write_text
from emhrnn.models.row import VECTORS
from emhrnn.models.table import MODELS
from emhrnn.paper.comparison.data import DataSet, data_job, has_corpora, name_of, pooled, prepare_data
from emhrnn.paper.comparison.rows import SystemRow, train_row
from emhrnn.paper.comparison.table import ComparisonTable, Missing, Runs, render_markdown, table_rows
from emhrnn.paper.jobs import HowToRun, JobSpec, Outcome, job_name, run_jobs
from emhrnn.paper.reports import machine, told_command
from emhrnn.text.language import AUTO
from emhrnn.training.config import Config, check_shared, make_config, with_settings
from emhrnn.training.data import suited
from emhrnn.training.run import is_run
from emhrnn.version import __version__

COMMAND = "command.txt"


@dataclass(frozen=True)
class Protocol:
    """What is the same for all rows."""

    seeds: int = 3
    preset: str = "default"
    config: Path | None = None
    assignments: tuple[str, ...] = ()
    vectors: Path | None = None

    def settings(self, row: SystemRow, seed: int, data: DataSet | None = None) -> Config:
        """`training.seed` is the first seed; later assignments win: those of the set, of the protocol, of the row. What
        is given to all rows counts for those that have such a setting."""
        own = [f"model.name={row.model}", *row.first]
        shared = [*(data.settings if data else ()), *self.assignments]
        config = make_config(self.preset, self.config, own, shared=shared)
        return config.model_copy(
            update={"training": config.training.model_copy(update={"seed": config.training.seed + seed})}
        )


def data_sets(
    data: Sequence[str], tests: Sequence[str], *, format: str | None, columns: Columns, folds: int | None = None,
    limit: str | None = None,
) -> list[DataSet]:  # fmt: skip
    """From what stands on the command line. Test data without a name belongs to the only set.

    Raises:
        ConfigError: it is not clear to which set test data belong, or `folds` or `limit` cannot be used.
    """
    most = None if limit is None else _limit_of(limit)
    if most is not None and folds is not None:
        raise ConfigError("--limit is about the three parts of a split, and --folds pools them; leave out one of them")
    if folds is not None and folds < 2:
        raise ConfigError(f"--folds {folds}: at least 2 are needed")
    if folds is not None and tests:
        raise ConfigError("--folds tests every document of DATA once, so --test has no use; leave out one of them")
    paths = {name or name_of(path): path for name, path in map(named, data)}
    if len(paths) < len(data):
        raise ConfigError("two sets have the same name; name them apart: NAME=PATH")
    test_of: dict[str, Path] = {}
    for name, path in map(named, tests):
        if name is None and len(paths) > 1:
            raise ConfigError(
                f"it is not clear whose test data {path} is; write NAME={path} with one of {', '.join(paths)}"
            )
        if name is not None and name not in paths:
            raise ConfigError(f"test data is given for {name!r}, which is none of the sets {', '.join(paths)}")
        test_of[name or next(iter(paths))] = path
    return [
        DataSet(name, path, test=test_of.get(name), format=format, columns=columns, folds=folds, limit=most)
        for name, path in paths.items()
    ]


def _limit_of(text: str) -> tuple[int, int, int]:
    """TRAIN,VALID,TEST."""
    try:
        train, valid, test = (int(part) for part in text.split(","))
    except ValueError:
        train = valid = test = 0
    if min(train, valid, test) < 1:
        raise ConfigError(f"cannot read --limit {text!r}; write most rows of each part: TRAIN,VALID,TEST")
    return train, valid, test


def named(text: str) -> tuple[str | None, Path]:
    """`name=path`, or a path alone. What is a path as it stands is one, whatever it contains."""
    name, equals, path = text.partition("=")
    if equals and name and not Path(text).exists():
        return job_name(name), Path(path)
    return None, Path(text)


def compare(
    sets: Sequence[DataSet],
    rows: Sequence[SystemRow],
    out: Path,
    *,
    protocol: Protocol,
    how: HowToRun,
    reference: str | None = None,
) -> ComparisonTable:
    """Train and test all rows on all sets, and write the table. What is done already is not done again; for a report
    nothing else is done either.

    Raises:
        EmhrnnError: the data, a setting or a row cannot be used. A run that fails is listed in the table instead, and
            named by its `failed`.
    """
    _check(rows, protocol, reference)
    if out.is_file() or is_run(out):
        what = "a run" if out.is_dir() else "a file"
        raise DataError(f"{out} is {what}, a folder for the table and its runs is needed; give another with --out")
    for one in [] if how.report else [part for data in sets for part in data.split_sets()]:
        if not has_corpora(out / "data" / one.name):  # kept without its corpora, which come out the same again
            (out / "data" / f"{one.name}.json").unlink(missing_ok=True)
    found = _prepare(sets, rows, out, protocol, how)  # by fold, where there are folds
    jobs, missing = _jobs(sets, rows, found, protocol)
    if reference is None:  # the first row that some set can train
        reference = next((row.name for row in rows if row.name in {key.row for key in jobs}), rows[0].name)
    first_seed = protocol.settings(rows[0], 0).training.seed
    outcomes = run_jobs(train_row, list(jobs.values()), out / "runs", how)
    done = {key: outcome for key, outcome in zip(jobs, outcomes, strict=True) if outcome.ended}
    if how.report and not done:
        raise DataError(f"{out / 'runs'} holds no finished run of these rows and settings; leave out --report")
    missing += _missing([key for key in jobs if key not in done], "not done: seed {}", first_seed)
    for key, outcome in done.items():
        if outcome.error is not None:
            missing += _missing([key], f"seed {{}} failed: {outcome.error}", first_seed)
    table = ComparisonTable(
        sets={
            data.name: {**pooled([found[one.name] for one in data.split_sets()]), "settings": list(data.settings)}
            for data in sets
        },
        rows=tuple(row for data in sets for row in table_rows(_finished(data, rows, done, first_seed), reference)),
        missing=tuple(missing),
        reference=reference,
        seeds=tuple(range(first_seed, first_seed + protocol.seeds)),
        settings={
            "preset": protocol.preset,
            "config": None if protocol.config is None else protocol.config.name,
            "set": list(_told(protocol.assignments)),
            "vectors": None if protocol.vectors is None else protocol.vectors.name,
        },
        made_by=_made_by(done),
        failed=() if how.report else tuple(outcome.name for outcome in done.values() if outcome.error is not None),
        once=tuple(row.name for row in rows if not protocol.settings(row, 0).model.draws),
    )
    write_text(out / COMMAND, table.made_by["command"] + "\n")
    write_json(out / "table.json", table.to_dict())
    write_text(out / "table.md", render_markdown(table))
    return table


class Key(NamedTuple):
    """Which run: the set, its fold (0 without folds), the row and the seed, counted from 0."""

    data: str
    row: str
    seed: int
    fold: int


def _missing(keys: Sequence[Key], why: str, first_seed: int) -> list[Missing]:
    """What is not there, one for each row of a set; `why` has a place for the seeds and folds."""
    runs: dict[tuple[str, str], dict[int, list[int]]] = {}
    for key in keys:
        runs.setdefault((key.data, key.row), {}).setdefault(first_seed + key.seed, []).append(key.fold)
    return [
        Missing(*row, why.replace("{}", ", ".join(_seed_and_folds(*lacking) for lacking in seeds.items()), 1))
        for row, seeds in runs.items()
    ]


def _seed_and_folds(seed: int, folds: Sequence[int]) -> str:
    numbers = [str(fold) for fold in folds if fold]
    return f"{seed} (fold {', '.join(numbers)})" if numbers else str(seed)


def _check(rows: Sequence[SystemRow], protocol: Protocol, reference: str | None) -> None:
    if protocol.seeds < 1:
        raise ConfigError(f"seeds = {protocol.seeds}; at least one is needed")
    if reference is not None and reference not in [row.name for row in rows]:
        names = ", ".join(row.name for row in rows)
        raise ConfigError(f"the reference {reference!r} is not among the rows; give one of {names}")
    if protocol.vectors is not None and not protocol.vectors.is_file():
        raise DataError(f"{protocol.vectors} does not exist; give a file of word vectors")
    check_shared([row.model for row in rows], protocol.config, protocol.assignments)
    for row in rows:
        protocol.settings(row, 0).model.check_files()
        for name, _, value in (one.partition("=") for one in row.tried):
            with_settings(protocol.settings(row, 0), {name: value})


def _prepare(
    sets: Sequence[DataSet],
    rows: Sequence[SystemRow],
    out: Path,
    protocol: Protocol,
    how: HowToRun,
) -> dict[str, dict[str, Any]]:
    config, folder = protocol.settings(rows[0], 0), out / "data"
    jobs = [data_job(one, config) for data in sets for one in data.split_sets()]
    found: dict[str, dict[str, Any]] = {}
    for outcome in run_jobs(prepare_data, jobs, folder, how):
        if not outcome.ended:
            raise DataError(f"{folder} holds nothing of {outcome.name} with these settings; leave out --report")
        if outcome.result is None:
            raise DataError(f"{outcome.name}: {outcome.error}")
        found[outcome.name] = outcome.result
    return found


def _jobs(
    sets: Sequence[DataSet], rows: Sequence[SystemRow], found: dict[str, dict[str, Any]], protocol: Protocol
) -> tuple[dict[Key, JobSpec], list[Missing]]:
    """One seed of all rows before the next, so that there is something to look at early."""
    vectors = None if protocol.vectors is None else str(protocol.vectors.resolve())
    digest = None if protocol.vectors is None else sha256(protocol.vectors)
    jobs: dict[Key, JobSpec] = {}
    missing: list[Missing] = []
    for seed, data, row in product(range(protocol.seeds), sets, rows):
        config = protocol.settings(row, seed, data)
        if seed > 0 and not config.model.draws:
            continue
        parts = data.split_sets()
        why = next(filter(None, (_lacks(row, config, found[part.name], vectors) for part in parts)), None)
        if why is not None:
            missing += [Missing(data.name, row.name, why)] if seed == 0 else []
            continue
        for part in parts:
            settings, places = _settings_and_places(_suited(config, found[part.name], vectors))
            arguments = {
                "data": part.name,
                "data_sha256": {name: one["sha256"] for name, one in found[part.name]["parts"].items()},
                "row": row.name,
                **settings,
                **({"tried": list(row.tried)} if row.tried else {}),  # older records have no such key
                "vectors_sha256": digest,
            }
            name = job_name(f"{part.name}--{row.name}--{config.training.seed}")
            key = Key(data.name, row.name, seed, 0 if part.fold is None else part.fold.number)
            jobs[key] = JobSpec(name, arguments, {"vectors": vectors, **places})
    return jobs, missing


def _suited(config: Config, found: dict[str, Any], vectors: str | None) -> Config:
    """As `emhrnn train` would have the settings: with the defaults that suit the data."""
    return suited(
        config,
        documents=found["parts"]["train"]["documents"],
        classes=len(found["classes"]),
        language=found.get("language", AUTO),  # older records have no such key
        vectors=vectors is not None,
    )


def _settings_and_places(config: Config) -> tuple[dict[str, Any], dict[str, str]]:
    """Those that the row reads: others may change, or come new, and its runs stay good. Of pretrained weights, a record
    holds the name of their folder and what is in it."""
    settings = config.read_settings()
    folder = _folder_of(settings["model"].get("pretrained", ""))
    if folder is None:
        return {"settings": settings}, {}
    named = {**settings, "model": {**settings["model"], "pretrained": folder.name}}
    weights = sha256(*sorted(folder.glob("*.safetensors")))
    return {"settings": named, "pretrained_sha256": weights}, {"pretrained": str(folder)}


def _folder_of(pretrained: str) -> Path | None:
    """Where the weights lie; None: they are named as those of a model in the cache, or not at all."""
    return Path(pretrained).resolve() if pretrained and Path(pretrained).is_dir() else None


def _lacks(row: SystemRow, config: Config, found: dict[str, Any], vectors: str | None) -> str | None:
    needs = MODELS[row.model].needs
    if config.reads_ids and not (found["users"] and found["products"]):
        return "skipped: it needs user and product ids, and the data has none"
    if VECTORS in needs and vectors is None:
        return "skipped: it needs pretrained word vectors (--vectors)"
    return None


def _finished(data: DataSet, rows: Sequence[SystemRow], done: dict[Key, Outcome], first_seed: int) -> list[Runs]:
    """The seeds of each row that are done on all folds."""
    runs = []
    for row in rows:
        by_seed: dict[int, list[dict[str, Any]]] = {}
        for key, outcome in done.items():
            if (key.data, key.row) == (data.name, row.name) and outcome.result is not None:
                by_seed.setdefault(first_seed + key.seed, []).append(outcome.result)
        whole = {seed: results for seed, results in by_seed.items() if len(results) == (data.folds or 1)}
        if whole:
            runs.append(Runs.of(data.name, row.name, whole, _told(row.settings)))
    return runs


def _told(assignments: Sequence[str]) -> tuple[str, ...]:
    """Pretrained weights by the name of their folder, wherever it lies."""
    told = []
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        folder = _folder_of(value.strip(" \"'")) if name.strip() == "model.pretrained" else None
        told.append(assignment if folder is None else f"{name}={folder.name}")
    return tuple(told)


def _made_by(done: dict[Key, Outcome]) -> dict[str, Any]:
    """Runs may be older than the table: it names the commits and threads of all of them, and the command that makes
    them as well as the table."""
    import sklearn
    import torch

    times = [outcome.result["times"] for outcome in done.values() if outcome.result is not None]
    threads = " or ".join(map(str, sorted({one["threads"] for one in times})))
    return {
        "command": told_command(),
        "commit": ", ".join(sorted({one.get("commit", "unknown") for one in times})),
        "versions": {
            "emhrnn": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": machine() + f"; threads of a run: {threads}" * bool(times),
    }
