"""What is in a corpus and what happened on the way: data first, then one readable text."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Report:
    """Counts of a prepared corpus.

    `skipped` counts rows by reason, `skipped_first` shows the first place of each; `repaired` counts documents whose
    text was mended; `capped` counts documents that a limit shortened; `columns` says which column served as what.
    """

    documents: int
    sentences: int
    words: int
    longest_document: int
    longest_sentence: int
    vocabulary: int
    unknown_words: int
    classes: dict[str, int]
    multi_label: bool = False
    users: int = 0
    products: int = 0
    capped: int = 0
    limits: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_first: dict[str, str] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def unknown_rate(self) -> float:
        """Share of the words that the vocabulary does not hold."""
        return self.unknown_words / self.words if self.words else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "unknown_rate": self.unknown_rate}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Report":
        return cls(**{name: value for name, value in values.items() if name != "unknown_rate"})

    def __str__(self) -> str:
        """A few aligned lines for the terminal."""
        lines = [
            ("documents", f"{self.documents:,}"),
            ("sentences", f"{self.sentences:,} ({self.sentences / max(1, self.documents):.1f} per document)"),
            ("words", f"{self.words:,} ({self.words / max(1, self.documents):.1f} per document)"),
            ("longest", f"{self.longest_document:,} words; longest sentence {self.longest_sentence:,}"),
            ("vocabulary", f"{self.vocabulary:,} words; {self.unknown_rate:.2%} of the text is unknown"),
        ]
        if self.classes:
            kind = "classes, several per document" if self.multi_label else "classes"
            lines.append((kind, ", ".join(f"{name} ({count:,})" for name, count in self.classes.items())))
        if self.users or self.products:
            lines.append(("given by", f"{self.users:,} users on {self.products:,} products"))
        if self.columns:
            lines.append(("columns", ", ".join(f"{role} = {name}" for role, name in self.columns.items())))
        if self.limits:
            limits = ", ".join(f"{name} {value:,}" for name, value in self.limits.items())
            lines.append(("shortened", f"{self.capped:,} documents by the limits: {limits}"))
        lines += [
            ("skipped", f"{count:,} rows: {reason} (first: {self.skipped_first.get(reason, 'unknown')})")
            for reason, count in self.skipped.items()
        ]
        lines += [("repaired", f"{count:,} documents: {what} replaced") for what, count in self.repaired.items()]
        width = max(len(name) for name, _ in lines)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)
