"""Every explanation method of some runs on the same documents: figures with intervals, the difference from the default
explanation, and cost, as data and as Markdown."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.explain.removal import LEVELS
from emhrnn.files import sha256
from emhrnn.paper.explanations.agreement import TOKEN_FIGURES, Bootstrap, Figure, Sums
from emhrnn.paper.explanations.methods import (
    ALONE,
    METHODS,
    ReadTexts,
    UnitScores,
    score,
)
from emhrnn.paper.reports import making, markdown_table, percent, told_command
from emhrnn.training.run import WEIGHTS, Run, read_description

SLOW = ("owen", "lime", "shap")  # hundreds of predictions a document: only by name, and only for the first run
USUAL = tuple(name for name in METHODS if name not in SLOW)  # what is compared unless methods are named
PART = "part"  # the level of rated parts
SUMS = ("word + phrase", "word + sentence", "phrase + sentence")  # the scores of two levels that are shown at once
NEARBY = "nearby word"  # explain/arrays.py
BETTER = "default is better by"  # a column
HOW_TO_READ = """In brackets: 95 % of bootstrap resamples of documents. *default is better by*: the difference of the
first figure on the same documents, the default explanation of the first run (bold) less this row. *Passes*: forward and
backward passes of the model per document, for all levels together. *Time*: CPU time in that of a plain prediction of
the same documents by the first run, one unit for all rows.
"""


@dataclass(frozen=True, eq=False)
class MethodRow:
    """One method of one run at one level: sums of all documents, and cost per document."""

    run: str
    method: str
    level: str
    sums: Sums
    forward: float
    backward: float
    seconds: float  # CPU time for all documents


Measure = Callable[[Sequence[ReadTexts], Sequence[UnitScores]], dict[str, Sums]]  # by level


def check_methods(methods: Sequence[str], documents: int | None) -> None:
    """Raises:
    ConfigError: a method is unknown, or there are too few documents for intervals.
    """
    unknown = [name for name in methods if name not in (*METHODS, ALONE)]
    if unknown:
        raise ConfigError(f"no explanation method {unknown[0]!r}; there are {', '.join((*METHODS, ALONE))}")
    if documents is not None and documents < 2:
        raise ConfigError(f"{documents} documents; intervals need at least 2")


def method_rows(
    run: str, texts: Sequence[ReadTexts], methods: Sequence[str], measure: Measure, seed: int
) -> list[MethodRow]:
    """The methods that the model allows, at every level that they score."""
    counts = [group.batch.n_documents for group in texts]
    rows = []
    for method in methods:
        generator = np.random.default_rng(seed)
        found = [score(method, group, generator) for group in texts]
        scores = [one for one in found if one is not None]
        if not scores:
            continue
        forward, backward = (
            float(np.average([getattr(one, kind) for one in scores], weights=counts))
            for kind in ("forward", "backward")
        )
        seconds = sum(one.seconds for one in scores)
        for level, sums in measure(texts, scores).items():
            rows.append(MethodRow(run, method, level, sums, forward, backward, seconds))
    return rows


def about_run(run: Run, folder: Path) -> dict[str, Any]:
    """Which run it is, and the command that trained it, if one did."""
    about = {"run": folder.name, "model": run.config.model.name, "weights": sha256(folder / WEIGHTS)[:12]}
    program, *arguments = shlex.split(read_description(folder).get("command", "")) or [""]
    return about | ({"trained": told_command(arguments)} if Path(program).name in ("emhrnn", "__main__.py") else {})


def as_section(
    rows: Sequence[MethodRow],
    figures: Mapping[str, Figure],
    about: Sequence[Mapping[str, Any]],
    *,
    plain: float,
    data: str,
    seed: int,
    by_level: bool = False,
) -> dict[str, Any]:
    """The rows as data, with how they were made. `plain`: seconds of a prediction by the first run. `by_level`: a row
    is compared with the default of its own level."""
    bootstrap = Bootstrap.of(len(rows[0].sums), seed)
    main, figure = next(iter(figures.items()))
    told = []
    for row in rows:
        default = min((one for one in rows if not by_level or one.level == row.level), key=_from_default(rows[0].run))
        less = None if row is default else asdict(bootstrap.mean(figure, default.sums, row.sums))
        told.append(
            {
                "run": row.run,
                "method": row.method,
                "level": row.level,
                "default": row is default,
                **{name: asdict(bootstrap.mean(one, row.sums)) for name, one in figures.items()},
                BETTER: less,
                "forward": row.forward,
                "backward": row.backward,
                "predictions": row.seconds / plain,
            }
        )
    return {
        **making(data=data, seed=seed, runs=list(about)),
        "compared by": main,
        "rows": told,
    }


def _from_default(run: str) -> Callable[[MethodRow], tuple[bool, int, int]]:
    """The first run's evidence, or else its effects by removal: what `emhrnn explain` has of nearby words, where people
    marked words, or else of phrases."""
    levels, methods = (NEARBY, "phrase", PART, *LEVELS, *SUMS), (*METHODS, ALONE)
    return lambda row: (row.run != run, methods.index(row.method), levels.index(row.level))


def section_markdown(name: str, section: Mapping[str, Any]) -> str:
    """The rows, with how they were made. Rows that repeat others are left out: random numbers of further runs, and
    phrases of models whose phrases are their sentences."""
    lines = [f"## {name}", ""]
    lines += [f"- {key}: {section[key]}" for key in ("command", "commit", "machine", "data", "seed")]
    for one in section["runs"]:
        facts = [f"{key} {percent(value)} %" for key, value in one.items() if isinstance(value, float)]
        trained = [f"`{one['trained']}`"] if "trained" in one else []
        lines.append(f"- {one['run']}: {', '.join([one['model'], 'weights ' + one['weights'], *facts, *trained])}")
    figures = _figures(section)
    shown = dict[tuple[Any, ...], Mapping[str, Any]]()
    for row in section["rows"]:
        if not _is_repeated(row, section):
            shown.setdefault((row["run"], row["method"], *(tuple(row[key].values()) for key in figures)), row)
    head = ["run", "method", "of", *figures, BETTER, "passes", "time"]
    table = markdown_table(head, [_line(row, figures) for row in shown.values()], left=3)
    return "\n".join(lines) + "\n\n" + table


def summary_markdown(name: str, section: Mapping[str, Any]) -> str:
    """Each run and method by the first figure, best first. Of tokens, the best of the levels, and what stands around
    each word; of pairs, in which long units have more of the edit, the level of the default explanation."""
    main, rows = section["compared by"], section["rows"]
    default = next(row for row in rows if row["default"])
    best = dict[tuple[str, str, bool], Mapping[str, Any]]()
    for row in sorted(rows, key=lambda row: -row[main]["value"]):
        of_tokens = main in TOKEN_FIGURES
        if (of_tokens or row["level"] == default["level"]) and not _is_repeated(row, section):
            best.setdefault((row["run"], row["method"], of_tokens and row["level"] == NEARBY), row)
    head = ["run", "method", "of", main, BETTER, "passes", "time"]
    table = markdown_table(head, [_line(row, [main]) for row in best.values()], left=3)
    return f"## {name}, in short\n\n{section['data'].split(';')[0]}\n\n{table}"


def _is_repeated(row: Mapping[str, Any], section: Mapping[str, Any]) -> bool:
    """Random numbers of further runs."""
    return bool(row["method"] == "random" and row["run"] != section["rows"][0]["run"])


def _figures(section: Mapping[str, Any]) -> list[str]:
    return [key for key, value in section["rows"][0].items() if isinstance(value, dict) and key != BETTER]


def _line(row: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    names = [row["run"], row["method"], row["level"].replace(" + ", "s + ") + "s"]
    if row["default"]:
        names = [f"**{name}**" for name in names]
    less = row[BETTER]
    signed = "" if less is None else "{value:+.3f} [{low:+.3f}, {high:+.3f}]".format(**less)
    time = "" if row["predictions"] is None else f"{row['predictions']:.1f}"  # older records have none of parts
    shown = ["{value:.3f} [{low:.3f}, {high:.3f}]".format(**row[name]) for name in figures]
    return [*names, *shown, signed, f"{row['forward']:.0f} + {row['backward']:.0f}", time]
