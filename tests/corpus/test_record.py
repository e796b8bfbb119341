from typing import Any

import numpy as np
import pytest

from emhrnn.corpus.record import clean_label


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (4, "4"),
        (4.0, "4"),
        ("4.0", "4"),
        (4.5, "4.5"),
        (" very  good\n", "very good"),
        (True, "True"),
        (-1, "-1"),
        (np.int64(3), "3"),
        (None, None),
        (float("nan"), None),
        (np.float64("nan"), None),
        ("", None),
        ("NaN", None),
        (["b", "a", "b"], ("b", "a")),
        ([], ()),
    ],
)
def test_class_names(value: Any, name: Any) -> None:
    assert clean_label(value) == name
