"""The settings of the paper's network and its baselines, without their code: reading them takes no torch."""

from typing import Any

from pydantic import Field, model_validator

from emhrnn.layers.native.library import CellName
from emhrnn.models.segmentation import check_rule
from emhrnn.models.settings import ModelConfig


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


class EMHRNNConfig(NetworkConfig):
    """Settings of em-hrnn. The paper's layers all have 50 units."""

    word_size: int = Field(50, ge=1, description="units of the word layer, in each direction")
    phrase_size: int = Field(50, ge=1, description="units of the phrase layer")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer, in each direction")
    attention_size: int = Field(50, ge=1, description="units of the attention layers")
    bidirectional_words: bool = Field(True, description="read the words of a sentence in both directions")
    cell: CellName = Field("gru", description="of the recurrent layers (the paper: lstm)")
    skip: bool = Field(True, description="a phrase's vector reaches its sentence beside its state")
    pauses: bool = Field(True, description="phrases tend to end where readers pause")
    segmentation: str = Field(
        "learned", description="learned, or an ablation: none, words, punctuation, random, every-K"
    )

    @model_validator(mode="after")
    def _consistent(self) -> "EMHRNNConfig":
        if self.segmentation != "learned":
            check_rule(self.segmentation)
        return self


# The paper's network (docs/paper.md 1.8).
PAPER_NETWORK = EMHRNNConfig(
    tune_embedding=False, bidirectional_words=False, cell="lstm", skip=False, pauses=False, dropout=0.0
)


# The paper's exact settings (docs/paper.md 1.8), the preset `paper`. The learning rate is to be picked on validation.
PRESET: dict[str, dict[str, Any]] = {
    "data": {"vocabulary": "vectors"},
    "model": PAPER_NETWORK.model_dump(exclude_unset=True),
    "em": {
        "estep": "local",
        "focus": False,
        "impute": "prior",
        "hold_rate": False,
        "warmup_epochs": 0,
        "theta": "all",
        "pace": 1.0,
    },
    "training": {
        "batch_documents": 64,
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "weight_decay": 0.0,
        "decay": "none",
    },
}


class HANConfig(NetworkConfig):
    """Settings of hn-ave and hn-max."""

    word_size: int = Field(50, ge=1, description="units of the word layer, in each direction")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer, in each direction")


class HNAttConfig(HANConfig):
    """Settings of hn-att."""

    attention_size: int = Field(50, ge=1, description="units of the attention layers")


class BagOfMeansConfig(ModelConfig):
    """Settings of bag-of-means."""

    embedding_size: int = Field(100, ge=1, description="size of word vectors; those that are given decide")
    means: int = Field(5000, ge=2, description="clusters of word vectors")
    C: float = Field(10.0, gt=0, description="inverse strength of the regularisation")


class BasisCustConfig(IdsConfig):
    """Settings of basis-cust."""

    word_size: int = Field(50, ge=1, description="units of the word layer, in each direction")
    attention_size: int = Field(50, ge=1, description="units of the attention layer")
    bases: int = Field(4, ge=1, description="basis vectors that users and products mix")


class CMAConfig(IdsConfig):
    """Settings of cma."""

    word_size: int = Field(50, ge=1, description="units of the word layer")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer")
    attention_size: int = Field(50, ge=1, description="units of the attention layers")


class CNNWordConfig(NetworkConfig):
    """Settings of cnn-word."""

    features: int = Field(64, ge=1, description="of each convolution; Zhang's networks have 256 and 1024")
    dense_size: int = Field(256, ge=1, description="units of the dense layers; Zhang's networks have 1024 and 2048")
    length: int = Field(231, ge=123, description="words it reads of a document")


class GRNNConfig(NetworkConfig):
    """Settings of conv-grnn and lstm-grnn."""

    word_size: int = Field(50, ge=1, description="units of the word layer: size of a sentence's vector")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer, in each direction")


class HMRNNConfig(NetworkConfig):
    """Settings of hm-rnn."""

    layers: int = Field(3, ge=2, description="recurrent layers")
    word_size: int = Field(50, ge=1, description="units of each layer")


class LSTMConfig(NetworkConfig):
    """Settings of lstm."""

    word_size: int = Field(50, ge=1, description="units of the word layer")


class MHSRNNConfig(NetworkConfig):
    """Settings of mhs-rnn. Words and phrases share a size: one matrix reads both."""

    word_size: int = Field(50, ge=1, description="units of the word and phrase layers")
    sentence_size: int = Field(50, ge=1, description="units of the sentence layer, in each direction")


class MHSRNNAttConfig(MHSRNNConfig):
    """Settings of mhs-rnn-att."""

    attention_size: int = Field(50, ge=1, description="units of the attention layers")


class SSWEConfig(ModelConfig):
    """Settings of sswe-svm."""

    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    fit_epochs: int = Field(3, ge=0, description="passes over the data that train the word vectors")
    C: float = Field(0.01, gt=0, description="inverse strength of the regularisation")


class BucketsConfig(ModelConfig):
    """Settings of n-grams beside a network."""

    buckets: int = Field(200_000, ge=1, description="hash buckets of word pairs; fewer over 250 classes")


class NGramsConfig(BucketsConfig):
    """Settings of ngrams."""

    dropout: float = Field(0.3, ge=0, lt=1, description="share of places that a training step leaves out")
