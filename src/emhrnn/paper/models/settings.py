"""The settings of the paper's other baselines, without their code: reading them takes no torch."""

from pydantic import Field

from emhrnn.models.settings import IdsConfig, ModelConfig, NetworkConfig


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
