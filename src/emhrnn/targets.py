"""Labels as scikit-learn users give them, and as a run names them.

    ["good", "bad"]  [1, 5]  [True, False]     one label per text, of any one type
    [["plot", "cast"], [], ["cast"]]           several per text, as lists
    [[1, 0, 1], [0, 0, 0], [0, 0, 1]]          several per text, as 0 and 1 for each class (array, table or list)

Nested lists of nothing but 0 and 1, all of the same length of 2 or more, are the last kind, as in scikit-learn.
"""

import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from emhrnn.corpus.encode import listed
from emhrnn.corpus.record import clean_label
from emhrnn.errors import DataError
from emhrnn.evaluation.decision import THRESHOLD
from emhrnn.shapes import Bool, Float, Float32

Kind = Literal["one", "lists", "indicator"]
TYPES = ((str,), (bool, np.bool_), (int, float, np.number))  # the first that a label is of
SEVERAL_TYPES = "the labels are of several types; give all texts strings, or all whole numbers"


@dataclass(frozen=True, eq=False)
class Targets:
    """The classes of a fitted classifier: in their own type, and by their names in the run folder."""

    classes: np.ndarray  # sorted; those of a table of 0 and 1 in the order of its columns
    names: tuple[str, ...]
    kind: Kind

    @classmethod
    def of(cls, y: Any, classes: Iterable[Any] | None = None) -> "Targets":
        """Those that `y` holds, or that `classes` announces."""
        kind, rows = _read(y)
        if kind == "indicator":
            values = np.arange(rows.shape[1]) if classes is None else _of_one_type(list(classes))
        elif classes is not None:
            values = _of_one_type(list(classes))
        else:
            values = _of_one_type(rows if kind == "one" else _flat(rows))
        labels, names = _names(values, in_order=kind == "indicator")
        if kind == "indicator" and len(labels) != rows.shape[1]:
            raise DataError(f"the labels have {rows.shape[1]} columns for {len(labels)} classes; give one column each")
        return cls(labels, names, kind)

    def announced(self, classes: Iterable[Any]) -> bool:
        """True if these are the classes; those that name columns must have the same order, too."""
        given = np.asarray(list(classes))
        return np.array_equal(given if self.kind == "indicator" else np.unique(given), self.classes)

    @property
    def multi_label(self) -> bool:
        return self.kind != "one"

    def labels(self, y: Any) -> list[str] | list[tuple[str, ...]]:
        """The names for `y`, one or several per text."""
        kind, rows = _read(y)
        if kind != self.kind:
            raise DataError(f"these labels are of another kind ({kind}) than those before ({self.kind}); give the same")
        if kind == "indicator":
            if rows.shape[1] != len(self.names):
                raise DataError(f"the labels have {rows.shape[1]} columns for {len(self.names)} classes; give as many")
            return [tuple(self.names[i] for i in np.flatnonzero(row)) for row in rows]
        if kind == "one":
            return [self._name(label) for label in rows]
        return [tuple(self._name(label) for label in row) for row in rows]

    def predicted(self, shares: Float32[np.ndarray, "texts classes"]) -> Any:
        """Labels in the form that was given: an array of labels, a list of tuples, or an array of 0 and 1."""
        if self.kind == "one":
            return self.classes[shares.argmax(axis=1)]
        chosen = shares > THRESHOLD
        if self.kind == "indicator":
            return chosen.astype(np.int64)
        return [tuple(self.classes[row].tolist()) for row in chosen]

    def right(self, y: Any, shares: Float32[np.ndarray, "texts classes"]) -> Bool[np.ndarray, " texts"]:
        """Whether the labels of each text are those predicted. A text with a label that was never seen is wrong."""
        kind, rows = _read(y)
        if kind == "lists" == self.kind:
            given = [{clean_label(label) for label in row} for row in rows]
        else:
            given = [{names} if isinstance(names, str) else set(names) for names in self.labels(y)]
        if len(given) != len(shares):
            raise DataError(f"{len(shares)} texts and {len(given)} labels; give one label per text")
        names = np.array(self.names, dtype=object)
        return np.array([wanted == {*names[row]} for wanted, row in zip(given, shares > THRESHOLD, strict=True)])

    def weights(self, y: Any, class_weight: Any) -> Float[np.ndarray, " texts"]:
        """What each text counts by its class: "balanced" makes all classes count the same, a dict names weights."""
        if self.multi_label:
            raise DataError("class_weight is for one label per text; give sample_weight for several")
        labels = self.labels(y)
        if class_weight == "balanced":
            return np.asarray(compute_sample_weight("balanced", labels))
        if isinstance(class_weight, str):
            raise DataError(f"class_weight is {class_weight!r}; give 'balanced', a dict of label: weight, or None")
        known = dict(zip(self.names, self.classes.tolist(), strict=True))
        unknown = [label for label in class_weight if label not in known.values()]
        if unknown:
            raise DataError(
                f"class_weight names {unknown[0]!r}, which is not a label; the labels are {[*known.values()]}"
            )
        return np.array([float(class_weight.get(known[str(name)], 1.0)) for name in labels])

    def _name(self, label: Any) -> str:
        name = clean_label(label)
        if name not in self.names:
            raise DataError(
                f"the label {label!r} is none of the classes {self.classes.tolist()}; announce all classes in the "
                "first partial_fit, or fit again"
            )
        return str(name)


