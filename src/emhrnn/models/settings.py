"""The settings of the models, without their code: reading them takes no torch."""

from pydantic import Field, model_validator

from emhrnn.errors import ConfigError
from emhrnn.models.row import ModelConfig
from emhrnn.models.segmentation import PAPER_RATE, check_rule

OVERLAPPING = "overlapping"  # a segmentation that is none: all candidate phrases, as a bag


class EvidenceConfig(ModelConfig):
    """Settings of evidence."""

    name: str = Field("evidence", description="the model; `emhrnn models` lists them")
    embedding_size: int = Field(100, ge=1, description="size of word vectors, when no vectors are given")
    longest: int = Field(6, ge=1, le=8, description="most words of a phrase")
    counts: bool = Field(True, description="log-count ratios of seen phrases")
    tables: bool = Field(True, description="a learned vector for each seen phrase")
    encoder_size: int = Field(32, ge=0, description="units of the phrase encoder on word vectors; 0 = none")
    presence: float = Field(0.5, ge=0, le=1, description="1 = a phrase counts once a document, 0 = each time it occurs")
    smoothing: float = Field(1.0, gt=0, description="documents of each class that are added to counts")
    least_documents: int = Field(2, ge=1, description="phrases of fewer training documents are unseen")
    table_documents: int = Field(
        10, ge=1, description="phrases of fewer training documents have counts alone, no learned vector"
    )
    table_decay: float = Field(0.5, ge=0, description="weight decay of learned vectors of seen phrases")
    megabytes: float = Field(200.0, gt=0, description="largest model file; rare phrases are left out for it")
    sentence_weights: int = Field(
        32, ge=0, description="units of recurrent layers that weigh sentences; 0 = all weigh the same"
    )
    pauses: bool = Field(True, description="phrases tend to end where readers pause")
    ids: bool = Field(False, description="read users and products, too")
    id_count: int = Field(
        5, ge=1, description="ids: users and products of fewer training documents are read as the average"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="share of candidate phrases that a training step leaves out")
    segmentation: str = Field(
        "learned", description="learned, or an ablation: none, words, punctuation, random, every-K, overlapping"
    )
    rate: float = Field(PAPER_RATE, gt=0, lt=1, description="segmentation = random: share of words that end a phrase")

    @model_validator(mode="after")
    def _consistent(self) -> "EvidenceConfig":
        if not (self.counts or self.tables or self.encoder_size):
            raise ConfigError("evidence without counts, tables and encoder says nothing; switch one of them on")
        if self.segmentation not in ("learned", OVERLAPPING):
            check_rule(self.segmentation)
        return self
