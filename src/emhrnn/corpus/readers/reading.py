"""What every reader is given: one file, the columns asked for, and where to tell how far it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emhrnn.corpus.columns import Columns
from emhrnn.corpus.readers.streams import Meter
from emhrnn.corpus.record import Record, Where, clean_label, clean_name, clean_text, clean_weight
from emhrnn.errors import DataError


@dataclass(frozen=True, eq=False)
class Reading:
    """One file to read. The reader puts the columns that it took into `taken`, by role."""

    path: Path
    columns: Columns = field(default_factory=Columns)
    meter: Meter | None = None
    taken: dict[str, str] = field(default_factory=dict)
    lenient: bool = False  # a row that cannot be used is a record with a fault, not an error

    def resolve(self, present: list[str]) -> Columns:
        columns = self.columns.resolve(present, str(self.path))
        self.taken.update(columns.to_dict())
        return columns

    def where(self, row: int) -> Where:
        return Where(str(self.path), row)

    def record(self, row: int, values: Mapping[str, Any], sentences: tuple[str, ...] | None = None) -> Record:
        """A record of values by role, cleaned. A missing text is an empty one; skipping it is not the reader's task."""
        text, fault = values.get("text"), None
        if not isinstance(text, str):
            fault = "no text"
            if text is not None:
                kind = type(text).__name__
                fault = self.fault(
                    row, f": the text is of type {kind}, a string is needed", "name the text column"
                ).fault
            text = ""
        if isinstance(values.get("label"), dict):
            raise DataError(f"{self.where(row)}: the label is an object; give the column of a string, number or list")
        text, repairs = clean_text(text)
        return Record(
            text=text,
            label=clean_label(values.get("label")) if self.columns.labelled else None,
            where=self.where(row),
            id=clean_name(values.get("id")),
            user=clean_name(values.get("user")),
            product=clean_name(values.get("product")),
            split=clean_name(values.get("split")),
            sentences=sentences,
            repairs=repairs,
            weight=clean_weight(values["weight"], self.where(row)) if "weight" in values else None,
            fault=fault if self.lenient else None,
        )

    def fault(self, row: int, what: str, remedy: str) -> Record:
        """What becomes of a row that cannot be used: an error, or a record that says why. `what` follows the place."""
        if not self.lenient:
            raise DataError(f"{self.where(row)}{what}; {remedy}")
        return Record("", None, self.where(row), fault=what.lstrip(" :"))
