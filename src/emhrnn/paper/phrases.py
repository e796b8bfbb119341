"""Phrases of a run: what the shown ones alone would predict, and how they agree with the chunks of linguists.

`compare_shown` is for phrase evidence, whose prediction is a sum over all segmentations.
`chunk_table` compares learned phrase ends with gold chunks (CoNLL-2000): precision, recall and F1, without the ends of
sentences, which every method is given.
"""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.corpus.readers.input import explain_damage
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.predict import BATCH_WORDS
from emhrnn.evaluation.scores import BoundaryAgreement, boundary_agreement
from emhrnn.explain.explainer import groups
from emhrnn.files import sha256, write_json, write_text
from emhrnn.layers.semi_markov import best_cut
from emhrnn.models.evidence_reader import EvidenceReader, phrases_of
from emhrnn.models.model import Output
from emhrnn.models.segmentation import at_words, every, punctuation, random
from emhrnn.paper.em.semi_markov import SegmentPosterior
from emhrnn.paper.reports import making, markdown_table, percent
from emhrnn.shapes import Bool, Float
from emhrnn.training.run import WEIGHTS, Run, load_run


@dataclass(frozen=True)
class ShownPhrases:
    """Phrase evidence: accuracy by the exact sum over all segmentations, by the best one alone, and by the one alone
    that explanations show, which ends phrases where a reader would pause. (The evidence that explanations give to the
    shown phrases is that of the sum.)"""

    documents: int
    exact: float
    best: float
    shown: float
    differs: float  # share of the documents to which the shown phrases alone give another label than the sum
    words_per_phrase: float


def compare_shown(reader: EvidenceReader, corpus: Corpus) -> ShownPhrases:
    """Labelled documents, each with all segmentations and with the shown one alone."""
    assert corpus.labels is not None
    labels = np.empty((3, len(corpus)), dtype=np.int64)  # by the sum, by the best, by the shown phrases
    phrases = 0
    for rows in BatchPlan(corpus.lengths, words=BATCH_WORDS).in_order():
        batch = corpus.batch(rows)
        reading = reader.read(batch)
        chosen = reading.chosen[batch.document_of_sentence]
        best, *_ = best_cut(reader.potentials(batch), batch.sentence_offsets, chosen)
        alone = [cut_logits(reader, batch, z) + reading.priors for z in (best, reading.z)]
        labels[:, rows] = reading.chosen, *(logits.argmax(axis=1) for logits in alone)
        phrases += int(reading.z.sum())
    exact, best_alone, shown = (labels == corpus.labels).mean(axis=1).tolist()
    differs = float((labels[0] != labels[2]).mean())
    return ShownPhrases(len(corpus), exact, best_alone, shown, differs, int(corpus.lengths.sum()) / phrases)


def cut_logits(
    reader: EvidenceReader, batch: Batch, z: Bool[np.ndarray, " words"]
) -> Float[np.ndarray, "documents classes"]:
    """What the phrases of z say alone, up to what is the same for all classes."""
    ends, widths = phrases_of(z)
    evidence = reader.evidence(batch)[ends, widths - 1].astype(np.float64)  # (phrases, classes)
    evidence *= reader.lambdas(batch)[batch.sentence_of_word[ends]][:, None]
    logits = np.zeros((batch.n_documents, evidence.shape[1]))
    np.add.at(logits, batch.document_of_sentence[batch.sentence_of_word[ends]], evidence)
    return logits


# ------------------------------------------------------------------ beside the phrases of linguists


@dataclass(frozen=True, eq=False)
class Chunked:
    """`ends` is true at the last word of each chunk, and at each word outside of all chunks."""

    sentences: list[list[str]]
    ends: Bool[np.ndarray, " words"]


def read_chunks(path: Path, part: str) -> Chunked:
    """A file, or the member `part`.txt of a zip, as the corpus comes."""
    lines = _text(path, part).splitlines()
    sentences, tags = [list[str]()], list[str]()
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields:
            if sentences[-1]:
                sentences.append([])
            continue
        if len(fields) != 3 or fields[2][0] not in "BIO":
            raise DataError(
                f"{path}, line {number}: {line[:60]!r} is not a word, a tag and B-, I- or O; give CoNLL-2000"
            )
        sentences[-1].append(fields[0])
        tags.append(fields[2] if len(sentences[-1]) > 1 else f"^{fields[2]}")  # ^: the first word of a sentence
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        raise DataError(f"{path} has no sentences; give CoNLL-2000")
    # a chunk ends where the next word does not continue it
    return Chunked(sentences, np.array([not tag.startswith("I-") for tag in [*tags[1:], "^"]], dtype=bool))


def _text(path: Path, part: str) -> str:
    try:
        with explain_damage(path):
            if not path.is_file() or not zipfile.is_zipfile(path):
                return path.read_bytes().decode("utf-8")
            with zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if Path(name).name == f"{part}.txt"]
                if len(members) != 1:
                    raise DataError(f"{path} has no {part}.txt; give conll2000.zip, and --part train or test")
                return archive.read(members[0]).decode("utf-8")
    except (UnicodeDecodeError, RuntimeError):  # RuntimeError: encrypted
        raise DataError(f"{path} is not text; give conll2000.zip, or a file of it") from None


RANDOM_DRAWS = 20
Z = Bool[np.ndarray, " words"]


