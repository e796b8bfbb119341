"""The commands of the README and of the guides run as they are printed there.

A block is run when the line before its fence is `<!-- test: console -->` or `<!-- test: python -->`. All blocks run in
order, in one folder that holds reviews.csv, test.csv, new.jsonl and letter.txt: a few generated reviews, so that the
commands can stay as they are and still be quick. Python and lines of one command of ours run in this process, which
has torch already; the other lines run in a shell.
"""

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from emhrnn.cli import main
from emhrnn.corpus.reviews import Review, generate_reviews
from emhrnn.training.validation import LEAST
from tests.behaviour.commands import Cli
from tests.explain.browser import chromium, screenshots

README = Path(__file__).parents[1] / "README.md"
REPOSITORY = "https://github.com/emhrnn/emhrnn"
BLOCK = re.compile(r"^<!-- test: (console|python) -->\n+```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def marked_blocks(text: str) -> list[tuple[str, str]]:
    return [(kind, content) for kind, content in BLOCK.findall(text)]


def commands(block: str) -> str:
    """Of a console block: the lines after `$ `, without the output that is shown below them; else all of it."""
    lines = block.splitlines()
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    return "\n".join(prompted or lines)


def write_csv(path: Path, reviews: list[Review]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *((review.text, review.label) for review in reviews)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder, reviews = tmp_path, list(generate_reviews(100, seed=0))
    write_csv(folder / "reviews.csv", reviews[: LEAST - 1])  # so few that no folds are trained, which takes longer
    write_csv(folder / "test.csv", reviews[70:90])
    (folder / "new.jsonl").write_text("".join(json.dumps({"text": review.text}) + "\n" for review in reviews[90:]))
    (folder / "letter.txt").write_text(reviews[0].text)
    return folder


def test_the_readme_has_blocks_of_both_kinds() -> None:
    assert {kind for kind, _ in marked_blocks(README.read_text(encoding="utf-8"))} == {"console", "python"}


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    "pages",
    [
        ("README.md",),
        (
            "docs/own_csv.md",
            "docs/choosing.md",
            "docs/gpu.md",
            "docs/languages.md",
            "docs/viewer.md",
            "docs/classes.md",
            "docs/updating.md",
            "docs/abstain.md",
            "docs/wrong.md",
            "docs/move.md",
            "docs/audit.md",
            "docs/drift.md",
            "docs/log.md",
        ),
    ],
)
def test_the_marked_blocks_run(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, pages: tuple[str, ...]) -> None:
    monkeypatch.chdir(folder)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for page in pages:
        blocks = marked_blocks((README.parent / page).read_text(encoding="utf-8"))
        assert blocks, f"{page} has no block to test"
        for kind, block in blocks:
            if kind == "python":
                exec(compile(block, page, "exec"), {"__name__": "__main__"})
                continue
            for plain, lines in groupby(commands(block).splitlines(), is_plain):
                for line in lines if plain else ():
                    cli.ok(*shlex.split(line, comments=True)[1:])
                if not plain:
                    script = ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]
                    done = subprocess.run(script, env={**os.environ, "PATH": path}, capture_output=True)
                    assert done.returncode == 0, f"{page}: {script[-1]}\n{done.stderr.decode()}"


def is_plain(line: str) -> bool:
    """Whether a line is one command of ours and asks nothing of a shell."""
    return line.startswith("emhrnn ") and not re.search(r"[;|&<>$*]", line.partition(" # ")[0])


def outputs(block: str) -> list[tuple[str, str]]:
    """Of a console block: each command with the output that is shown below it, if any is."""
    parts = [part.partition("\n") for part in block.removeprefix("$ ").split("\n$ ")]
    return [(command, shown.strip("\n")) for command, _, shown in parts if shown.strip()]


