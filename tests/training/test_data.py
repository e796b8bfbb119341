"""The line that says what is learned from, and the defaults that suit it."""

from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus import Columns, prepare
from emhrnn.training.config import make_config
from emhrnn.training.data import MANY, SHOWN, material_line, suited


def test_it_names_the_columns_that_were_taken_and_the_classes(tmp_path: Path) -> None:
    rows = ["body,stars", *(f"word {'more ' * 4}{n},{n}" for n in range(SHOWN + 2))]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    corpus = prepare(tmp_path / "a.csv", tmp_path / "corpus", columns=Columns(text="body", label="stars"))
    first = ", ".join(repr(str(n)) for n in range(SHOWN))
    assert material_line("a.csv", corpus, corpus.select(np.arange(2))) == (
        f"a.csv: {SHOWN + 2} documents of 6 words to learn from, 2 to validate; text from 'body', label from 'stars'; "
        f"language en; {SHOWN + 2} classes: {first} and 2 more"
    )


@pytest.mark.parametrize(
    ("documents", "given", "rate", "averaged"),
    [(MANY - 1, (), 0.01, 1.0), (MANY, (), 0.004, 0.25), (MANY, ("training.learning_rate=0.02",), 0.02, 0.25)],
)
def test_many_documents_are_learned_from_in_smaller_steps(
    documents: int, given: tuple[str, ...], rate: float, averaged: float
) -> None:
    config = make_config(assignments=given)
    found = suited(config, documents=documents, classes=5, language="en", vectors=True).training
    assert (found.learning_rate, found.average_epochs) == (rate, averaged)
