"""Rows as they are written on the command line."""

import pytest

from emhrnn.errors import ConfigError
from emhrnn.paper.comparison.rows import Row, parse_rows


def test_one_syntax() -> None:
    assert parse_rows(
        ["tfidf-lr,hn-att", "em-hrnn[em.estep=blocks,em.block_length=5], w1 = em-hrnn[em.block_length=1]"]
    ) == [
        Row("tfidf-lr", "tfidf-lr"),
        Row("hn-att", "hn-att"),
        Row("em-hrnn[em.estep=blocks,em.block_length=5]", "em-hrnn", ("em.estep=blocks", "em.block_length=5")),
        Row("w1", "em-hrnn", ("em.block_length=1",)),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hn-at", "unknown model 'hn-at'; did you mean 'hn-att'\\?"),
        ("zzzzzz", "unknown model 'zzzzzz'; `emhrnn models` lists them all"),
        ("em-hrnn[em.blocks=5", "cannot read the row 'em-hrnn\\[em.blocks=5'"),
        ("lstm,lstm", "the row 'lstm' is given twice; give one of them another name: NAME=lstm"),
        (" , ", "no model was given"),
        ("lstm[data.min_count=3]", "sets data.min_count, which is the same for all rows; give it by --set"),
        ("lstm[training.seed=3]", "sets training.seed, which is the same for all rows"),
    ],
)
def test_bad_rows(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_rows([text])
