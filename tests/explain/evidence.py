"""Runs of small evidence models: counted on generated documents, with random tables, so that every phrase speaks."""

import torch

from emhrnn.corpus import Corpus, TextSettings
from emhrnn.models.evidence import Evidence
from emhrnn.models.settings import EvidenceConfig
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run

WORDS = ["not", "good", "bad", "soup", "cold", "the", "we", "very", "worth", "money", "came", "back", "never", "room"]
REVIEW = "The soup was not good. We never came back, not worth the money! Very small room."


def make_run(
    classes: tuple[str, ...] = ("bad", "so-so", "good"),
    *,
    seed: int = 0,
    longest: int = 4,
    several: bool = False,
    temperature: float = 1.3,
    silent: bool = False,
) -> Run:
    """With a `silent` model, no phrase says anything and only the bias is left."""
    generator = torch.Generator().manual_seed(seed)
    texts = [
        " ".join(WORDS[i] for i in torch.randint(len(WORDS), (12,), generator=generator).tolist()) + "."
        for _ in range(60)
    ]
    labels = torch.randint(len(classes), (60,), generator=generator).tolist()
    text = TextSettings()
    told = [(str(label),) if several else str(label) for label in labels]
    corpus = Corpus.from_texts(texts, told, classes=[str(c) for c in range(len(classes))], text=text)
    vocabulary: Vocabulary = corpus.vocabulary
    made = EvidenceConfig(
        longest=longest, encoder_size=0 if silent else 4, counts=not silent, presence=1.0, sentence_weights=0,
        pauses=False,
    )  # fmt: skip
    table = torch.randn(len(vocabulary), 5, generator=generator)
    model = Evidence(made, table=table, classes=len(classes), generator=generator, several=several)
    model.count([corpus.batch(torch.arange(60).numpy())])
    with torch.no_grad():
        if not silent:
            model.ngrams.table.normal_(0, 1, generator=generator)
        model.bias.normal_(0, 0.5, generator=generator)
    config = make_config(assignments=["model.name=evidence"])
    return Run(model, config, vocabulary, classes, several, text, embedding_size=5, temperature=temperature)
