"""Words from a table, of the whole vocabulary or of some words, give what the model gives without one."""

from typing import Literal

import numpy as np
import pytest
import torch

from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.word_table import WordTable
from tests.models.examples import VOCABULARY, generator_of, make_batch, make_table


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_table_changes_nothing(cell: Literal["lstm", "gru"], tuned: bool, bidirectional: bool) -> None:
    model = EMHRNN(
        table=make_table(), classes=3, generator=generator_of(1), tune_embedding=tuned, word_size=4,
        bidirectional_words=bidirectional, cell=cell,
    )  # fmt: skip
    batch = make_batch([[5, 1], [7]], seed=3)
    expected, logits = model.words(batch), model(batch).logits
    for words in (None, np.unique(batch.words), np.unique(np.append(batch.words, VOCABULARY - 1))):
        model.precompute_words(words)
        assert model.words_ready
        states = model.words(batch)
        torch.testing.assert_close(states.h1, expected.h1)
        torch.testing.assert_close(states.a, expected.a)
        torch.testing.assert_close(model(batch).logits, logits)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_words_that_come_again_are_projected_once(bidirectional: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = EMHRNN(
        table=make_table(), classes=3, generator=generator_of(1), word_size=4, bidirectional_words=bidirectional
    )
    batch = make_batch([[9, 30], [40]], seed=3)
    made = []
    monkeypatch.setattr(WordTable, "of", lambda *given, of=WordTable.of: made.append(of(*given)) or made[-1])
    expected = model.words(batch)
    assert not made  # with gradients there is no table
    with torch.no_grad():
        torch.testing.assert_close(model.words(batch).h1, expected.h1)
        assert [len(table.projections[0]) for table in made] == [len(np.unique(batch.words))]
        model.words(make_batch([[2]], seed=3))
    assert len(made) == 1
    assert not model.words_ready


def test_words_that_the_table_lacks_are_computed() -> None:
    """Never read from beside it."""
    model = EMHRNN(table=make_table(), classes=3, generator=generator_of(1), word_size=4)
    batch = make_batch([[5, 1], [7]], seed=3)
    expected = model.words(batch)
    model.precompute_words(np.unique(batch.words)[1:])
    assert torch.equal(model.words(batch).h1, expected.h1)
    model.precompute_words(np.array([], dtype=np.int64))
    assert torch.equal(model.words(batch).h1, expected.h1)
