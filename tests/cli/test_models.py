"""What `emhrnn models` tells is true of a model with the default settings."""

import json
from dataclasses import asdict

import torch

from emhrnn.cli.models import CLASSES, SIZE, WORDS, model_summaries
from emhrnn.corpus import TextSettings
from emhrnn.models.table import MODELS
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import new_run


def test_parameters_are_those_of_the_model_that_is_trained() -> None:
    told = {system.name: system for system in model_summaries()}
    assert told.keys() == MODELS.keys()
    vocabulary = Vocabulary.from_words(list(map(str, range(WORDS - 1))))  # and the unknown word
    for name in ("em-hrnn", "hn-att", "lstm"):
        config = make_config(assignments=[f"model.name={name}"])
        table = torch.zeros(len(vocabulary), SIZE)
        classes = tuple(map(str, range(CLASSES)))
        model = new_run(config, vocabulary, classes, table, multi_label=False, text=TextSettings()).model
        counted = sum(p.numel() for part, p in model.named_parameters() if not part.startswith("embedding."))
        assert told[name].parameters == counted


def test_own_settings_are_told() -> None:
    told = {
        system["name"]: system for system in json.loads(json.dumps([asdict(system) for system in model_summaries()]))
    }
    assert told["transformer"]["settings"]["training"]["learning_rate"] == 2e-5
    assert told["lstm"]["settings"] == {}
