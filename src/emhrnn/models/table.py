"""The one table from a model's name to the function that builds it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor, nn

from emhrnn.errors import ConfigError
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.segmentation import PAPER_RATE, rule


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What a model needs to know to be built; each takes what it uses."""

    classes: int
    word_size: int = 50
    phrase_size: int = 50
    sentence_size: int = 50
    attention_size: int = 50
    bidirectional_words: bool = False
    tune_embedding: bool = False
    dropout: float = 0.0
    segmentation: str = "learned"
    rate: float = PAPER_RATE


class Builder(Protocol):
    def __call__(
        self, sizes: Sizes, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
    ) -> nn.Module: ...


def build_em_hrnn(
    sizes: Sizes, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
) -> EMHRNN:
    return EMHRNN(
        table=table,
        classes=sizes.classes,
        generator=torch.Generator().manual_seed(seed),
        tune_embedding=sizes.tune_embedding,
        word_size=sizes.word_size,
        phrase_size=sizes.phrase_size,
        sentence_size=sizes.sentence_size,
        attention_size=sizes.attention_size,
        bidirectional_words=sizes.bidirectional_words,
        dropout=sizes.dropout,
        rate=sizes.rate,
        rule=None if sizes.segmentation == "learned" else rule(sizes.segmentation, vocabulary, sizes.rate),
    )


MODELS: dict[str, Builder] = {"em-hrnn": build_em_hrnn}


def build_model(
    name: str, sizes: Sizes, table: Float[Tensor, "vocabulary size"], vocabulary: Sequence[str], seed: int
) -> nn.Module:
    if name not in MODELS:
        raise ConfigError(f"unknown model {name!r}; use one of {', '.join(sorted(MODELS))}")
    return MODELS[name](sizes, table, vocabulary, seed)
