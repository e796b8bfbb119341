"""fastText: our prediction from its matrices against the library's own prediction."""

import dataclasses
import sys

import numpy as np
import pytest
import torch

from emhrnn.errors import ConfigError, ExtraError, TrainingError
from emhrnn.models import fasttext as our_fasttext
from emhrnn.models.fasttext import FastText, _lines, passes_over
from emhrnn.models.settings import FastTextConfig
from tests.models.examples import CLASSES, VOCABULARY, check_survives_saving, make_batch, separable_batch

fasttext = pytest.importorskip("fasttext", reason="needs the extra fasttext")


def small(**settings) -> FastText:
    config = FastTextConfig(**{"word_size": 8, "buckets": 50, "fit_epochs": 20} | settings)
    return FastText(config, vocabulary=VOCABULARY, classes=CLASSES)


def test_hashes_are_those_of_the_library() -> None:
    def fnv(word: str) -> int:
        value = 2166136261
        for letter in word.encode():
            value = ((value ^ letter) * 16777619) % 2**32
        return (value - 2**32 if value >= 2**31 else value) % 2**64

    expected = [fnv(word) for word in [*map(str, range(120)), "</s>"]]
    assert our_fasttext._hashes(120).tolist() == expected


def test_predicts_what_the_library_predicts(monkeypatch) -> None:
    train, test = separable_batch(30), make_batch([[5, 2], [1], [4, 4, 3], [6]])
    test.words[0] = 2  # in no training document
    learn, learned = fasttext.train_supervised, []

    def keep(**settings):
        learned.append(learn(**settings))
        return learned[-1]

    monkeypatch.setattr(fasttext, "train_supervised", keep)
    model = small()
    model.fit([train])
    theirs = []
    for line in _lines(test):
        labels, probabilities = learned[0].predict(line.split(" ", 1)[1].strip(), k=-1)
        row = dict(zip(labels, probabilities, strict=True))
        theirs.append([row[f"__label__{c}"] for c in range(CLASSES)])
    ours = torch.softmax(model(test).logits, dim=1)
    np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-5)  # the library adds 1e-5 to each


def test_fits_is_deterministic_and_survives_saving() -> None:
    batch = separable_batch()
    model, again = small(), small()
    model.fit([batch])
    again.fit([batch])
    assert torch.equal(model.rows, again.rows)
    assert np.array_equal(model(batch).logits.argmax(1).numpy(), batch.labels)
    check_survives_saving(model, small(), batch)


def test_multi_label() -> None:
    one = separable_batch()
    several = dataclasses.replace(one, labels=np.eye(CLASSES, dtype=np.float32)[one.labels])
    model = small()
    model.fit([several])
    assert ((model(several).logits.numpy() > 0) == several.labels).mean() > 0.9


def test_without_the_library(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(ExtraError, match=r"emhrnn\[fasttext\]"):
        small().fit([separable_batch()])


def test_failure_is_told(monkeypatch) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("Encountered NaN.")

    monkeypatch.setattr(fasttext, "train_supervised", fail)
    with pytest.raises(TrainingError, match="NaN"):
        small().fit([separable_batch()])


def test_weights_are_refused() -> None:
    batch = separable_batch()
    weighted = dataclasses.replace(batch, weights=np.ones(batch.n_documents, dtype=np.float32))
    with pytest.raises(ConfigError, match="knows no weights of documents; leave the weight column and "):
        small().fit([weighted])


def test_few_documents_are_passed_over_more_often() -> None:
    assert [passes_over(n) for n in (1, 8_000, 25_000, 100_000, 10**7)] == [25, 25, 20, 5, 5]
    few = [separable_batch()]
    by_rule, by_hand, fewer = (small(fit_epochs=epochs) for epochs in (None, 25, 5))
    for model in (by_rule, by_hand, fewer):
        model.fit(few)
    assert torch.equal(by_rule.rows, by_hand.rows)
    assert not torch.equal(by_rule.rows, fewer.rows)
