"""Check the words that people read: banned turns of STYLE, and links between files of the repository.

python -m tools.prose        one line for each finding; exit code 1 if there is any

Texts are README.md, CONTRIBUTING.md, CHANGELOG.md, docs/ and the package with its docstrings, messages and pages.
Spelling is checked by codespell (`make lint`).
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "src/**/*.py", "src/**/*.html", "src/**/*.js")
LINKED = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "results/*.md")

# A turn as a regular expression, in which a blank is any white space, and what to write instead.
BANNED = {
    r"nobody knows?|nobody says": "say what is missing",
    r"(?:at|by) heart": "memorise",
    r"(?:is|are|was|were) (?:not )?told": "say who does what: the data marks, the user gives, the report shows",
    r"go(?:es|ing)? on with": "resume, continue",
    r"of our own(?= (?:reviews?|documents?|table)\b)": "generated",
    r"(?:the|its) letter of": "the exact settings of",
    r"do(?:es)? not tell": "is uninformative about",
    r"in sight of|with no \w+ in sight": "visible, without",
    r"are nothing to it|is nothing to it": "has no effect",
    r"begins? loud": "is initialised with larger weights",
    r"how sure it is": "confidence",
    r"look(?:s|ing|ed)? twice": "second pass",
    r"is (?:heard|deaf)|deaf to": "is weighted; ignores",
    r"a wish": "a request",
    r"that is no number\b|is no number\b": "NaN",
    r"(?:doing|asked) it twice": "idempotent",
    r"scripts? that (?:is|are) not kept|patch that is not kept|throw-away script": "remove figures without a record",
    r"has no say|have no say": "does not enter",
    r"somebody who|if somebody": "say what is computed",
    r"the luck of": "the variance of",
    r"anew": "again",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"goes on (?:from|learning)|go on from": "continue",
}
MARKDOWN_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HOSTED = re.compile(r"^https?://[^/]+/[^/]+/[^/]+/(?:blob|tree|raw)/[^/]+/(.+)$")  # a file of a hosted repository
MENTION = re.compile(r"\bdocs/[\w/-]+\.(?:md|ipynb|png)\b")


def files(patterns: tuple[str, ...]) -> Iterator[tuple[Path, str]]:
    """Path relative to the repository, and text, of every file that a pattern matches."""
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def banned_turns(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and advice for every banned turn, also where it crosses the end of a line."""
    for turn, advice in BANNED.items():
        gap = r"[\s#*]+"  # white space, or the start of the next line of a comment or list
        for match in re.finditer(rf"\b(?:{turn.replace(' ', gap)})", text, re.IGNORECASE):
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), advice


def broken_links(path: Path, text: str) -> Iterator[str]:
    """Links of a Markdown file to files that do not exist, relative ones and those of a hosted repository."""
    for target in MARKDOWN_LINK.findall(FENCE.sub("", text)):
        hosted = HOSTED.match(target)
        if hosted and not (ROOT / hosted[1]).exists():
            yield target
        if "://" not in target and not target.startswith("mailto:") and not (ROOT / path.parent / target).exists():
            generated = path.parts[0] == "docs" and target.startswith("reference/")  # by tools/site_pages.py
            if not generated:
                yield target


def findings() -> list[str]:
    """All that is wrong, as lines with file and place."""
    found = [
        f"{path}:{line}: {words!r}: {advice}"
        for path, text in files(TEXTS)
        for line, words, advice in banned_turns(text)
    ]
    found += [f"{path}: broken link {link}" for path, text in files(LINKED) for link in broken_links(path, text)]
    found += [
        f"{path}: {name} does not exist"
        for path, text in files(("src/**/*.py", "tests/**/*.py", "tools/*.py", "benchmarks/*.py", "Makefile"))
        for name in sorted(set(MENTION.findall(text)))
        if not (ROOT / name).exists()
    ]
    return found


if __name__ == "__main__":
    wrong = findings()
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    sys.exit(bool(wrong))
