"""Small untrained runs of any model, with weights large enough that every word has an effect."""

import torch

from emhrnn.corpus import TextSettings
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run, new_run
from tests.oracles.text import count_words

TEXT = "The soup was not good. We never came back, not worth the money! Very small room , but clean ."


def small_run(
    name: str, *settings: str, classes: tuple[str, ...] = ("bad", "so-so", "good"), several: bool = False, seed: int = 0
) -> Run:
    vocabulary = Vocabulary.from_counts(count_words([TEXT, "bad"]))
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(len(vocabulary), 6, generator=generator)
    sizes = [f"model.{part}_size=4" for part in ("word", "phrase", "sentence", "attention")]
    read = sizes if name == "em-hrnn" else [sizes[0], *sizes[2:]]
    config = make_config(assignments=[f"model.name={name}", *read, *settings])
    run = new_run(config, vocabulary, classes, table, multi_label=several, text=TextSettings())
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return run