def as_batch(run: Run, sentences: Sequence[Sequence[str]]) -> Batch:
    """Each sentence is a document: phrases never look beyond one."""
    words = [word.lower() if run.text.lowercase else word for sentence in sentences for word in sentence]
    return Batch(
        words=run.vocabulary.encode(words).astype(np.int64),
        sentence_offsets=np.cumsum([0, *map(len, sentences)], dtype=np.int64),
        document_offsets=np.arange(len(sentences) + 1, dtype=np.int64),
        rows=np.arange(len(sentences), dtype=np.int64),
    )


@torch.inference_mode()
def learned(run: Run, batch: Batch) -> tuple[Z, Float[np.ndarray, " words"]]:
    """Phrase ends as the run's model finds them, and pi."""
    ends, chances = [], []
    for first, last in groups(batch.sentence_lengths.tolist()):
        if isinstance(run.model, EvidenceReader):
            z, pi = _of_evidence(run.model, batch.part(first, last))
            ends.append(z)
            chances.append(pi)
            continue
        output: Output = run.model(batch.part(first, last))
        if output.z is None or output.pi is None:
            raise ConfigError(f"the model {run.config.model.name!r} finds no phrases; use em-hrnn or mhs-rnn-att")
        ends.append(output.z)
        chances.append(output.pi.numpy())
    return np.concatenate(ends), np.concatenate(chances)


def _of_evidence(model: EvidenceReader, batch: Batch) -> tuple[Z, Float[np.ndarray, " words"]]:
    """The explained segmentation, and the probability of each end given the predicted class."""
    reading = model.read(batch)
    posterior = SegmentPosterior(torch.from_numpy(model.potentials(batch)), batch.sentence_offsets)
    of_sentence = torch.from_numpy(reading.chosen[batch.document_of_sentence])
    return reading.z, posterior.of_classes(of_sentence).gamma[:, 0].numpy()


def agreements(run: Run, chunked: Chunked, *, seed: int = 0) -> list[tuple[str, BoundaryAgreement]]:
    """By name: the model's phrase ends, and those that need no learning, as many of them as the model has where that
    can be."""
    batch = as_batch(run, chunked.sentences)
    free = ~batch.sentence_final
    z, pi = learned(run, batch)
    rate = float(z[free].mean())
    marks = punctuation(run.vocabulary.words)
    length = max(round(1 / rate), 1) if rate else batch.n_words
    generator = np.random.default_rng(seed)
    draws = [random(batch, rate, generator) for _ in range(RANDOM_DRAWS)]
    name, trained = run.config.model.name, run.config.em.rate
    wanted = max(trained * batch.n_words - batch.n_sentences, 0) / free.sum()  # the rate counts ends of sentences, too
    likeliest = pi > np.quantile(pi[free], 1 - wanted)  # on other text the model's own threshold gives another rate
    candidates: Mapping[str, Sequence[Z]] = {
        name: [z],
        f"{name}, the likeliest {trained:.0%} of words": [likeliest],
        "random, same rate": draws,
        f"every {length} words": [every(batch, length)],
        "punctuation": [at_words(batch, marks)],
        "every word": [np.ones(batch.n_words, dtype=bool)],
    }
    return [(name, boundary_agreement(batch, chunked.ends, *found)) for name, found in candidates.items()]


EXPECTATION = """
Phrase ends against chunk ends, word by word; ends of sentences are left out, since every method is given them. The
model has learned its phrases from labels of documents, and with model.pauses from their punctuation, without
chunks: the loss of the task need not find the phrases of linguists. What counts is whether it does better than
segmentations of the same rate that have learned nothing.
"""


@dataclass(frozen=True)
class ChunkTable:
    """The rows, and a header: command, commit, machine, runs, data."""

    header: dict[str, Any]
    rows: Sequence[tuple[str, BoundaryAgreement]]

    def to_dict(self) -> dict[str, Any]:
        return {**self.header, "rows": [{"name": name, **row.to_dict()} for name, row in self.rows]}

    def to_markdown(self) -> str:
        lines = ["# Phrases and chunks (CoNLL-2000)", ""]
        lines += [f"- {name}: {value}" for name, value in self.header.items()]
        lines += EXPECTATION.splitlines()
        rows = [
            [name, percent(row.precision), percent(row.recall), percent(row.f1),
             f"{row.predicted:,.0f}", f"{row.gold:,}", f"{row.both:,.0f}"]
            for name, row in self.rows
        ]  # fmt: skip
        head = ["segmentation", "precision", "recall", "F1", "ends", "gold", "both"]
        return "\n".join([*lines, "", markdown_table(head, rows)])


def chunk_table(folders: Sequence[Path], conll: Path, part: str, out: Path, *, seed: int) -> ChunkTable:
    """Of one or several runs; what needs no learning is shown at the rate of the first."""
    chunked = read_chunks(conll, part)
    rows: list[tuple[str, BoundaryAgreement]] = []
    for folder in folders:
        found = agreements(load_run(folder), chunked, seed=seed)
        rows = [*rows, *found[:2]] if rows else found
    words = len(chunked.ends)
    header = making(
        runs=", ".join(f"{folder.name} (weights {sha256(folder / WEIGHTS)[:12]})" for folder in folders),
        data=f"{part}: {len(chunked.sentences):,} sentences, {words:,} words; random is the mean of 20 draws",
    )
    table = ChunkTable(header, rows)
    write_json(out / "chunks.json", table.to_dict())
    write_text(out / "chunks.md", table.to_markdown())
    return table
