"""What a training begins with, in a line: a guessed column that is the wrong one shows here, and not after an hour."""

from emhrnn.corpus import Corpus

SHOWN = 8  # classes; of the others, how many there are


def material_line(name: str, train: Corpus, valid: Corpus) -> str:
    taken = ", ".join(f"{role} from {column!r}" for role, column in train.report.columns.items())
    classes = ", ".join(map(repr, train.classes[:SHOWN])) + ", ..." * (len(train.classes) > SHOWN)
    parts = [
        f"{len(train):,} documents of {train.lengths.mean():.0f} words to learn from, {len(valid):,} to validate",
        taken,
        f"{len(train.classes)} classes: {classes}",
    ]
    return f"{name}: {'; '.join(filter(None, parts))}"
