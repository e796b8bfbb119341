"""A described run, opened again for training: its data, and a model that is yet to get its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError, DataError
from emhrnn.files import sha256
from emhrnn.text import Vectors, Vocabulary, read_vectors
from emhrnn.training import checkpointing
from emhrnn.training.config import Config, validated
from emhrnn.training.data import Named, checksum, embedding_table, with_frequent_names
from emhrnn.training.run import CONFIG, VOCABULARY, Run, new_run, read_description
from emhrnn.training.state import Purpose, numpy_generator


@dataclass(frozen=True, eq=False)
class Opened:
    run: Run
    train: Corpus
    valid: Corpus


def open_run(
    out: Path,
    description: dict[str, Any] | None = None,
    settings: Config | None = None,
    data: Named | None = None,
    valid: Named | None = None,
    *,
    vectors: bool = True,
    given_vectors: Path | Vectors | None = None,
) -> Opened:
    """All of it is in the run folder; what is given besides must agree with it. Where no checkpoint has the `vectors`
    of words, or the weights of a pretrained encoder, they are read from their file again, unless somebody has
    them.

    Raises:
        CheckpointError, DataError: something is missing, or other data or vectors were given.
    """
    description = description or read_description(out)
    settings = settings or validated(description["config"])
    try:
        parts = description["data"]
        _check_same(out, data, parts["train"])
        _check_same(out, valid, parts["valid"])
        _check_same_vectors(out, given_vectors, description)
        vocabulary = Vocabulary.load(out / VOCABULARY)
        training = _open(out, data, parts["train"]["corpus"]).remap(vocabulary)
        if parts["valid"]["corpus"] is None:
            generator = numpy_generator(settings.training.seed, Purpose.SPLIT)
            training, validation = training.split(settings.data.validation, generator)
        else:
            validation = _open(out, valid, parts["valid"]["corpus"])
            validation = validation.remap(vocabulary, users=training.users, products=training.products)
        training, validation = with_frequent_names(settings, training, validation)
        table = torch.zeros(len(vocabulary), int(description["embedding_size"]))
        fresh = vectors and not checkpointing.files(out / checkpointing.FOLDER)
        if fresh:
            table = embedding_table(settings, vocabulary, _vectors(out, given_vectors, description))
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{out / CONFIG} does not say how to go on ({type(error).__name__}: {error}); train anew with --overwrite"
        ) from None
    run = new_run(
        settings, vocabulary, training.classes, table,
        multi_label=training.multi_label, text=training.text, users=training.users, products=training.products,
        saved=None if fresh else out,
    )  # fmt: skip
    return Opened(run, training, validation)


def _check_same(out: Path, given: Named | None, described: dict[str, Any]) -> None:
    if given is None:
        return
    if not given.path.exists():
        raise DataError(f"{given.path} does not exist; leave it out, {out} knows its data")
    if checksum(given.path) != described["sha256"]:
        raise DataError(
            f"{given.path} is not the data that {out} was started on, or was changed since (the checksums differ); "
            "put it back, or train anew into another folder"
        )
    if given.read_as() != described["read_as"]:
        raise DataError(
            f"{given.path} is to be read as {given.read_as()}, but {out} was started with {described['read_as']}; "
            "leave that out, or train anew into another folder"
        )


def _check_same_vectors(out: Path, given: Path | Vectors | None, described: dict[str, Any]) -> None:
    """A file may have moved, so its content is compared; a run from before there was a checksum knows its place alone.
    What was in memory cannot be compared."""
    if given is None:
        return
    started, known = described["vectors"], described.get("vectors_sha256")
    if isinstance(given, Vectors):
        name, same = "vectors in memory", started == "memory"
    elif not given.is_file():
        raise DataError(f"the vectors {given} do not exist; leave them out, {out} knows its own")
    else:
        name, same = str(given), str(given.resolve()) == started if known is None else sha256(given) == known
    if not same:
        before = "no vectors" if started is None else "vectors in memory" if started == "memory" else started
        raise DataError(
            f"the vectors of {out} are others: it was started with {before}, and {name} was given; leave that out, or "
            "train anew into another folder"
        )


def _vectors(out: Path, given: Path | Vectors | None, described: dict[str, Any]) -> Vectors | None:
    """Those that were given and are known to be the same, or else those that the run was started with."""
    source = described["vectors"] if given is None else given
    if source is None or isinstance(source, Vectors):
        return source
    if source == "memory":
        raise DataError(f"{out} was started with vectors in memory, and saved nothing yet; give them again")
    known = described.get("vectors_sha256")
    if given is None and known is not None and Path(source).is_file() and sha256(Path(source)) != known:
        raise DataError(
            f"the vectors {source} were changed since {out} was started on them (the checksums differ); put them back, "
            "or train anew with --overwrite"
        )
    return read_vectors(Path(source))


def _open(out: Path, given: Named | None, place: str) -> Corpus:
    """The corpus in the run; or the prepared one that was given, wherever it is now."""
    own = not Path(place).is_absolute()
    return Corpus.open(out / place if own or given is None else given.path)
