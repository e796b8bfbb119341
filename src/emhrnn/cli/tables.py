"""Scores as tables for the terminal."""

from emhrnn.cli.printing import percent
from emhrnn.evaluation.scores import Scores
from emhrnn.evaluation.significance import p_value
from emhrnn.products.cutting import Cuts


def score_tables(scores: Scores, *, confusion: bool) -> str:
    parts = [
        f"documents  {scores.documents:,}",
        f"accuracy   {percent(scores.accuracy)}",
        f"macro-F1   {percent(scores.macro_f1)}",
        f"loss       {scores.loss:.4f} nats per document",
        f"ECE        {percent(scores.ece)}, mean distance of confidence from the share that is right",
    ]
    if scores.phrases is not None:
        phrases = scores.phrases
        parts.append(f"phrases    {phrases.mean:.2f} words on average, {phrases.shortest} to {phrases.longest}")
    rows = [["class", "documents", "precision", "recall", "F1"]]
    rows += [
        [c.name, f"{c.documents:,}", percent(c.precision), percent(c.recall), percent(c.f1)] for c in scores.classes
    ]
    parts += ["", aligned(rows)]
    if confusion and scores.confusion is not None and len(scores.classes) <= 20:
        names = [c.name for c in scores.classes]
        counts = [[name, *map(str, row)] for name, row in zip(names, scores.confusion, strict=True)]
        parts += ["", "rows: true class, columns: predicted class", aligned([["", *names], *counts])]
    return "\n".join(parts)


def cut_tables(cuts: Cuts) -> str:
    rows = [["phrases", "accuracy", "vs learned", "p", "other labels", "words per phrase"]]
    rows += [
        [
            cut.name,
            percent(cut.accuracy),
            "-" if cut.against is None else f"{100 * cut.against.difference:+.1f}",
            "-" if cut.against is None else p_value(cut.against.p),
            percent(cut.differs),
            f"{cut.words_per_phrase:.1f}",
        ]
        for cut in cuts.cuts
    ]
    return (
        f"{cuts.documents:,} documents, the same network, its phrases cut otherwise:\n\n{aligned(rows)}\n\n"
        f"Right however it is cut: {percent(cuts.always)}; by some of these cuts: {percent(cuts.in_reach)}\n"
        f"To say where the phrases of a document end takes {cuts.boundary_bits:.0f} bits; its label tells "
        f"{cuts.label_bits:.2g} of them"
    )


def aligned(rows: list[list[str]], numbers: set[int] | None = None) -> str:
    """Columns of words to the left, `numbers` to the right; by default all but the first are numbers."""
    columns = range(len(rows[0]))
    right = set(columns) - {0} if numbers is None else numbers
    widths = [max(len(row[i]) for row in rows) for i in columns]
    cells = [[row[i].rjust(widths[i]) if i in right else row[i].ljust(widths[i]) for i in columns] for row in rows]
    return "\n".join("  ".join(line).rstrip() for line in cells)