def _read(y: Any) -> tuple[Kind, Any]:
    """The kind of the labels; a list of them, or an array of 0 and 1."""
    if hasattr(y, "toarray"):  # a sparse matrix
        y = y.toarray()
    if len(getattr(y, "shape", ())) == 2:  # an array or a table
        return "indicator", _zeros_and_ones(np.asarray(y))
    rows = listed(y)
    if rows is None:
        raise DataError(f"the labels are {reprlib.repr(y)}; give a list of them, one label per text")
    nested = [isinstance(row, (list, tuple, set, frozenset, np.ndarray)) for row in rows]
    if not any(nested):
        _check_given(rows)
        return "one", rows
    if not all(nested):
        raise DataError("some texts have one label and some have a list of them; give all texts the same kind")
    rows = [_listed(row) for row in rows]
    widths = {len(row) for row in rows}
    if len(widths) == 1 and min(widths) > 1 and all(_is_flag(x) for row in rows for x in row):
        return "indicator", np.asarray(rows)
    _check_given(_flat(rows))
    return "lists", rows


def _check_given(labels: list[Any]) -> None:
    for number, label in enumerate(labels, start=1):
        if clean_label(label) is None or type(label).__name__ in ("NAType", "NaTType"):  # of pandas
            raise DataError(f"label {number} is missing ({label!r}); give every text a string or a number")


def _listed(row: Any) -> list[Any]:
    """The labels of one text, in Python's own types."""
    if isinstance(row, np.ndarray):
        return list(row.tolist())
    return sorted(row) if isinstance(row, (set, frozenset)) else list(row)


def _is_flag(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and value in (0, 1)


def _zeros_and_ones(table: np.ndarray) -> np.ndarray:
    if table.shape[1] < 2 or not all(map(_is_flag, table.ravel().tolist())):
        raise DataError(
            f"the labels have the shape {table.shape}; give one label per text, or for several a column of 0 and 1 per "
            "class, or lists of labels"
        )
    return table


def _flat(rows: Sequence[Sequence[Any]]) -> list[Any]:
    return [label for row in rows for label in row]


def _of_one_type(labels: list[Any]) -> np.ndarray:
    """An array of them; NumPy would write numbers among strings as strings, and predict those."""
    if len({next((types for types in TYPES if isinstance(label, types)), ()) for label in labels}) > 1:
        raise DataError(SEVERAL_TYPES)
    return np.asarray(labels)


def _names(given: np.ndarray, *, in_order: bool = False) -> tuple[np.ndarray, tuple[str, ...]]:
    """The distinct labels, sorted or in the order given, and the name of each in the run folder."""
    try:
        labels, first = np.unique(given, return_index=True)
    except TypeError:
        raise DataError(SEVERAL_TYPES) from None
    if in_order:
        labels = given[np.sort(first)]
    names: dict[str, Any] = {}
    for label in labels.tolist():
        name = clean_label(label)
        if not isinstance(name, str):
            raise DataError(f"{label!r} is not a label; give every text a string or a number")
        if name in names:
            raise DataError(f"the labels {names[name]!r} and {label!r} are both written {name!r}; rename one")
        names[name] = label
    return labels, tuple(names)
