"""The parts of a job of several processes that need no second process."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.layers.dropout import SharedGenerator, dropout
from emhrnn.training.distributed import (
    ALONE,
    ProcessGroup,
    _SharedNumbers,
    cuts,
    joined,
    launched,
    name_of_job,
    restarted,
)
from tests.models.examples import make_batch, seeds, shapes

lengths = st.lists(st.integers(1, 50), min_size=1, max_size=12).map(lambda values: np.array(values, dtype=np.int64))


@given(lengths, st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_every_part_has_a_document_and_about_as_many_words(lengths: np.ndarray, parts: int) -> None:
    parts = min(parts, len(lengths))
    places = cuts(lengths, parts)
    assert places[0] == 0
    assert places[-1] == len(lengths)
    assert (np.diff(places) >= 1).all()
    words = np.add.reduceat(lengths, places[:-1])
    assert words.sum() == lengths.sum()
    if parts == 2 and len(lengths) > 1:  # no other cut is better by more than rounding
        best = min(abs(2 * lengths[:cut].sum() - lengths.sum()) for cut in range(1, len(lengths)))
        assert abs(int(words[0]) - int(words[1])) == best


@given(shapes, seeds, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_shares_make_up_the_batch(shape: list[list[int]], seed: int, size: int) -> None:
    whole = make_batch(shape, seed)
    shares = []
    for rank in range(size):
        group = ProcessGroup(store=None, rank=rank, size=size)
        share = group.share(whole)
        assert group.whole(share) is whole
        if rank < whole.n_documents:
            shares.append(share)
        else:  # a stand-in, of which nothing counts
            assert float(group.part(torch.ones(()), share.n_documents, whole.n_documents)) == 0
    for name in ("words", "rows", "labels", "sentence_lengths", "document_lengths"):
        parts = [getattr(share, name) for share in shares]
        assert np.array_equal(np.concatenate(parts), getattr(whole, name))


def test_a_stand_in_has_its_say_in_what_is_not_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of an epoch whose last batch had no document for this process: its predictions count."""
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda values: None)  # what this one adds to the sum
    group = ProcessGroup(store=None, rank=1, size=2)
    group.share(make_batch([[3]], 0))
    given = torch.tensor([1.5, 2.0])
    assert group.sum(given).tolist() == [0, 0]
    assert group.total(given).tolist() == given.tolist()


def place(first: int, whole: int) -> Callable[[int], tuple[int, int]]:
    return lambda rows: (first, whole)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=20, deadline=None)
def test_a_share_gets_the_noise_of_its_rows(rows: int, before: int, after: int) -> None:
    whole = before + rows + after
    plain, shared = (torch.Generator().manual_seed(7) for _ in range(2))
    mine = SharedGenerator(shared, place(before, whole))
    for width in (3, 5):  # one draw after the other
        expected = dropout(torch.ones(whole, width), 0.4, plain)[before : before + rows]
        assert torch.equal(dropout(torch.ones(rows, width), 0.4, mine), expected)
    draw, share = np.random.default_rng(7), _SharedNumbers(np.random.default_rng(7), place(before, whole))
    here = slice(before, before + rows)
    assert np.array_equal(share.random(rows), draw.random(whole)[here])
    assert np.array_equal(share.standard_exponential(rows), draw.standard_exponential(whole)[here])
    assert np.array_equal(share.integers(4, size=rows), draw.integers(4, size=whole)[here])
    assert np.array_equal(share.random(rows), draw.random(whole)[here])


def test_who_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)
    assert not launched()
    assert name_of_job() == ""
    with joined() as job:
        assert job is ALONE
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert not restarted()
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    assert restarted()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    started_by = name_of_job()
    assert started_by not in ("", "none")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "mine")
    assert name_of_job() == "mine"
