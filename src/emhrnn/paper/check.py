"""`emhrnn paper check`: do the figures that the README and the docs state stand in the records?

Three things are compared: table 2 with the runs it is made of, the report of the evidence model with the one that its
records give, and every figure of a page in per cent or points (`58.5 %`, `2.9 points`) with the results that its
paragraph names.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from emhrnn.errors import DataError
from emhrnn.paper.evidence import report_evidence

PAGES = ("README.md", "docs/*.md")
PRINTED = ("docs/paper.md",)  # states the numbers of papers, not ours
BLOCK = re.compile(r"\n\s*\n")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
RECORD = re.compile(r"results/([\w-]+\.(?:md|json))")
CLAIM = re.compile(r"(?<![\w.])(\d+\.\d+)(?= ?%| points)")
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?!\w)")
OTHER = re.compile(r"<!-- no record: .+? -->", re.DOTALL)  # says why the figures below it have none


@dataclass(frozen=True)
class Problem:
    """A figure or a table without a record that says the same."""

    file: str
    line: int
    told: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.told}"


def check_records(root: Path) -> list[Problem]:
    """All that differs between the pages, the tables and the records under `root`, a checkout.

    Raises:
        DataError: there are no results, so that nothing could be checked.
    """
    results = root / "results"
    if not (results / "table2.json").is_file():
        raise DataError(f"{results} holds no table2.json; give the folder of a checkout")
    problems = [*_table_problems(results), *_report_problems(results)]
    for page in sorted(page for pattern in PAGES for page in root.glob(pattern)):
        if str(page.relative_to(root)) not in PRINTED:
            problems += page_problems(page, root)
    return problems


def page_problems(page: Path, root: Path) -> list[Problem]:
    """Figures of one page that no record named beside them states. A record may be named in the paragraph or table
    itself, or before it under the same heading."""
    name = str(page.relative_to(root))
    text = page.read_text(encoding="utf-8")
    problems = []
    named: list[str] = []
    for line, block in _blocks(text):
        before, named = named, RECORD.findall(block)
        claims = CLAIM.findall(CODE.sub(" ", block))
        if claims and not OTHER.search(block):
            files = [file for record in {*before, *named} if (file := root / "results" / record).is_file()]
            stated = _stated(" ".join(file.read_text(encoding="utf-8") for file in files))
            told = _told(files, root)
            problems += [Problem(name, line, f"{claim} stands in {told}") for claim in claims if claim not in stated]
        if not block.startswith("#"):
            named = named or before
    return problems


def _stated(text: str) -> set[str]:
    """The numbers of a record, and shares in per cent with one digit, too: 0.756 states 75.6."""
    numbers = set(NUMBER.findall(text))
    shares = (number for number in numbers if number.startswith("0.") and len(number) > 3)
    return numbers | {f"{100 * float(number):.1f}" for number in shares}


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, with the number of their first line. A comment, and a paragraph that ends in a colon, belong to what
    follows."""
    start = 0
    for end in [*(found.end() for found in BLOCK.finditer(text)), len(text)]:
        if text[start:end].rstrip().endswith((":", "-->")) and end < len(text):
            continue
        yield text.count("\n", 0, start) + 1, text[start:end]
        start = end


def _told(files: list[Path], root: Path) -> str:
    if not files:
        return "no record: name the file of results/ in this paragraph, or say why there is none in <!-- no record: -->"
    return "none of " + ", ".join(str(file.relative_to(root)) for file in sorted(files))


def _table_problems(results: Path) -> Iterator[Problem]:
    """Accuracies of table2.json that its runs do not give."""
    runs: dict[tuple[str, str], list[float]] = {}
    for file in sorted((results / "table2" / "runs").glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record["state"] == "done":
            place = (file.name.partition("--")[0], record["arguments"]["row"])
            runs.setdefault(place, []).append(record["result"]["accuracy"])
    for row in json.loads((results / "table2.json").read_text(encoding="utf-8"))["rows"]:
        found = runs.get((row["data"], row["model"]), [])
        if sorted(found) != sorted(row["accuracies"]):
            told = f"{row['model']} on {row['data']} has accuracies {row['accuracies']}, its runs {found}"
            yield Problem("results/table2.json", 1, told)


def _report_problems(results: Path) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory() as folder:
        report_evidence(results, Path(folder))
        for name in ("evidence.md", "evidence.json"):
            if (Path(folder) / name).read_bytes() != (results / name).read_bytes():
                yield Problem(f"results/{name}", 1, "is not what its records give; run emhrnn paper evidence --report")
