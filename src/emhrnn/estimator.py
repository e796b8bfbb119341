"""`DocumentClassifier` and `EMHRNNClassifier`: every model in the manner of scikit-learn, for texts in memory."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from emhrnn.api import Model
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import Texts, checked_texts
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.predict import predict
from emhrnn.explain.explanation import Explanation
from emhrnn.extras import need
from emhrnn.layers.phrases import NONE
from emhrnn.models.evidence_reader import EvidenceReader
from emhrnn.models.table import MODELS
from emhrnn.shapes import Float32, Float64
from emhrnn.targets import Targets
from emhrnn.text import Vectors, read_vectors
from emhrnn.training.card import write_results
from emhrnn.training.config import Config, make_config
from emhrnn.training.folder import run_folder
from emhrnn.training.run import Run, describe, new_run, run_files, run_of_files, save_weights

if TYPE_CHECKING:
    from emhrnn.corpus.dataset import Corpus
    from emhrnn.training.updates import Increments

PARAMETERS = {  # the settings that have a parameter of their own
    "model": "model.name",
    "epochs": "training.epochs",
    "validation_fraction": "data.validation",
    "n_iter_no_change": "training.patience",
    "random_state": "training.seed",
}
NOT_FITTED = (
    "This %(name)s is not fitted yet: call fit(texts, labels) first. A classifier that was saved is loaded with "
    "emhrnn.load(folder)."
)


class DocumentClassifier(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Classifies texts with any model of `emhrnn models`.

        classifier = DocumentClassifier(model="hn-att", epochs=6).fit(texts, labels)
        classifier.predict(["The soup was cold."])
        classifier.save("run")                              # for emhrnn.load and the command line

    Parameters:
        model: "evidence", or another name that `emhrnn models` lists.
        epochs: at most so many passes over the texts; None leaves it to the preset.
        preset: "default", or "paper" for the paper's exact settings.
        vectors: pretrained word vectors, or a file of them.
        class_weight: "balanced", or a dict of label: weight; for one label per text.
        validation_fraction: share of the texts that is held out to pick the best epoch; None: up to 1,500 texts are
            cross-validated (docs/classes.md), of more a tenth is held out.
            With 0, all texts are learned from, the last epoch is kept, probabilities are not calibrated, and the scores
            in `history_` are of training texts.
        n_iter_no_change: epochs without improvement before training stops; None: as `training.patience`.
        settings: any other setting by its name, for example {"em.estep": "blocks"}.
        random_state: a whole number makes the result repeatable; a RandomState is drawn from; None is new each time.
        verbose: show progress on stderr.

    Attributes:
        classes_: the labels, sorted, in their own type; the columns of `predict_proba`. Where `partial_fit` was given a
            table of 0 and 1, its `classes` name the columns and are in their order.
        n_iter_: passes over the texts.
        model_: the trained Model.
        history_: one Epoch after the other; best_epoch_: the one whose weights were kept, counted from 0.

    A text is one value, not a row of features, so there is no `n_features_in_` and no `feature_names_in_`.
    """

    model_: Model

    def __init__(
        self,
        model: str = "evidence",
        *,
        epochs: int | None = None,
        preset: str = "default",
        vectors: str | Path | Vectors | None = None,
        class_weight: str | Mapping[Any, Any] | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int | None = None,
        settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.preset = preset
        self.vectors = vectors
        self.class_weight = class_weight
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.settings = settings
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Texts,
        y: Any,
        sample_weight: Iterable[Any] | None = None,
        *,
        validation: Any = None,
    ) -> "DocumentClassifier":
        """Train on texts and their labels (see `emhrnn.targets` for their kinds). A text of weight 2 counts in training
        as if it were there twice. `validation`, a pair of other texts and their labels, picks the best epoch."""
        need("torch", "training")
        from emhrnn.training.data import held_out, selects
        from emhrnn.training.progress import TrainingContext
        from emhrnn.training.train import fit

        if validation is not None and (not isinstance(validation, tuple | list) or len(validation) != 2):
            raise DataError("validation is not a pair of texts and labels; give validation=(texts, labels)")
        targets, run, corpus = self._begin(X, _kept(y), sample_weight, validated=validation is not None)
        run.lengths = corpus.length_range
        if validation is None:
            train, valid = held_out(corpus, run.config)
        else:
            train, valid = corpus, self._corpus(validation[0], _kept(validation[1]), None, targets, run)
        select = validation is not None or selects(run.config)
        fitted = fit(run, train, valid, TrainingContext(progress=self.verbose), select=select)
        self._fitted = fitted
        self._increments: Increments | dict[str, Any] | None = None
        self._learned(targets, run)
        self.history_, self.best_epoch_ = fitted.epochs, fitted.best.epoch
        self.n_iter_ = len(fitted.epochs)
        return self

    @available_if(lambda self: self.model not in MODELS or MODELS[self.model].learns != "fit")  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Texts,
        y: Any,
        classes: Iterable[Any] | None = None,
        sample_weight: Iterable[Any] | None = None,
    ) -> "DocumentClassifier":
        """One pass over some texts, starting from what was learned before. The first call needs all `classes` and fixes
        the vocabulary: words that its texts and the vectors do not hold stay unknown. Nothing is held out, so the
        temperature and the shares that `fit` found go, and none take their place."""
        need("torch", "training")
        from emhrnn.training.updates import Increments

        y = _kept(y)
        if not hasattr(self, "model_"):
            if classes is None:
                raise DataError("the first call of partial_fit was given no classes; give all labels that will come")
            targets, run, portion = self._begin(X, y, sample_weight, classes)
            increments = Increments(run)
            increments.add(portion)
            self._learned(targets, run)
            self.history_ = []
        else:
            if classes is not None and not self._targets.announced(classes):
                raise DataError(f"classes differ from those before, {self.classes_.tolist()}; leave them out")
            portion = self._corpus(X, y, sample_weight, self._targets, self.model_.run)
            # Set before it learns: it changes the model that is here, whose history is not its own any more.
            self._increments = increments = self._resumed()
            increments.run.lengths = None  # of documents that are not here any more
            increments.add(portion)
        self._increments = increments
        self.n_iter_ = increments.position.epoch
        return self

    def _resumed(self) -> "Increments":
        """Continues from what `fit` or `partial_fit` has learned, in this process or before a pickle."""
        from emhrnn.training.schedule import Position
        from emhrnn.training.updates import MOST_KNOWN, Increments, trainable

        before = self._increments
        if isinstance(before, Increments):
            return before
        run = trainable(self.model_.run)
        self.model_ = Model(run)
        if before is not None:
            return Increments.restored(run, before)
        epoch = max(len(self.history_), run.config.em.warmup_epochs)
        return Increments(run, Position(epoch=epoch), MOST_KNOWN)

    def _learned(self, targets: Targets, run: Run) -> None:
        """The labels and the model that answers by them, together and only when it has learned: what fails, or is
        interrupted, leaves the one from before, or none."""
        self._targets, self.classes_, self.model_ = targets, targets.classes, Model(run)

    def predict_proba(self, X: Texts) -> Float32[np.ndarray, "texts classes"]:
        """The probability of every class. Rows sum to 1, except where a text may have several labels."""
        check_is_fitted(self, msg=NOT_FITTED)
        return self.model_.predict_proba(X)

    def predict_log_proba(self, X: Texts) -> Float32[np.ndarray, "texts classes"]:
        """The logarithm of `predict_proba`."""
        logs: np.ndarray = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float32).tiny))
        return logs

    def decision_function(self, X: Texts) -> Float32[np.ndarray, "texts classes"] | Float32[np.ndarray, " texts"]:
        """The calibrated logit of every class; with two classes, one number per text: the log-odds of the second. The
        class of the largest is predicted; of several labels, all above 0."""
        check_is_fitted(self, msg=NOT_FITTED)
        run, texts = self.model_.run, checked_texts(X)
        if texts:
            logits = run.predict(run.encoder.encode(texts)).logits / np.float32(run.temperature)
        else:
            logits = np.zeros((0, len(run.classes)), dtype=np.float32)
        two = len(run.classes) == 2 and not run.multi_label
        return logits[:, 1] - logits[:, 0] if two else logits

    def predict(self, X: Texts) -> Any:
        """The label of each text in its own type; where there may be several, in the form that `fit` was given."""
        shares = self.predict_proba(X)
        return self._targets.predicted(shares)

    def score(self, X: Texts, y: Any, sample_weight: Iterable[Any] | None = None) -> float:
        """Share of the texts whose label, or set of labels, is right."""
        check_is_fitted(self, msg=NOT_FITTED)
        if not self._targets.multi_label:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        weights = None if sample_weight is None else list(sample_weight)
        return float(np.average(self._targets.right(y, self.predict_proba(X)), weights=weights))

    def transform(self, X: Texts) -> Float32[np.ndarray, "texts features"]:
        """Features for other estimators: the document vectors v, from which the classes are read. Of `evidence`, the
        evidence for each class, and how many phrases of 1, 2, ... words training has seen."""
        check_is_fitted(self, msg=NOT_FITTED)
        texts = checked_texts(X)
        return self._vectors(texts) if texts else self._vectors(["no text"])[:0]

    @property
    def _n_features_out(self) -> int:
        """For the names of what `transform` gives."""
        return int(self._vectors(["no text"]).shape[1])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of what `transform` gives."""
        check_is_fitted(self, msg=NOT_FITTED)
        reader = _reader(self.model_.run)
        if reader is None:
            names: np.ndarray = super().get_feature_names_out(input_features)
            return names
        evidence = [f"evidence_{name}" for name in self.model_.run.classes]
        return np.array([*evidence, *(f"phrases_{k}" for k in range(1, reader.longest + 1))], dtype=object)

    def _vectors(self, texts: list[str]) -> Float32[np.ndarray, "texts features"]:
        run = self.model_.run
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        predict(
            run.model, run.encoder.encode(texts), multi_label=run.multi_label,
            on_batch=lambda batch, output: parts.append((batch.rows, _features(run, batch, output.v))),
        )  # fmt: skip
        rows, vectors = (np.concatenate(column) for column in zip(*parts, strict=True))
        result: np.ndarray = vectors[np.argsort(rows)]
        return result

    @overload
    def explain(self, X: str) -> Explanation: ...
    @overload
    def explain(self, X: Texts) -> list[Explanation]: ...
    def explain(self, X: str | Texts) -> Explanation | list[Explanation]:
        """One Explanation for a text, a list of them for several."""
        check_is_fitted(self, msg=NOT_FITTED)
        return self.model_.explain(X)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a run folder, as `emhrnn train` does, for `emhrnn.load` and all commands. Labels are strings there.
        After `partial_fit` it holds no history, scores or card: those of `fit` were of other weights."""
        check_is_fitted(self, msg=NOT_FITTED)
        folder, run = Path(folder), self.model_.run
        with run_folder(folder, overwrite=overwrite):
            describe(folder, run)
            if self._increments is None:
                write_results(folder, run, self._fitted)
            else:
                save_weights(folder, run, self.n_iter_ - 1)

    def _begin(
        self,
        X: Texts,
        y: Any,
        sample_weight: Iterable[Any] | None,
        classes: Iterable[Any] | None = None,
        *,
        validated: bool = False,
    ) -> tuple[Targets, Run, "Corpus"]:
        """The kind of the labels, an untrained run, and the corpus in its words. `validated`: on other texts."""
        from emhrnn.training.data import embedding_table, in_model_words, selects, suited_to
        from emhrnn.training.train import check_settings
        from emhrnn.training.validation import with_folds

        config = self._config()
        vectors = self.vectors if isinstance(self.vectors, Vectors | None) else read_vectors(Path(self.vectors))
        check_settings(config, vectors)
        targets = Targets.of(y, classes)
        corpus = self._corpus(X, y, sample_weight, targets, config)
        if classes is None:
            corpus.check_trainable()
        elif len(targets.names) < 2:
            raise DataError(f"the only class is {targets.names[0]!r}; announce all labels that will come, two or more")
        corpus = in_model_words(corpus, config, vectors)
        if classes is None:  # else more documents may come
            config = config if validated else with_folds(config, corpus)
            config = suited_to(config, corpus, vectors, validated=validated or selects(config))
        table = embedding_table(config, corpus, vectors)
        run = new_run(
            config, corpus.vocabulary, corpus.classes, table,
            multi_label=targets.multi_label, text=corpus.text,
        )  # fmt: skip
        return targets, run, corpus

    def _corpus(
        self, X: Texts, y: Any, sample_weight: Iterable[Any] | None, targets: Targets, like: Config | Run
    ) -> "Corpus":
        """All words of the texts; or those that a run knows."""
        from emhrnn.corpus.dataset import Corpus
        from emhrnn.training.data import text_settings

        texts = checked_texts(X)
        weights = None if sample_weight is None else _numbers(sample_weight)
        if weights is not None and len(weights) != len(texts):  # one number alone would be taken for all texts
            raise DataError(f"{len(texts)} texts and {len(weights)} weights; give one weight per text")
        labels = targets.labels(y)
        if len(labels) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(labels)} labels; give one label per text")
        if self.class_weight is not None:
            of_class = targets.weights(y, self.class_weight)
            weights = of_class if weights is None else weights * of_class
        if weights is not None and len(weights) and not weights.any():
            raise DataError(f"all {len(weights)} texts have the weight 0; give some of them a larger one")
        return Corpus.from_texts(
            texts,
            labels,
            classes=list(targets.names),
            text=like.text if isinstance(like, Run) else text_settings(like.data),
            vocabulary=like.vocabulary if isinstance(like, Run) else None,
            weights=None if weights is None else weights.tolist(),
        )

    def _config(self) -> Config:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        if not isinstance(self.settings, Mapping | None):
            raise ConfigError(f"settings is {self.settings!r}; give a dict of names and values, as {{'em.rate': 0.2}}")
        chosen: dict[str, Any] = {}
        for parameter, name in PARAMETERS.items():
            value = getattr(self, parameter)
            other = (self.settings or {}).get(name, value)
            if other != value and value is not None and not (parameter == "random_state" and value == 0):
                raise ConfigError(  # one of them would be passed over in silence, as in a search over `epochs`
                    f"{parameter} is {value!r}, and the settings have {name} = {other!r}; give one of them"
                )
            if value is not None:
                chosen[name] = value
        return make_config(self.preset, settings={**chosen, "training.seed": int(seed), **(self.settings or {})})

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, arrays and bytes: the run as the files of its folder."""
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = run_files(self.model_.run)
            before = self._increments
            state["_increments"] = before if isinstance(before, dict | None) else before.state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(dict(state))
        if "model_" in state:
            self.model_ = Model(run_of_files(state["model_"]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.classifier_tags.multi_label = True
        return tags


def _reader(run: Run) -> EvidenceReader | None:
    """The trained model, where it is `evidence`."""
    model = getattr(run.model, "reader", run.model)
    return model if isinstance(model, EvidenceReader) else None


def _features(
    run: Run, batch: Batch, vectors: Float32[np.ndarray, "texts size"]
) -> Float32[np.ndarray, "texts features"]:
    reader = _reader(run)
    if reader is None:
        return vectors
    seen = reader.index.rows(batch, reader.longest) != NONE  # (words, K)
    phrases = np.add.reduceat(seen, batch.word_offsets[:-1], dtype=np.float32)
    return np.concatenate([vectors, phrases], axis=1)


def _kept(y: Any) -> Any:
    """The labels, to be read more than once."""
    return list(y) if isinstance(y, Iterator) else y


def _numbers(weights: Iterable[Any]) -> Float64[np.ndarray, " texts"]:
    try:
        return np.asarray(list(weights), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("the weights are no sequence of numbers; give one number per text") from None


class EMHRNNClassifier(DocumentClassifier):
    """`DocumentClassifier(model="em-hrnn")`: shows which sentence, phrase and word decided. All else is said there.

    classifier = EMHRNNClassifier(epochs=6).fit(texts, labels)
    classifier.explain("The soup was cold.")
    """

    __init__ = partialmethod(DocumentClassifier.__init__, "em-hrnn")  # scikit-learn reads the parameters from it
