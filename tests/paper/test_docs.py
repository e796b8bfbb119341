"""docs/paper.md: every section and erratum that code and tests refer to is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_references_to_the_paper_page_can_be_found() -> None:
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^#+ ([\d.]+?)\.? ", page, re.MULTILINE)) | set(
        re.findall(r"^\| (A\d+) \|", page, re.MULTILINE)
    )
    files = [file for folder in ("src", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file != Path(__file__)}
    named = {
        (name, file.name) for file, text in texts.items() for name in re.findall(r"docs/paper\.md (A?[\d.]*\d)", text)
    }
    assert len(named) >= 25
    assert {pair for pair in named if pair[0] not in known} == set()
    assert not [file.name for file, text in texts.items() if re.search(r"\bSPEC\b", text)]
