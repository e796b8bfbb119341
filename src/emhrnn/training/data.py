"""From what the user names (a file in any format, or a prepared corpus) to the corpora that training needs."""

import hashlib
import math
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus import Columns, Corpus, Source, TextSettings, is_corpus, prepare
from emhrnn.corpus.store import DATA, MANIFEST
from emhrnn.errors import DataError
from emhrnn.files import encoded, from_json, named, sha256
from emhrnn.models.settings import EvidenceConfig
from emhrnn.shapes import Int64
from emhrnn.text import TextLimits, Vectors, Vocabulary
from emhrnn.text.language import AUTO, CHARACTERS
from emhrnn.training.config import Config, DataConfig, with_settings
from emhrnn.training.run import Run, is_run, new_run, read_description
from emhrnn.training.schedule import Purpose, numpy_generator

COUNTED_ROWS = 10_000  # documents whose words are counted together
FEW = 3000  # documents: fewer have other defaults
SHOWN = 8  # classes, where they are listed
SCORED = 1000  # documents that are scored where none are held out
NGRAMS = ("model.ngram_words", 4)
FOR_CHARACTERS = {"evidence": ("model.longest", 8), "tfidf-lr": NGRAMS, "tfidf-svm": NGRAMS}  # by model
TOPICS, OF_TOPICS = 11, 0.3  # classes; the presence of the evidence model for as many, or for more
MANY = 50_000  # documents: the evidence model has other defaults for as many, or for more
OF_MANY = {"training.learning_rate": 0.004, "training.average_epochs": 0.25}
STEPS, MOST_EPOCHS, BATCH = 500, 24, 32  # few documents: steps that training takes, in at most so many epochs


@dataclass(frozen=True, kw_only=True)
class Named:
    """Data as named on the command line. A prepared corpus needs nothing but its path."""

    path: Path
    format: str | None = None
    columns: Columns = field(default_factory=Columns)
    split: str | None = None
    encoding: str | None = None

    def read_as(self) -> dict[str, str]:
        """What was said about how to read it."""
        said = {"format": self.format, "split": self.split, "encoding": self.encoding, **self.columns.to_dict()}
        return {what: value for what, value in said.items() if value is not None}

    def source(self, *, lenient: bool = False, keep: bool = False) -> Source:
        """Its rows as they are read. `lenient`: what is wrong with a row is said in it; `keep` all columns, too."""
        return Source(
            self.path, format=self.format, columns=replace(self.columns, keep=keep), split=self.split,
            encoding=self.encoding, lenient=lenient,
        )  # fmt: skip

    def prepare(self, destination: Path, **options: Any) -> Corpus:
        """A corpus of raw data at `destination`, with the options of `emhrnn.prepare`."""
        return prepare(
            self.path, destination, format=self.format, columns=self.columns, split=self.split, encoding=self.encoding,
            **options,
        )  # fmt: skip


def checksum(path: Path) -> str:
    """SHA-256 of the data a path names: of a file; of all names and files in a folder; of the documents of a prepared
    corpus, as its manifest tells it (opening the corpus compares)."""
    if is_corpus(path):
        with named(path / MANIFEST):
            return str(from_json((path / MANIFEST).read_text(encoding="utf-8"))["files"][DATA]["sha256"])
    if path.is_file():
        return sha256(path)
    digest = hashlib.sha256()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(encoded(f"{file.relative_to(path).as_posix()}\n{sha256(file)}\n"))
    return digest.hexdigest()


def learned_from(run: Path, data: Named) -> bool:
    """Whether the run was trained on rows of this data, as far as the whole of it tells: the same content, and no other
    split."""
    trained = read_description(run).get("data", {}).get("train", {})
    splits = {trained.get("read_as", {}).get("split"), data.split}
    return (None in splits or len(splits) == 1) and trained.get("sha256") == checksum(data.path)


def described(data: Named, corpus: Corpus, place: Path | None) -> dict[str, Any]:
    """What a run says of its data. `place` is that of the corpus, relative to the run if it is there; None: it was
    split off the training data."""
    return {
        "source": str(data.path),
        "sha256": checksum(data.path),
        "read_as": data.read_as(),
        "corpus": None if place is None else str(place),
        "documents": len(corpus),
        "words": int(corpus.lengths.sum()),
        "classes": dict(zip(corpus.classes, corpus.class_counts.tolist(), strict=True)),
    }


