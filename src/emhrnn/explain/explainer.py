"""Explain raw texts with a trained run."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.record import clean_text
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.predict import BATCH_WORDS
from emhrnn.explain.build import explain_documents
from emhrnn.explain.explanation import Explanation, Labels
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output
from emhrnn.text import Document, read_document
from emhrnn.training.run import Run


def explain_texts(
    run: Run,
    texts: Sequence[str],
    labels: Sequence[Labels | None] | None = None,
    *,
    threshold: float | None = None,
) -> list[Explanation]:
    """One explanation per text, in order; `labels` are the true ones where they are known. Phrases end where pi is over
    the threshold: the model's own, or one from 0 (every word is a phrase) to 1 (every sentence is one).

    Raises:
        DataError: a text has no words.
        ConfigError: the run's model has no phrases to show.
    """
    documents = [read(run, text, number) for number, text in enumerate(texts)]
    explanations: list[Explanation] = []
    for start, stop in _groups([len(document) for document in documents]):
        known = None if labels is None else labels[start:stop]
        explanations += explain_read(run, documents[start:stop], known, threshold)
    return explanations


def _groups(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours that a batch has room for; a document that is larger than a batch is one alone."""
    start = words = 0
    for stop, length in enumerate(lengths):
        if stop > start and words + length > BATCH_WORDS:
            yield start, stop
            start, words = stop, 0
        words += length
    if start < len(lengths):
        yield start, len(lengths)


def explain_read(
    run: Run,
    documents: Sequence[Document],
    labels: Sequence[Labels | None] | None = None,
    threshold: float | None = None,
) -> list[Explanation]:
    """Documents that are read already, as one batch."""
    batch = batch_of(run, documents)
    output = _output(run, batch, threshold)
    if output.z is None or output.alpha is None or output.beta is None or output.gamma is None:
        raise ConfigError(f"the model {run.config.model.name!r} has no phrase weights to explain with; use em-hrnn")
    return explain_documents(
        documents,
        probabilities=run.probabilities(output.logits).numpy(),
        classes=run.classes,
        z=output.z,
        alpha=output.alpha.numpy(),
        beta=output.beta.numpy(),
        gamma=output.gamma.numpy(),
        pi=None if output.pi is None else output.pi.numpy(),
        known=batch.words > 0,
        model=run.config.model.name,
        labels=labels,
        multi_label=run.multi_label,
    )


@torch.inference_mode()
def _output(run: Run, batch: Batch, threshold: float | None) -> Output:
    if threshold is None or not isinstance(run.model, EMHRNN) or run.model.rule is not None:
        output: Output = run.model(batch)
        return output
    states = run.model.words(batch)
    z = (torch.sigmoid(states.a) > threshold).numpy() | batch.sentence_final
    return run.model.encode(batch, states, z)


def read(run: Run, text: str, number: int = 0) -> Document:
    """The text as the run's training data was read, without its length caps: an explanation shows all of a text."""
    if not isinstance(text, str):
        raise DataError(f"text {number + 1} is a {type(text).__name__}; give a string")
    document = read_document(clean_text(text)[0], language=run.text.language, lowercase=run.text.lowercase)
    if len(document) == 0:
        raise DataError(f"text {number + 1} has no words; give a text with at least one word")
    return document


def batch_of(run: Run, documents: Sequence[Document]) -> Batch:
    words = run.vocabulary.encode([word for document in documents for word in document.words])
    lengths = np.concatenate([np.diff(document.sentence_offsets) for document in documents])
    sentences = [document.n_sentences for document in documents]
    return Batch(
        words=words.astype(np.int64),
        sentence_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        document_offsets=np.cumsum([0, *sentences], dtype=np.int64),
        rows=np.arange(len(documents), dtype=np.int64),
    )
