"""From the grammar's phrases to written text: capitals, `a` or `an`, and where each phrase ends."""

import re
from collections.abc import Sequence

BOUNDARY = " | "
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeioAEIO]|[uU](?!se|ni))")  # "an hour" and "a one" do not occur in the word lists


def write_text(sentences: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Sentences with `|` between phrases -> text and the character offset just after each phrase."""
    marked = BOUNDARY.join([sentence[0].upper() + sentence[1:] for sentence in sentences])
    phrases = _ARTICLE.sub(r"\1n ", marked).split(BOUNDARY)
    ends, end = [], -1
    for phrase in phrases:
        end += len(phrase) + 1  # one blank before each phrase but the first
        ends.append(end)
    return " ".join(phrases), tuple(ends)
