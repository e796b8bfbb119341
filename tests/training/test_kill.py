"""kill -9 at any moment: the resumed run ends with the same bits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.behaviour.commands import write_reviews
from tests.training.kill import SYSTEMS, Nursery, check_equal, killed, uninterrupted


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.mark.parametrize("system", SYSTEMS)
def test_resume_after_kills(nursery: Nursery, tmp_path: Path, system: str) -> None:
    data = write_reviews(tmp_path / "reviews.csv", 80)
    whole = uninterrupted(data, tmp_path / "whole", system)
    assert killed(nursery, data, tmp_path / "killed", system, kills=3, seed=1) == 3
    check_equal(whole, tmp_path / "killed")
