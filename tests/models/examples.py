"""Ragged batches and the laws that every model keeps, for the tests of this folder."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.models.model import Output, log_likelihood
from emhrnn.paper.models.rows import PAPER_NETWORK, EMHRNNConfig

VOCABULARY, SIZE, CLASSES = 12, 5, 3
PLAIN = {"tune_embedding": False, "dropout": 0.0}  # settings of a network that neither draws nor moves word vectors

seeds = st.integers(0, 2**20)
shapes = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=4)


def paper_network(**settings: Any) -> EMHRNNConfig:
    """The paper's EM-HRNN but for these settings."""
    return EMHRNNConfig(**PAPER_NETWORK.model_dump() | settings)


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_table(seed: int = 0, vocabulary: int = VOCABULARY, size: int = SIZE) -> Tensor:
    return torch.randn(vocabulary, size, generator=generator_of(seed))


def make_batch(lengths: list[list[int]], seed: int = 0, ids: int = 0) -> Batch:
    """Documents whose sentences have these lengths; with `ids`, users and products from -1 to ids - 1."""
    rng = np.random.default_rng(seed)
    documents = [[rng.integers(0, VOCABULARY, n).tolist() for n in document] for document in lengths]
    batch = Batch.from_lists(documents, rng.integers(0, CLASSES, len(lengths)).tolist())
    if not ids:
        return batch
    users, products = (rng.integers(-1, ids, len(lengths)) for _ in range(2))
    return replace(batch, users=users, products=products)


def enlarged(model: nn.Module, scale: float = 2.0) -> nn.Module:
    """Large weights and double precision: every part matters, and differences are not rounding."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale).add_(0.1)
    return model.double()


def sentences_of(batch: Batch, document: int) -> list[list[int]]:
    """Word ids of a document, a list per sentence."""
    offsets = batch.sentence_offsets
    begin, end = batch.document_offsets[document], batch.document_offsets[document + 1]
    return [batch.words[offsets[i] : offsets[i + 1]].tolist() for i in range(begin, end)]


def words_of(batch: Batch, document: int) -> list[int]:
    return batch.words[batch.word_offsets[document] : batch.word_offsets[document + 1]].tolist()


def check_logits_and_gradients(
    model: nn.Module, batch: Batch, oracle: Callable[[int], Tensor], *, atol: float = 1e-9
) -> Output:
    """`oracle(document)` gives the logits of one document, slowly; all parameters must get the same gradient."""
    output = model(batch)
    slow = torch.stack([oracle(document) for document in range(batch.n_documents)])
    torch.testing.assert_close(output.logits, slow, atol=atol, rtol=1e-7)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    seen = torch.randn(slow.shape, generator=generator_of(1), dtype=slow.dtype)
    ours = torch.autograd.grad((output.logits * seen).sum(), parameters, allow_unused=True, materialize_grads=True)
    theirs = torch.autograd.grad((slow * seen).sum(), parameters, allow_unused=True, materialize_grads=True)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-8, rtol=1e-6)
    return output


def check_sums_to_one(weights: Tensor, offsets: np.ndarray) -> None:
    sums = torch.segment_reduce(weights, "sum", offsets=torch.from_numpy(offsets), axis=0)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def separable_batch(documents: int = 32, seed: int = 0, **fields: np.ndarray) -> Batch:
    """Word 3 + y stands somewhere in a document of class y, and in no other."""
    rng = np.random.default_rng(seed)
    labels = np.arange(documents) % CLASSES
    texts = []
    for label in labels:
        text = [rng.integers(3 + CLASSES, VOCABULARY, rng.integers(2, 6)).tolist() for _ in range(rng.integers(1, 4))]
        sentence = text[rng.integers(len(text))]
        sentence[rng.integers(len(sentence))] = 3 + int(label)
        texts.append(text)
    return replace(Batch.from_lists(texts, labels.tolist()), **fields)


def check_learns(model: nn.Module, batch: Batch, *, steps: int = 120, learning_rate: float = 0.02) -> None:
    """Gradient descent fits the batch, every document, within these steps."""
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    labels = torch.from_numpy(batch.labels)
    for step in range(steps):
        optimizer.zero_grad()
        (-log_likelihood(model(batch, generator_of(step)).logits, labels).mean()).backward()
        for parameter in model.parameters():
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = parameter.grad.to_dense()  # Adam takes no others
        optimizer.step()
        with torch.no_grad():
            if step % 10 == 9 and (model(batch).logits.argmax(1) == labels).all():
                return
    raise AssertionError(f"some documents are not learned after {steps} steps")


def check_survives_saving(model: nn.Module, fresh: nn.Module, batch: Batch) -> None:
    """A fresh model with the saved tensors gives the same bits."""
    state = model.state_dict()
    assert {name: tensor.shape for name, tensor in fresh.state_dict().items()} == {
        name: tensor.shape for name, tensor in state.items()
    }
    fresh.load_state_dict(load(save({name: tensor.contiguous() for name, tensor in state.items()})))
    with torch.no_grad():
        assert torch.equal(model(batch).logits, fresh(batch).logits)
