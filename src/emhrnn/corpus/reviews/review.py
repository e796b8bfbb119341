"""One generated review, and a file of them that `emhrnn paper prepare` reads like any other."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Review:
    """`label` is "1" to "5" stars. `phrase_ends` are character offsets into `text`, each just after the last character
    of a phrase (punctuation belongs to the phrase before it); every end of a sentence is one of them."""

    text: str
    label: str
    phrase_ends: tuple[int, ...]
    domain: str

    @property
    def phrases(self) -> list[str]:
        """The true phrases, without the blanks between them."""
        starts = (0, *self.phrase_ends[:-1])
        return [self.text[a:b].lstrip() for a, b in zip(starts, self.phrase_ends, strict=True)]


def write_reviews(path: Path, reviews: Iterable[Review]) -> None:
    """Write JSON lines of id, text, label, phrase_ends and domain; the id is the row, counted from 0."""
    with path.open("w", encoding="utf-8", newline="\n") as lines:
        for row, review in enumerate(reviews):
            lines.write(json.dumps({"id": str(row), **asdict(review)}) + "\n")
