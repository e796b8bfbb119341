"""The ONNX graph against the model, on random ragged documents."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings

from emhrnn.corpus import TextSettings
from emhrnn.paper.export.network import network
from emhrnn.paper.export.onnx_folder import arrays
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.text import UNK, Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run, new_run
from tests.models.examples import VOCABULARY, generator_of, make_batch, make_table, seeds, shapes


def random_run(
    *,
    bidirectional: bool,
    cell: str = "lstm",
    multi_label: bool = False,
    temperature: float = 1.7,
) -> Run:
    settings = [
        f"model.{name}_size={size}" for name, size in (("word", 4), ("phrase", 6), ("sentence", 3), ("attention", 5))
    ]
    settings += [f"model.cell={cell}"]
    config = make_config(
        assignments=[*settings, f"model.bidirectional_words={str(bidirectional).lower()}"], model="em-hrnn"
    )
    words = Vocabulary([UNK, *(f"w{n}" for n in range(1, VOCABULARY))])
    run = new_run(config, words, ("a", "b", "c"), make_table(), multi_label=multi_label, text=TextSettings())
    generator = generator_of(3)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))
        assert isinstance(run.model, EMHRNN)
        run.model.threshold.fill_(0.3)
    return replace(run, temperature=temperature)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(("bidirectional", "multi_label"), [(True, False), (False, True)])
def test_equals_the_model(bidirectional: bool, multi_label: bool, cell: str) -> None:
    run = random_run(bidirectional=bidirectional, cell=cell, multi_label=multi_label)
    assert isinstance(run.model, EMHRNN)
    content = network(run, run.model).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    @given(shapes, seeds)
    @settings(max_examples=60, deadline=None)
    def compare(lengths: list[list[int]], seed: int) -> None:
        batch = make_batch(lengths, seed)
        with torch.inference_mode():
            output = run.model(batch)
        given = dict(zip([o.name for o in session.get_outputs()], session.run(None, arrays(batch)), strict=True))
        assert (given["z"] == output.z).all()
        expected = {
            "probabilities": torch.from_numpy(run.probabilities(output.logits.numpy())),
            "pi": output.pi, "alpha": output.alpha, "beta": output.beta, "gamma": output.gamma,
        }  # fmt: skip
        for name, tensor in expected.items():
            assert given[name].shape == tuple(tensor.shape), name
            np.testing.assert_allclose(given[name], tensor.numpy(), atol=1e-5, err_msg=name)

    compare()


def test_one_long_sentence_and_extreme_scores() -> None:
    run = random_run(bidirectional=True)
    assert isinstance(run.model, EMHRNN)
    with torch.no_grad():
        run.model.word_attention.context.mul_(500)  # exp would overflow without the segment's own maximum
    session = onnxruntime.InferenceSession(
        network(run, run.model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    batch = make_batch([[2000, 1], [1]], 5)
    with torch.inference_mode():
        expected = run.probabilities(run.model(batch).logits.numpy())
    (given,) = session.run(["probabilities"], arrays(batch))
    np.testing.assert_allclose(given, expected, atol=1e-4)