def material_line(name: str, train: Corpus, valid: Corpus, folds: int = 0) -> str:
    """What a training begins with, in a line: a column that was guessed wrong shows here, and not after an hour."""
    taken = ", ".join(f"{role} from {column!r}" for role, column in train.report.columns.items())
    parts = [
        f"{len(train):,} documents of {train.lengths.mean():.0f} words to learn from, "
        + (f"validated in {folds} folds" if folds else f"{len(valid):,} to validate"),
        taken,
        ", ".join(f"encoding {name}" for name in train.report.encodings if name != "utf-8"),
        f"language {train.text.language}",
        f"{len(train.classes)} classes: {_some(train.classes)}",
    ]
    return f"{name}: {'; '.join(filter(None, parts))}"


def text_settings(config: DataConfig) -> TextSettings:
    """How the settings ask text to be read."""
    limits = TextLimits(max_words_per_sentence=config.max_sentence_words, max_sentences=config.max_sentences)
    return TextSettings(language=config.language, lowercase=config.lowercase, limits=limits)


def prepared(data: Named) -> Corpus | None:
    """The corpus, where the data is one that `emhrnn paper prepare` wrote; None where it is raw.

    Raises:
        DataError: the data is a run folder, or a prepared corpus of which something is asked that was settled when it
            was prepared, and that would be passed over in silence.
    """
    if is_run(data.path):
        raise DataError(
            f"{data.path} is a run folder, not data; give documents: a file, a folder per class, or a prepared corpus"
        )
    if not is_corpus(data.path):
        inside = [path for path in data.path.iterdir() if is_run(path) or is_corpus(path)] if data.path.is_dir() else []
        if inside:
            raise DataError(
                f"{data.path} holds runs or prepared corpora, such as {inside[0]}; give documents or a corpus"
            )
        return None
    for what, value in data.read_as().items():
        raise DataError(
            f"{data.path} is a prepared corpus, in which the {what} {value!r} cannot be chosen any more; "
            "leave that out, or give the file it was prepared from"
        )
    return Corpus.open(data.path)


def training_corpus(
    data: Named, destination: Path, config: Config, vectors: Vectors | None, *, progress: bool
) -> Corpus:
    """The training data in the vocabulary that the model will have."""
    corpus = prepared(data)
    if corpus is not None:
        asked = text_settings(config.data)
        usual = TextSettings(language=AUTO)
        if asked not in (usual, replace(usual, language=corpus.text.language), corpus.text):
            raise DataError(
                f"{data.path} was prepared with {_told(corpus.text)}, the settings ask for {_told(asked)}; "
                "prepare it again with these, or leave the settings out"
            )
        return in_model_words(corpus, config, vectors)
    pretrained = None if vectors is None else Vocabulary.from_words(vectors.words)
    wanted = "data" if vectors is None else config.data.vocabulary
    corpus = data.prepare(
        destination,
        vocabulary=pretrained if wanted == "vectors" else None,
        min_count=config.data.min_count,
        max_words=config.data.max_vocabulary,
        known=pretrained if wanted == "both" else None,
        text=text_settings(config.data),
        progress=progress,
    )
    return corpus if pretrained is None or wanted != "both" else corpus.remap(corpus.vocabulary | pretrained)


def held_out(corpus: Corpus, config: Config) -> tuple[Corpus, Corpus]:
    """The documents to learn from and those to validate on. With `data.folds`, both are all of them, and `fit`
    cross-validates. With `data.validation = 0`, nothing is held out: scores are then of documents that are trained on,
    and pick no epoch (`selects`)."""
    if config.data.folds:
        return corpus, corpus
    if not selects(config):
        return corpus, corpus.select(corpus.spread(SCORED))
    return corpus.split(config.data.validation, numpy_generator(config.training.seed, Purpose.SPLIT))


def selects(config: Config) -> bool:
    """Whether documents that are held out pick the best epoch."""
    return config.data.validation > 0 or config.data.folds > 0


