"""The check of words and links (tools/prose.py) finds what it should, and finds nothing in the repository."""

from pathlib import Path

import pytest
from tools.prose import banned_turns, broken_links, findings


def test_nothing_is_found_in_the_repository() -> None:
    assert findings() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("so that nobody knows how to resume", "nobody knows"),
        ("it learns the labels by\n    heart", "by heart"),
        ("# It goes on\n# with the run", "goes on # with"),
        ("A full disk is told with the file", "is told"),
    ],
)
def test_a_banned_turn_is_found_with_its_line(text: str, words: str) -> None:
    ((line, found, advice),) = banned_turns(f"First line.\n{text}")
    assert (line, found) == (2, words)
    assert advice


def test_plain_words_pass() -> None:
    assert list(banned_turns("The command resumes the run. It is not a number. The heart of the matter.")) == []


def test_links_to_missing_files_are_found() -> None:
    text = (
        "[a](docs/data.md) [b](docs/none.html#x) [c](https://host/o/r/blob/main/docs/none.html) [d](https://host/any)"
    )
    assert list(broken_links(Path("README.md"), text)) == [
        "docs/none.html",
        "https://host/o/r/blob/main/docs/none.html",
    ]
    assert list(broken_links(Path("README.md"), "```\n[a](none.md)\n```\n")) == []
    assert list(broken_links(Path("docs/em.md"), "[a](paper.md) [b](../results/none.md)")) == ["../results/none.md"]
