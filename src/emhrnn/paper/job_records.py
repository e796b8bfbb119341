"""Jobs and what is written of them: NAME.json in the folder of all jobs, with the arguments, the state, and the result
once there is one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from emhrnn.errors import ConfigError
from emhrnn.files import write_json

NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=-,")


@dataclass(frozen=True)
class Job:
    """`name` is the name of a file, too. `arguments` hold what JSON can, and say what the job is. `places` are where
    its files happen to lie: other places do not make it another job, and its record does not name them."""

    name: str
    arguments: dict[str, Any]
    places: dict[str, str | None] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """What its function is called with."""
        return {**self.arguments, **self.places}


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a result, or an error in one line."""

    name: str
    result: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0


def job_name(text: str) -> str:
    """The text with every character that a file name should not hold turned into one that it may."""
    name = "".join(c if c in NAME_CHARACTERS else "-" for c in text).strip("-.")
    return name or "job"


def read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """What is written of a job; None when nothing is, or nothing that can be read."""
    try:
        record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "state" in record else None


def outcome_of(folder: Path, job: Job, *, failures: bool = False) -> Outcome | None:
    record = read_record(folder, job.name)
    if record is None or record["arguments"] != job.arguments:
        return None
    if record["state"] == "done":
        return Outcome(job.name, record["result"], None, record["seconds"])
    if record["state"] in ("failed", "died") and failures:
        return Outcome(job.name, None, record["error"], record["seconds"])
    return None


def so_far(folder: Path, jobs: Sequence[Job], *, failures: bool = False) -> list[Outcome | None]:
    """The outcomes that are there, for a report: nothing is run, and another process may be at it."""
    return [outcome_of(folder, replace(job, arguments=as_json(job)), failures=failures) for job in jobs]


def write_state(folder: Path, job: Job, state: Literal["begun", "died"], **more: Any) -> None:
    write_json(folder / f"{job.name}.json", {"name": job.name, "arguments": job.arguments, "state": state, **more})


def check_same(folder: Path, job: Job) -> None:
    record = read_record(folder, job.name)
    if record is None or record["state"] == "failed":
        return
    before, now = _flat(record["arguments"]), _flat(job.arguments)
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            state = "done" if record["state"] == "done" else "begun"
            raise ConfigError(
                f"the job {job.name} in {folder} was {state} with {key} = {before.get(key)!r}, not {now.get(key)!r}; "
                f"give another folder, or delete {folder / job.name}.json to do it again"
            )


def _flat(arguments: dict[str, Any]) -> dict[str, Any]:
    """Nested ones by names such as `settings.training.epochs`."""
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, dict) and value:
            flat |= {f"{name}.{key}": one for key, one in _flat(value).items()}
        else:
            flat[name] = value
    return flat


def check_names(jobs: Sequence[Job]) -> None:
    seen: set[str] = set()
    for name in (job.name for job in jobs):
        if not name or name[0] in ".-" or not NAME_CHARACTERS.issuperset(name):
            raise ConfigError(f"{name!r} cannot be the name of a job, because it is no plain file name; see job_name")
        if name.lower() in seen:  # some file systems do not tell them apart
            raise ConfigError(f"two jobs have the name {name!r}; give each its own")
        seen.add(name.lower())


def as_json(job: Job) -> dict[str, Any]:
    """As they will be read: tuples are lists."""
    try:
        return dict(json.loads(json.dumps(job.arguments, allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the arguments of the job {job.name!r} cannot be written as JSON: {error}") from None
