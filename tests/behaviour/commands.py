"""Calls of the command line, and files to give to it."""

import csv
import io
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from emhrnn.cli import main
from emhrnn.training.config import settings_of

SMALL = {
    "training.epochs": 1, "em.warmup_epochs": 0, "data.min_count": 1, "model.embedding_size": 4, "model.word_size": 3,
    "model.phrase_size": 3, "model.sentence_size": 3, "model.attention_size": 3, "model.buckets": 50,
}  # fmt: skip
SMALL_EM = {name: value for name, value in SMALL.items() if name != "model.buckets"}
SMALL_EM["model.name"] = "em-hrnn"  # that has learned almost nothing
TINY = [part for name, value in SMALL_EM.items() for part in ("--set", f"{name}={value}")]


def tiny(model: str, *more: str) -> list[str]:
    """Options to train a small model by this name: those of `SMALL` that it has, and more settings."""
    own = [f"{name}={value}" for name, value in known(model, SMALL).items()]
    return ["--model", model, *(part for setting in (*own, *more) for part in ("--set", setting))]


def known(model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a model has."""
    return {name: value for name, value in settings.items() if name in settings_of(model)}


GOOD = "The soup was good. We liked the waiter, and the room was lovely."
BAD = "The soup was bad. We hated the waiter, but the room was cheap."


def rows(count: int) -> list[tuple[str, str]]:
    return [(f"{GOOD if i % 2 else BAD} Visit {i}.", "good" if i % 2 else "bad") for i in range(count)]


def write_reviews(path: Path, count: int) -> Path:
    return write_rows(path, rows(count))


def write_rows(path: Path, texts_and_labels: list[tuple[str, str]]) -> Path:
    if path.suffix == ".jsonl":
        lines = [json.dumps({"text": text, "label": label}) for text, label in texts_and_labels]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *texts_and_labels])
    return path


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """The one object on stdout, which must hold nothing else."""
        assert self.out.count("\n") == 1
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


class Cli:
    """`cli("train", data, "--out", run)` is `emhrnn train DATA --out RUN`, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: str | Path, stdin: bytes = b"") -> Result:
        self.monkeypatch.setattr(sys, "argv", ["emhrnn", *map(str, arguments)])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self.capsys.readouterr()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return Result(code, captured.out, captured.err)

    def ok(self, *arguments: str | Path, stdin: bytes = b"") -> Result:
        result = self(*arguments, stdin=stdin)
        assert result.code == 0, result.err
        return result

    def error(self, *arguments: str | Path, stdin: bytes = b"") -> str:
        """The one line on stderr of a command that cannot do what it is asked."""
        result = self(*arguments, stdin=stdin)
        assert result.code == 2, (result.out, result.err)
        assert result.out == ""
        assert result.err.startswith("emhrnn: ")
        assert result.err.count("\n") == 1
        assert "Traceback" not in result.err
        assert ";" in result.err, f"no word on what to do: {result.err}"
        return result.err

    def train_error(self, data: Path, *more: str | Path) -> str:
        """The error of training on the data, which must leave the place of the run free."""
        settings = tiny(str(more[more.index("--model") + 1])) if "--model" in more else TINY
        out = data.parent / "refused"
        message = self.error("train", data, "--out", out, "--quiet", *settings, *more)
        assert not out.exists()
        assert not list(data.parent.glob(".*.partial"))
        return message
