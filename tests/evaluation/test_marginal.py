"""The mean over phrases against the sum over all of them."""

import itertools

import numpy as np
import torch

from emhrnn.evaluation.marginal import Marginal
from tests.em.examples import make_batch, small_model


def test_the_mean_over_many_is_the_sum_over_all() -> None:
    model, batch = small_model(0), make_batch([[3, 2], [4]])
    with torch.no_grad():
        states = model.words(batch)
        pi = torch.sigmoid(states.a).numpy()
        free = np.flatnonzero(~batch.sentence_final)
        exact = torch.zeros(batch.n_documents, model.output.out_features, dtype=torch.float64)
        for setting in itertools.product([False, True], repeat=len(free)):
            z = batch.sentence_final.copy()
            z[free] = setting
            p_z = float(np.where(z, pi, 1 - pi)[free].prod())
            exact += p_z * torch.softmax(model.encode(batch, states, z).logits.double(), dim=1)
        found = Marginal(model, drawn=2000)(batch)
        again, other = Marginal(model)(batch), Marginal(model)(batch)
    torch.testing.assert_close(found.logits.exp().double(), exact, rtol=0.02, atol=0.005)
    assert torch.equal(again.logits, other.logits)
