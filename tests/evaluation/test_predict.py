"""Predictions come in the order of the corpus, whatever the batches."""

import numpy as np
import torch

from emhrnn.corpus import Corpus
from emhrnn.evaluation.predict import predict
from emhrnn.models.predictor import probabilities
from emhrnn.paper.models.em_hrnn import EMHRNN
from tests.models.examples import paper_network

TEXTS = [
    "Good. Very good!",
    "Bad",
    "It was not bad at all, we liked it. " * 9,
    "a b c d e f g",
    "Fine. Fine. Fine.",
] * 4


def test_order() -> None:
    corpus = Corpus.from_texts(TEXTS)
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(len(corpus.vocabulary), 10, generator=generator)
    model = EMHRNN(paper_network(bidirectional_words=True), table=table, classes=3, generator=generator)
    predicted = predict(model, corpus, multi_label=False)
    with torch.no_grad():
        logits = [model(corpus.batch(np.array([row]))).logits.numpy() for row in range(20)]
    assert np.allclose(predicted.probabilities, probabilities(np.concatenate(logits), multi_label=False), atol=1e-5)
    assert predicted.phrases is not None
    assert predicted.phrases.phrases >= len(TEXTS)
