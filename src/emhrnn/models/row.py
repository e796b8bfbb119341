"""A row of the table of models: its settings, how it is built and learns, what it needs, shows, and who wrote it.

Reading the table takes no torch: a row names the class of its model, which is imported when the model is built.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np

from emhrnn.extras import need
from emhrnn.models.predictor import Predictor
from emhrnn.models.segmentation import PAPER_RATE
from emhrnn.models.settings import ModelConfig

VECTORS = "word vectors"  # in `Row.needs`


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a model is built for, beside its own settings."""

    classes: int
    several: bool = False  # labels of a document
    users: int = 0  # how many the training data have
    products: int = 0
    encoder: str = ""  # folder of a run with the rest of a pretrained encoder; the weights are the run's
    rate: float = PAPER_RATE  # em.rate: share of words that end a phrase


Builder = Callable[[Any, Facts, Any, Sequence[str], int], Any]  # config, facts, vectors, vocabulary, seed -> a model
Reader = Callable[[Any, Facts, Mapping[str, np.ndarray], Sequence[str]], Predictor]  # config, facts, arrays, vocabulary

# config, facts, words of the vocabulary, size of vectors, arrays as they were saved -> shapes
Shapes = Callable[[Any, Facts, int, int, Mapping[str, np.ndarray]], dict[str, tuple[int, ...]]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A model. `learns` by EM, by gradient descent or by a fit in one go (models/fitting.py)."""

    config: type[ModelConfig]
    build: Builder
    read: Reader | None = None  # for a model that predicts without torch, from its arrays
    shapes: Shapes | None = None  # then, of these arrays
    learns: Literal["em", "gradient", "fit"]
    reference: str
    needs: tuple[str, ...] = ()  # beyond text and labels: word vectors, ids, pretrained weights, the fastText library
    shows: tuple[str, ...] = ()  # weights it gives: words, phrases, sentences; boundaries
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # its own in the sections training and data
    findings: Callable[..., Any] | None = None  # run, batch, threshold, exact -> Findings (explain/explainer.py)
    remarks: Callable[..., list[str]] | None = None  # config, what training came to, validation data -> what went wrong

    @property
    def explains(self) -> bool:
        """`emhrnn explain` needs weights of words and sentences."""
        return "words" in self.shows


def later(module: str, name: str, *, torch: bool = True, **options: Any) -> Callable[..., Any]:
    """The class or function of a module that takes torch, or long, imported when it is first called."""

    def call(*arguments: Any, **given: Any) -> Any:
        if torch:
            need("torch", name)
        return getattr(import_module(module), name)(*arguments, **options, **given)

    return call


def drawn_from(seed: int) -> Any:
    """A generator of torch."""
    need("torch", "this model")
    import torch

    return torch.Generator().manual_seed(seed)
