"""Fixed segmentations end a phrase at every sentence end, and otherwise where they say."""

import numpy as np
import pytest

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.models import segmentation

WORDS = ["<unk>", "the", "room", ",", "was", "fine", "!!", "n't"]
BATCH = Batch.from_lists([[[1, 2, 3, 4, 5], [5, 6]], [[7]]])


@pytest.mark.parametrize(
    ("name", "z"),
    [
        ("none", [0, 0, 0, 0, 1, 0, 1, 1]),
        ("words", [1, 1, 1, 1, 1, 1, 1, 1]),
        ("every-2", [0, 1, 0, 1, 1, 0, 1, 1]),
        ("every-4", [0, 0, 0, 1, 1, 0, 1, 1]),
        ("punctuation", [0, 0, 1, 0, 1, 0, 1, 1]),
    ],
)
def test_rules(name: str, z: list[int]) -> None:
    assert segmentation.rule(name, WORDS)(BATCH).astype(int).tolist() == z


def test_fixed_random_is_the_same_every_time_and_has_its_rate() -> None:
    rng = np.random.default_rng(0)
    batch = Batch.from_lists([[rng.integers(0, 9000, 40).tolist() for _ in range(500)]])
    rule = segmentation.rule("random", WORDS, 0.23)
    z = rule(batch)
    assert np.array_equal(z, rule(batch))
    assert z[~batch.sentence_final].mean() == pytest.approx(0.23, abs=0.01)
    assert z[batch.sentence_final].all()
    unknown = Batch.from_lists([[[0] * 20]])  # as any other word
    assert not segmentation.rule("random", WORDS, 0.01)(unknown)[:-1].any()


@pytest.mark.parametrize("name", ["random", "every-3", "punctuation", "none", "words"])
def test_a_document_is_cut_the_same_in_any_company(name: str) -> None:
    rng = np.random.default_rng(1)
    documents = [[rng.integers(0, len(WORDS), n).tolist() for n in rng.integers(1, 9, 3)] for _ in range(30)]
    rule = segmentation.rule(name, WORDS, 0.4)
    alone = [rule(Batch.from_lists([document])) for document in documents]
    assert np.array_equal(rule(Batch.from_lists(documents)), np.concatenate(alone))


def test_sampled_rate() -> None:
    batch = Batch.from_lists([[list(range(5000))]])
    z = segmentation.random(batch, 0.4, np.random.default_rng(1))
    assert z.mean() == pytest.approx(0.4, abs=0.03)
    assert z[-1]


@pytest.mark.parametrize("name", ["every-0", "every-x", "sentences"])
def test_unknown_rule(name: str) -> None:
    with pytest.raises(ConfigError, match="every-K"):
        segmentation.rule(name, WORDS)
