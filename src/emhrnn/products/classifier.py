"""`EMHRNNClassifier`: EM-HRNN in the manner of scikit-learn, for texts and labels in memory."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, overload

import numpy as np
from jaxtyping import Float32
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from emhrnn.corpus import Corpus
from emhrnn.corpus.record import clean_label
from emhrnn.errors import DataError
from emhrnn.explain.explanation import Explanation
from emhrnn.products.model import Model
from emhrnn.products.training import with_settings
from emhrnn.text import Vectors, read_vectors
from emhrnn.training import history
from emhrnn.training.config import Config, make_config
from emhrnn.training.data import embedding_table, in_model_words, text_settings
from emhrnn.training.fit import fit
from emhrnn.training.folder import run_folder
from emhrnn.training.run import HISTORY, describe, new_run, save_weights
from emhrnn.training.state import Purpose, numpy_generator
from emhrnn.training.train import check_settings, write_metrics

Texts = Iterable[str]  # a list, an array, a column of a table


class EMHRNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Classifies texts and shows which sentence, phrase and word decided.

    classifier = EMHRNNClassifier(epochs=6).fit(texts, labels)
    classifier.predict(["The soup was cold."])
    classifier.explain("The soup was cold.")
    classifier.save("run")                              # for emhrnn.load and the command line

    Parameters:
        epochs: at most so many passes over the texts; None leaves it to the preset.
        preset: "default", or "paper" for the letter of the paper.
        vectors: pretrained word vectors, or a file of them.
        settings: any other setting by its name, for example {"em.estep": "blocks"}.
        random_state: a whole number makes the result repeatable; None draws a new one each time.
        verbose: show progress on stderr.

    Attributes, after `fit`:
        classes_: the labels, sorted, in their own type; the columns of `predict_proba`.
        model_: the trained Model.
        history_: one Epoch after the other.
        best_epoch_: the one whose weights were kept, counted from 0.
    """

    def __init__(
        self,
        *,
        epochs: int | None = None,
        preset: str = "default",
        vectors: str | Path | Vectors | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: int | None = 0,
        verbose: bool = False,
    ) -> None:
        self.epochs = epochs
        self.preset = preset
        self.vectors = vectors
        self.settings = settings
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Texts, y: Iterable[Any], sample_weight: Iterable[Any] | None = None) -> "EMHRNNClassifier":
        """Train on texts and their labels: strings, whole numbers or booleans, one per text.

        A tenth of the texts (`data.validation`) is held out to pick the best epoch. A text of weight 2 counts in
        training as if it were there twice.
        """
        texts = _checked(X)
        config = self._config()
        vectors = self.vectors if isinstance(self.vectors, Vectors | None) else read_vectors(Path(self.vectors))
        check_settings(config, vectors)
        given = np.asarray(y if hasattr(y, "__len__") else list(y))
        labels, names = _label_names(given)
        corpus = Corpus.from_texts(
            texts, [names[label] for label in given.tolist()], classes=list(names.values()),
            text=text_settings(config.data), weights=None if sample_weight is None else list(sample_weight),
        )  # fmt: skip
        corpus.check_trainable()
        corpus = in_model_words(corpus, config, vectors)
        train, valid = corpus.split(config.data.validation, numpy_generator(config.training.seed, Purpose.SPLIT))
        table = embedding_table(config, corpus.vocabulary, vectors)
        run = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
        self._fitted = fit(run, train, valid, progress=self.verbose)
        self.classes_ = labels
        self.model_ = Model(run)
        self.history_ = self._fitted.epochs
        self.best_epoch_ = self._fitted.best.epoch
        return self

    def predict_proba(self, X: Texts) -> Float32[np.ndarray, "texts classes"]:
        check_is_fitted(self)
        return self.model_.predict_proba(_checked(X))

    def predict(self, X: Texts) -> np.ndarray:
        """The label of each text, in the type of the labels that were given to `fit`."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: np.ndarray = self.classes_[best]
        return labels

    @overload
    def explain(self, X: str) -> Explanation: ...  # type: ignore[overload-overlap] # a str is a sequence of str
    @overload
    def explain(self, X: Texts) -> list[Explanation]: ...
    def explain(self, X: str | Texts) -> Explanation | list[Explanation]:
        """One Explanation for a text, a list of them for several."""
        check_is_fitted(self)
        return self.model_.explain(X if isinstance(X, str) else _checked(X))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a run folder, as `emhrnn train` does, for `emhrnn.load` and all commands. Labels are strings there."""
        check_is_fitted(self)
        folder, run = Path(folder), self.model_.run
        with run_folder(folder, overwrite=overwrite):
            describe(folder, run)
            for epoch in self.history_:
                history.append(folder / HISTORY, epoch)
            save_weights(folder, run, self.best_epoch_)
            write_metrics(folder, self._fitted)

    def _config(self) -> Config:
        seed = self.random_state if self.random_state is not None else np.random.SeedSequence().generate_state(1)[0]
        chosen: dict[str, Any] = {"training.seed": int(seed)}
        if self.epochs is not None:
            chosen["training.epochs"] = self.epochs
        return with_settings(make_config(self.preset), {**chosen, **(self.settings or {})})


def _checked(texts: Any) -> list[str]:
    """Strings, from any sequence of them: a list, an array, a column of a table."""
    if isinstance(texts, str):
        raise DataError("one string was given; give a list of texts, for example [text]")
    listed = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for number, text in enumerate(listed, start=1):
        if not isinstance(text, str):
            raise DataError(f"text {number} is a {type(text).__name__}; give one string per document")
    return listed


def _label_names(given: np.ndarray) -> tuple[np.ndarray, dict[Any, str]]:
    """The distinct labels, sorted, and the name of each in the run folder."""
    if given.ndim != 1:
        raise DataError(f"the labels have the shape {given.shape}; give one label per text")
    try:
        labels = np.unique(given)
    except TypeError:
        raise DataError("the labels are of several types; give all texts strings, or all whole numbers") from None
    names: dict[Any, str] = {}
    for label in labels.tolist():
        name = clean_label(label)
        if not isinstance(name, str):
            raise DataError(f"{label!r} is no label; give every text a string or a number")
        if name in names.values():
            other = next(key for key, value in names.items() if value == name)
            raise DataError(f"the labels {other!r} and {label!r} are both written {name!r}; rename one")
        names[label] = name
    return labels, names
