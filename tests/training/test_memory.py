"""Training takes memory for a batch, not for the corpus."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from emhrnn.corpus import prepare
from tests.training.memory import ROOM

SENTENCE = "a b c d e f g h i j k l m n o p q r s t u v w x y. "


def write(path: Path, documents: int, sentences: int) -> Path:
    lines = (f'{{"text": "{SENTENCE * sentences}", "label": "{i % 2}"}}\n' for i in range(documents))
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="no /proc, and another meaning of the limit")
def test_a_corpus_that_does_not_fit(tmp_path: Path) -> None:
    for name, documents in (("small", 100), ("large", 17_000)):
        source = write(tmp_path / f"{name}.jsonl", documents, 20)
        prepare(source, tmp_path / name, progress=False)
        source.unlink()
    command = [sys.executable, "-m", "tests.training.memory", tmp_path / "small", tmp_path / "large"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert 4 * told["words"] > ROOM  # its ids alone are more than what was allowed
    assert told["grown"] <= ROOM
    assert told["all at once"] == "does not fit"
