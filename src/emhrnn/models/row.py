"""A row of the table of models: its settings, how it is built and learns, what it needs, shows, and who wrote it.

Each model defines its settings beside its code, as a class derived from `ModelConfig`: defaults, limits and one line of
help for each. What is not in that class is no setting of the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from emhrnn.models.model import DocumentModel
from emhrnn.models.segmentation import PAPER_RATE

VECTORS = "word vectors"  # in `Row.needs`


class Section(BaseModel):
    """A group of settings. Unknown names, infinity and NaN are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


class ModelConfig(Section):
    """The settings of a model; every model has its own subclass."""

    name: str = Field("", description="the model; `emhrnn models` lists them")

    @property
    def draws(self) -> bool:
        """Whether another seed may give another model."""
        return True

    def check_files(self) -> None:
        """Raise a ConfigError where files that training needs are missing. A trained run does not need them."""


class NetworkConfig(ModelConfig):
    """What all networks on word vectors have."""

    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    tune_embedding: bool = Field(True, description="train the word vectors, too")
    dropout: float = Field(0.3, ge=0, lt=1, description="share of inputs and states that a training step sets to 0")


class IdsConfig(NetworkConfig):
    """What networks have that read who wrote a document, and about what."""

    ids: bool = Field(True, description="read users and products; false = the text alone")
    id_size: int = Field(64, ge=1, description="size of the vector of a user or product")
    id_count: int = Field(5, ge=1, description="users and products of fewer training documents are read as the average")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a model is built for, beside its own settings."""

    classes: int
    several: bool = False  # labels of a document
    users: int = 0  # how many the training data have
    products: int = 0
    encoder: str = ""  # folder of a run with the rest of a pretrained encoder; the weights are the run's
    rate: float = PAPER_RATE  # em.rate: share of words that end a phrase


Builder = Callable[[Any, Facts, Tensor, Sequence[str], int], DocumentModel]  # config, facts, vectors, vocabulary, seed


@dataclass(frozen=True, kw_only=True)
class Row:
    """A model. `learns` by EM, by gradient descent or by a fit in one go (models/fitting.py)."""

    config: type[ModelConfig]
    build: Builder
    learns: Literal["em", "gradient", "fit"]
    reference: str
    needs: tuple[str, ...] = ()  # beyond text and labels: word vectors, ids, pretrained weights, the fastText library
    shows: tuple[str, ...] = ()  # weights it gives: words, phrases, sentences; boundaries
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # its own in the sections training and data

    @property
    def explains(self) -> bool:
        """`emhrnn explain` needs weights of words and sentences."""
        return "words" in self.shows


def network(model: Callable[..., DocumentModel], config: type[NetworkConfig], **facts: Any) -> Row:
    """A model that learns by gradient descent and is built from its settings, word vectors and classes alone."""

    def build(
        config: NetworkConfig, facts: Facts, table: Tensor, vocabulary: Sequence[str], seed: int
    ) -> DocumentModel:
        return model(config, table=table, classes=facts.classes, generator=torch.Generator().manual_seed(seed))

    return Row(config=config, build=build, learns="gradient", **facts)