def in_model_words(corpus: Corpus, config: Config, vectors: Vectors | None) -> Corpus:
    """A corpus that holds all words of its documents, in the vocabulary that the model will have: the words of the data
    that are frequent enough, or those of the vectors (the paper: any other word is unknown), or both, so that a word
    that is new at test time still has its vector."""
    pretrained = None if vectors is None else Vocabulary.from_words(vectors.words)
    if pretrained is not None and config.data.vocabulary == "vectors":
        return corpus.remap(pretrained)
    both = pretrained if config.data.vocabulary == "both" else None
    counts = dict(zip(corpus.vocabulary.words, _word_counts(corpus).tolist(), strict=True))
    own = Vocabulary.from_counts(
        counts, min_count=config.data.min_count, max_size=config.data.max_vocabulary, known=both
    )
    return corpus.remap(own if both is None else own | both)


def _word_counts(corpus: Corpus) -> Int64[np.ndarray, " vocabulary"]:
    counts = np.zeros(len(corpus.vocabulary), dtype=np.int64)
    for start in range(0, len(corpus), COUNTED_ROWS):
        rows = np.arange(start, min(start + COUNTED_ROWS, len(corpus)))
        counts += np.bincount(corpus.batch(rows).words, minlength=len(counts))
    return counts


def other_corpus(data: Named, destination: Path, like: Run | Corpus, *, progress: bool = True) -> Corpus:
    """Validation or test data in the words and classes of a run or of its training data, and in their users and
    products: whoever is not among them is unknown.

    Raises:
        DataError: the data was prepared with other classes or text settings, or cannot be read.
    """
    corpus = prepared(data)
    if corpus is None:
        return data.prepare(
            destination, vocabulary=like.vocabulary, classes=like.classes if data.columns.labelled else None,
            text=like.text, multi_label=like.multi_label, users=like.users, products=like.products, progress=progress,
        )  # fmt: skip
    if corpus.labelled and data.columns.labelled and corpus.classes != like.classes:
        raise DataError(
            f"{data.path} was prepared with the classes {_some(corpus.classes)}, the model has {_some(like.classes)}; "
            "give the raw file, or prepare it again with --like RUN"
        )
    if corpus.text != like.text:
        raise DataError(
            f"{data.path} was prepared with {_told(corpus.text)}, the model reads with {_told(like.text)}; "
            "give the raw file, or prepare it again with --like RUN"
        )
    return corpus.remap(like.vocabulary, users=like.users, products=like.products)


@contextmanager
def labelled_corpus(run: Run, data: Named, *, why: str, progress: bool = False) -> Iterator[Corpus]:
    """Labelled data in the words and classes of a run, prepared in a temporary folder.

    Raises:
        DataError: the data has no labels (the message ends with `why` they are needed), or labels or ids that do not
            fit the run.
    """
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
        corpus = other_corpus(data, Path(scratch) / "corpus", run, progress=progress)
        if not corpus.labelled:
            raise DataError(f"{data.path} has no labels {why}")
        check_same_kind(data.path, corpus, multi_label=run.multi_label)
        check_ids(run.config, data.path, corpus.report.columns)
        yield corpus


def check_same_kind(path: Path, corpus: Corpus, *, multi_label: bool) -> None:
    """Raise a DataError for labelled data that has one label per document where the model was trained on lists of them,
    or the other way round: their classes may be the same, and every score would be nonsense."""
    if corpus.labelled and corpus.multi_label != multi_label:
        one, several = "one label per document", "a list of labels per document"
        has, wants = (several, one) if corpus.multi_label else (one, several)
        raise DataError(f"{path} has {has}, the model is trained on data with {wants}; give labels of that kind")


def check_ids(config: Config, path: Path, columns: Collection[str]) -> None:
    """Raise a DataError where the model reads ids and the data has no such column: every author would be unknown."""
    for kind in ("user", "product"):
        if config.reads_ids and kind not in columns:
            raise DataError(
                f"the model {config.model.name} reads {kind} ids and {path} has no {kind} column; give data with one, "
                "empty where it is not known"
            )


def with_frequent_names(config: Config, training: Corpus, validation: Corpus) -> tuple[Corpus, Corpus]:
    """The same documents, for a model that reads ids: users and products of fewer than model.id_count documents become
    unknown. A vector of their own would memorise the labels of these few documents, and nothing of the text; and
    the model would seldom see the average author, whom it reads for everybody new.

    Raises:
        DataError: none is left.
    """
    if not config.reads_ids:
        return training, validation
    least = config.id_count
    users, products = training.frequent_names(least)
    for kind, all_names, names in (("user", training.users, users), ("product", training.products, products)):
        if all_names and not names:
            raise DataError(
                f"no {kind} has {least} training documents or more, and one with fewer is read as the average {kind}; "
                "lower model.id_count, or set model.ids=false"
            )
    return (
        training.remap(training.vocabulary, users=users, products=products),
        validation.remap(validation.vocabulary, users=users, products=products),
    )