def test_the_output_that_the_readme_shows() -> None:
    """Of the model in the package, in the terminal and in Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    usual = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PATH": path}
    blocks = marked_blocks(README.read_text(encoding="utf-8"))
    shown = [pair for kind, block in blocks if kind == "console" for pair in outputs(block)]
    assert len(shown) == 1
    for command, expected in shown:
        done = subprocess.run(["bash", "-c", command], env=usual, capture_output=True, check=True)
        lines = expected.removesuffix("\n...").splitlines()
        assert [line.rstrip() for line in done.stdout.decode().splitlines()][: len(lines)] == lines
    (python,) = (block for kind, block in blocks if kind == "python")
    code = python[: python.index("classifier = ")]
    done = subprocess.run([sys.executable, "-c", code], env=usual, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == re.findall(r"^print.*?  # (.*)$", code, re.MULTILINE)


def test_the_figures_of_the_readme_stand_in_the_results() -> None:
    """After `results/evidence.md` is written again, the table of the README has to follow."""
    text = README.read_text(encoding="utf-8")
    table = re.search(r"<!-- figures: (\S+) -->\n(.*?)\n\n", text, re.DOTALL)
    assert table is not None
    record = (README.parent / table[1]).read_text(encoding="utf-8").split("\n### ")
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2].splitlines()]
    models = [name.removesuffix(" (default)") for name in header[1:]]
    assert len(rows) >= 4
    for name, *figures in rows:
        data = re.search("`(.*)`", name)
        assert data is not None
        section = next(part for part in record if part.startswith(data[1]))
        for model, figure in zip(models, figures, strict=True):
            accuracy = re.search(rf"^\| {re.escape(model)} \| \**([\d.]+)", section, re.MULTILINE)
            assert accuracy is not None, f"{table[1]} has no row {model} under {data[1]}"
            assert figure.strip("*") == accuracy[1], f"README: {model} on {data[1]}: {table[1]} says {accuracy[1]}"


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    targets = re.findall(r"\]\(([^)#]+)", text)
    assert len(targets) > 20
    for target in targets:  # absolute, for package indexes
        hosted = re.match(rf"{re.escape(REPOSITORY)}/(?:blob|raw)/main/(.+)", target)
        assert hosted, target
        assert (README.parent / hosted[1]).exists(), target


def test_the_picture_shows_the_page_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fonts differ between machines, so that the pictures are compared in coarse squares."""
    images = pytest.importorskip("PIL.Image", reason="needs Pillow, which matplotlib brings")
    text = "The staff was friendly and the room was clean. Breakfast was a bit cold, but I would stay here again."
    monkeypatch.setattr(sys, "argv", ["emhrnn", "explain", "demo", text, "--html", str(tmp_path / "why.html")])
    with pytest.raises(SystemExit, match="0"):
        main()
    taken = screenshots() / "readme.png"
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 900, "height": 720})
        page.goto((tmp_path / "why.html").as_uri())
        page.screenshot(path=taken, full_page=True)
    now, shown = (images.open(path).convert("L") for path in (taken, README.parent / "docs" / "explanation.png"))
    coarse = [np.asarray(image.resize((45, 30), images.Resampling.BOX), dtype=float) for image in (now, shown)]
    advice = f"copy {taken} to docs/explanation.png, and look at it"
    assert abs(now.height - shown.height) < 60, advice
    assert np.abs(coarse[0] - coarse[1]).mean() < 4, advice  # of 255; another layout has 10 or more


def test_commands_are_separated_from_their_output() -> None:
    assert commands("$ a --b\noutput\n$ c\n") == "a --b\nc"
    assert outputs("$ a --b\noutput\n$ c\n") == [("a --b", "output")]
    assert commands("a   # why\nb\n") == "a   # why\nb"
    assert [is_plain(line) for line in ("emhrnn a 'b c'   # d; e", "emhrnn a &", "ls")] == [True, False, False]
    text = "<!-- test: console -->\n```\na\n```\n\n```\nnot this\n```\n<!-- test: python -->\n\n```python\nb\n```\n"
    assert marked_blocks(text) == [("console", "a\n"), ("python", "b\n")]