def embedding_table(config: Config, corpus: Corpus, vectors: Vectors | None) -> Any:
    """The first value of the word vectors, a tensor: pretrained ones; without any, small random ones, or for a model
    whose vectors stay as they begin, those that its documents give."""
    import torch

    generator = numpy_generator(config.training.seed, Purpose.INIT)
    frozen, size = config.model.freezes_vectors, config.embedding_size
    if vectors is not None:
        return torch.from_numpy(vectors.lookup(corpus.vocabulary, generator=None if frozen else generator))
    if not config.model.reads_vectors:
        return torch.zeros(len(corpus.vocabulary), size)
    if frozen:
        from emhrnn.training.word_vectors import learned_vectors

        return torch.from_numpy(learned_vectors(corpus, size, config.training.seed))
    return torch.from_numpy(generator.normal(0, 0.4, (len(corpus.vocabulary), size)).astype(np.float32))


def suited(
    config: Config, *, documents: int, classes: int, language: str, vectors: bool, validated: bool = True
) -> Config:
    """The settings, with defaults that suit the training data where they say nothing themselves; `vectors`: pretrained
    ones are given. Without documents to validate on, probabilities are not calibrated, whatever the settings say."""
    if not validated:
        config = with_settings(config, {"training.calibrate": False})
    wanted: dict[str, Any] = {}
    if language in CHARACTERS and config.model.name in FOR_CHARACTERS:  # words are single characters
        wanted |= [FOR_CHARACTERS[config.model.name]]
    if isinstance(config.model, EvidenceConfig):
        if classes >= TOPICS:  # a document repeats the words of its topic; an opinion is not truer when repeated
            wanted["model.presence"] = OF_TOPICS
        if documents >= MANY:  # an epoch has many steps: smaller ones lead further
            wanted |= OF_MANY
        if documents < FEW:
            wanted |= _for_few(config, config.model, documents, vectors)
    if config.training.class_weight == "balanced":  # the loss has no weights: lowest before rare classes are learned
        wanted["training.metric"] = "macro_f1"
    given = {
        f"{section}.{name}" for section in ("model", "training") for name in getattr(config, section).model_fields_set
    }
    return with_settings(config, {name: value for name, value in wanted.items() if name not in given})


def _for_few(config: Config, model: EvidenceConfig, documents: int, vectors: bool) -> dict[str, Any]:
    """With few documents, the evidence model takes more epochs, does not weigh sentences, and has no encoder of word
    vectors where none are given (docs/evidence.md)."""
    batches = math.ceil(documents / (config.training.batch_documents or BATCH))
    epochs = min(max(config.training.epochs, math.ceil(STEPS / batches)), MOST_EPOCHS)
    wanted: dict[str, Any] = {"training.epochs": epochs, "model.sentence_weights": 0}
    if not vectors and (model.counts or model.tables):
        wanted["model.encoder_size"] = 0
    return wanted


def suited_to(config: Config, corpus: Corpus, vectors: Vectors | None, *, validated: bool = True) -> Config:
    """`suited` to this corpus."""
    return suited(
        config, documents=len(corpus), classes=len(corpus.classes), language=corpus.text.language,
        vectors=vectors is not None, validated=validated,
    )  # fmt: skip


def untrained(config: Config, corpus: Corpus, vectors: Vectors | None, *, validated: bool = True) -> Run:
    """A new run for the words and classes of a corpus."""
    config = suited_to(config, corpus, vectors, validated=validated)
    run = new_run(
        config, corpus.vocabulary, corpus.classes,
        embedding_table(config, corpus, vectors),
        multi_label=corpus.multi_label, text=corpus.text, users=corpus.users, products=corpus.products,
    )  # fmt: skip
    run.lengths = corpus.length_range
    return run


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:SHOWN]))
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _told(text: TextSettings) -> str:
    caps = [f"{name} {value}" for name, value in asdict(text.limits).items() if value is not None]
    return ", ".join([f"language {text.language!r}", f"lowercase {text.lowercase}", *caps])
