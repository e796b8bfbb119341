"""The Python interface: `emhrnn.train("reviews.csv", "run")` makes a run folder, `emhrnn.load("run")` a classifier."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from emhrnn.corpus.encode import Names, Texts, checked_texts
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.decision import Conformal, Decision, decision
from emhrnn.evaluation.predict import predict
from emhrnn.explain.contrast import Contrast, contrast
from emhrnn.explain.counterfactual import LIMIT, Counterfactual, counterfactual
from emhrnn.explain.explainer import EFFECTS, VALUES, explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.extras import need
from emhrnn.shapes import Float, Float32
from emhrnn.training.pack import located
from emhrnn.training.run import Run, load_run

if TYPE_CHECKING:
    from emhrnn.corpus.dataset import Corpus
    from emhrnn.evaluation.scores import Scores
    from emhrnn.text import Vectors, Vocabulary
    from emhrnn.training.config import Config
    from emhrnn.training.data import Named
    from emhrnn.training.progress import Epoch, FitResult, Step, Tracker


class Model:
    """Predicts and explains texts with a run.

        model = emhrnn.load("run")
        model.predict(["The soup was cold."])         # ["1"]
        model.explain("The soup was cold.")           # an Explanation

        model.partial_fit(["The soup was cold."], ["2"]).save("run2")

    Texts are a list, an array or a column of strings.
    """

    _epoch = 0  # of the weights

    def __init__(self, run: Run, folder: Path | None = None) -> None:
        """`folder` is where the run is from, and its training documents, if it still has them."""
        self.run, self.folder, self._on_disk = run, folder, run

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the columns of `predict_proba`."""
        return self.run.classes

    def predict_proba(
        self, texts: Texts, *, users: Names = None, products: Names = None
    ) -> Float32[np.ndarray, "texts classes"]:
        """The probability of every class. Rows sum to 1, except where a document may have several labels.

        `users` and `products` say who wrote each text and about what, for models that read it. A name that training has
        not seen, or None, is read as the average user or product.

        Raises:
            DataError: a text has no words, or there are not as many names as texts.
        """
        listed = checked_texts(texts)
        if not listed:
            return np.zeros((0, len(self.classes)), dtype=np.float32)
        if self.run.config.reads_ids and (users is None or products is None):
            raise DataError(
                f"the model {self.run.config.model.name} reads who wrote a text and about what; give users= and "
                "products=, with None where they are not known"
            )
        self._check_ids(users, products)
        run = self.run
        batch = run.encoder.encode(listed, users=users, products=products)
        return predict(run.model, batch, multi_label=run.multi_label, temperature=run.temperature).probabilities

    def predict(
        self,
        texts: Texts,
        *,
        users: Names = None,
        products: Names = None,
        min_confidence: float | None = None,
        threshold: float | Mapping[str, float] | None = None,
    ) -> list[Any]:
        """The class of each text, a string; where documents have several labels, a tuple of all that are more likely
        than not, or than the `threshold`: a number, or one for each of some labels. Of two classes, `threshold` names
        one: {"spam": 0.9} predicts spam only above 0.9. With `min_confidence`, None where the likeliest class has a
        lower probability.

        Raises:
            ConfigError: a number or a label that the run cannot use.
        """
        classes, several = self.run.classes, self.run.multi_label
        rule = decision(classes, multi_label=several, min_confidence=min_confidence, threshold=threshold)
        return rule.labels(self.predict_proba(texts, users=users, products=products))

    def predict_sets(
        self, texts: Texts, *, coverage: float = 0.9, users: Names = None, products: Names = None
    ) -> list[tuple[str, ...]]:
        """For each text, a set of classes that holds the true one with a chance of at least `coverage`, the likeliest
        first (split conformal prediction, docs/abstain.md). It holds for texts like those that the run was calibrated
        on: the validation data, or what `emhrnn calibrate` was given.

        Raises:
            ConfigError: the run was not calibrated, on too few documents, or gives several labels per document.
        """
        shares = self.predict_proba(texts, users=users, products=products)
        order = np.argsort(-shares, axis=1, kind="stable")
        inside = conformal_of(self.run).sets(shares, coverage)
        return [
            tuple(self.classes[c] for c in row if is_in[c]) for row, is_in in zip(order.tolist(), inside, strict=True)
        ]

    @overload
    def explain(
        self,
        texts: str,
        *,
        users: Names = None,
        products: Names = None,
        exact: bool | None = None,
        values: str = EFFECTS,
        label: str | None = None,
    ) -> Explanation: ...
    @overload
    def explain(
        self,
        texts: Texts,
        *,
        users: Names = None,
        products: Names = None,
        exact: bool | None = None,
        values: str = EFFECTS,
        label: str | None = None,
    ) -> list[Explanation]: ...
    def explain(
        self,
        texts: str | Texts,
        *,
        users: Names = None,
        products: Names = None,
        exact: bool | None = None,
        values: str = EFFECTS,
        label: str | None = None,
    ) -> Explanation | list[Explanation]:
        """Which sentence, phrase and word decided: one Explanation for a text, a list of them for several. `users` and
        `products` as in `predict_proba`, but where they are left out, the average ones are meant. `exact` effects
        really leave out each phrase and each sentence; by default they are exact for one text and estimated for
        several, which is faster. The effects of the evidence model are always exact (docs/explanations.md).
        `values="owen"` gives fair shares that add up to the prediction, for about sixteen predictions a word.
        With `label`, effects are on that label instead of the predicted one (models whose evidence is exact)."""
        if values not in VALUES:
            raise ConfigError(f"values is {values!r}; give one of {', '.join(VALUES)}")
        one = isinstance(texts, str)
        many = [texts] if isinstance(texts, str) else checked_texts(texts)
        self._check_ids(users, products)
        explanations = explain_texts(
            self.run, many, users=users, products=products, exact=one if exact is None else exact, values=values,
            target=label,
        )  # fmt: skip
        return explanations[0] if isinstance(texts, str) else explanations

    def why_not(self, text: str, label: str, *, user: str | None = None, product: str | None = None) -> Contrast:
        """Why the text has the label it has, and not this one: what each phrase says for the one over the other. With
        several labels per document, what supports and opposes the label. `user` and `product` as in `counterfactual`.

        Raises:
            ConfigError: there is no such label, or it is the one predicted.
        """
        self._check_ids([user], [product])
        return contrast(self.run, checked_texts([text])[0], label, user=user, product=product)

    def counterfactual(
        self, text: str, *, user: str | None = None, product: str | None = None, limit: int = LIMIT
    ) -> Counterfactual:
        """The smallest set of phrases without which the prediction is another, as far as up to `limit` are enough; its
        `explanation` is that of `explain`. `user` and `product` say who wrote the text and about what; the average ones
        where they are left out."""
        self._check_ids([user], [product])
        return counterfactual(self.run, checked_texts([text])[0], user=user, product=product, limit=limit)

    def evaluate(self, texts: Texts, labels: Sequence[Any]) -> "Scores":
        """Accuracy, macro-F1, AUC, loss, calibration and the scores of each class on labelled texts.

        Raises:
            DataError: a text has no words, a label is none of `classes`, or there are not as many labels as texts.
        """
        from emhrnn.corpus.dataset import Corpus
        from emhrnn.evaluation.scores import score

        run = self.run
        corpus = Corpus.from_texts(
            checked_texts(texts), labels, vocabulary=run.vocabulary, classes=run.classes, text=run.text
        )
        predicted = run.predict(corpus)
        assert corpus.labels is not None
        return score(predicted.probabilities, corpus.labels, run.classes, predicted.phrases)

    def partial_fit(self, texts: Texts, labels: Sequence[Any], *, settings: Mapping[str, Any] | None = None) -> "Model":
        """Learn from more labelled texts, such as corrections; words and classes may be new. The model changes, the
        folder that it is from does not: `save` it. Some documents from before are trained on again, if the folder still
        has them (docs/updating.md).

        Raises:
            ConfigError: the model is fitted in one go, or reads users and products.
        """
        need("torch", "training")
        from emhrnn.corpus.dataset import Corpus
        from emhrnn.training.progress import TrainingContext
        from emhrnn.training.updates import continued, trainable

        listed, run = checked_texts(texts), trainable(self.run)

        def read(vocabulary: "Vocabulary | None", classes: tuple[str, ...] | None) -> Corpus:
            least = 1 if vocabulary is not None else self.run.config.data.min_count
            return Corpus.from_texts(
                listed, labels, vocabulary=vocabulary, classes=classes, min_count=least, text=self.run.text
            )

        with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
            done = continued(self.folder, run, read, Path(scratch), settings, TrainingContext(progress=False))
        self.run, self._epoch = done.run, done.fitted.best.epoch
        return self

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model as a run folder for `load` and all commands, without training documents, history or scores.

        Raises:
            DataError: something is there already; `overwrite` replaces a run.
        """
        from emhrnn.training.folder import run_folder
        from emhrnn.training.run import describe, save_weights

        with run_folder(Path(folder), overwrite=overwrite):
            describe(Path(folder), self.run)
            save_weights(Path(folder), self.run, self._epoch)

    def push_to_hub(self, name: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the run to the Hugging Face Hub as `user/name`, with its card; `load("hf://user/name")` gets it from
        there. Returns its address. `token` is one of the Hub that may write; by default the one that you are logged in
        with. docs/move.md says what the file reveals about the training data.

        Raises:
            DataError: the run is not on disk, the name is none, or the Hub refused it.
        """
        from emhrnn.training.pack import pushed

        if self.folder is None or self.run is not self._on_disk:  # it may have learned more since
            raise DataError("this model is not on disk as it is now; save it to a folder first, then load that folder")
        return pushed(self.folder, name, private=private, token=token)

    def _check_ids(self, users: Names, products: Names) -> None:
        named = any(name is not None for names in (users, products) for name in names or ())
        if named and not self.run.config.reads_ids:
            raise DataError(
                f"the model {self.run.config.model.name} does not read who wrote a text or about what; leave users and "
                "products out, or give a run that was trained with ids"
            )

    def __repr__(self) -> str:
        return f"<emhrnn {self.run.config.model.name}: {len(self.classes)} classes, {len(self.run.vocabulary)} words>"


def load(folder: str | Path) -> Model:
    """The trained classifier of a run folder, as `emhrnn train` or `DocumentClassifier.save` wrote it; of a file that
    `emhrnn pack` wrote; of the Hugging Face Hub, as in "hf://user/name"; or "demo", a small model of reviews that the
    package has inside.

    Raises:
        CheckpointError: it is not a run, is damaged, or of another version.
    """
    path = located(folder)
    return Model(load_run(path), path)


def labels_of(run: Run, probabilities: Float[np.ndarray, "texts classes"]) -> list[Any]:
    """The predicted class of each text; or all that are more likely than not, where there may be several."""
    return Decision(run.classes, run.multi_label).labels(probabilities)


def conformal_of(run: Run) -> Conformal:
    """What the sets of labels of a run are made with.

    Raises:
        ConfigError: it has none.
    """
    if run.multi_label:
        raise ConfigError("sets of labels are for one label per document, and this run gives several; use a threshold")
    if run.conformal is None:
        raise ConfigError(
            "this run was not calibrated by this version, so there are no sets of labels; calibrate it on labelled "
            "documents that it was not trained on: emhrnn calibrate RUN DATA"
        )
    return run.conformal


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gave: the model, and how it came to be."""

    model: Model
    fitted: "FitResult"
    folder: Path
    train: "Corpus"
    valid: "Corpus"


def train(
    data: "str | Path | Named | None",
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    config: "Config | None" = None,
    start: str | Path | None = None,
    vectors: "str | Path | Vectors | None" = None,
    valid: str | Path | None = None,
    split: str | None = None,
    valid_split: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    weight_column: str | None = None,
    spans_column: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    log: "Sequence[str | Tracker]" = (),
    progress: bool = True,
    on_epoch: "Callable[[Epoch], None] | None" = None,
    on_step: "Callable[[Step], None] | None" = None,
    say: Callable[[str], None] = print,
) -> Trained:
    """Train on a file in any format, a folder per class or a prepared corpus, and leave a run folder at `out`.

    Args:
        settings: values by name, for example {"training.epochs": 3, "training.seed": 7}.
        config: all settings, instead of `settings`, for example from `make_config`.
        start: a run to continue from, with new documents in `data`; words and classes may be new (docs/updating.md).
            Of the settings, those of `training` may be given; there is no `valid`, `vectors` or `resume`.
        vectors: pretrained word vectors, or a file of them.
        valid: validation data; by default 10 % of the data.
        split: train on the rows whose split column says so.
        valid_split: validate on the rows of `data` whose split column says so.
        text_column, label_column, format: of the data and of `valid`; by default guessed.
        encoding: of text files, such as cp1252; by default detected.
        weight_column: how often a row of the data counts in training; validation counts every row once.
        spans_column: parts of the text that people marked as reasons for the label, as lists of [start, end) in
            characters; empty where nothing is marked (docs/explanations.md).
        overwrite: replace a run that is at `out`.
        resume: continue the run at `out`, if there is one, as if it had never stopped. Data, vectors and settings may
            be left out (data: None); what is given must be the same, except `training.epochs`, `patience`, `threads`
            and `checkpoint_seconds`. With more epochs, a finished run trains on. Processes that torchrun has started
            again always resume the run that they had begun.
        log: where losses and scores go, too: "tensorboard" (RUN/tensorboard), "mlflow", "wandb", or a
            `training.progress.Tracker`.
        progress: a live view in a terminal, else a line per epoch, on stderr.
        on_epoch, on_step: called when an epoch or a step is done.
        say: takes remarks, such as about damaged checkpoints or phrases that have collapsed.

    Raises:
        EmhrnnError: the data, a setting or `out` cannot be used; the message says what to do.
    """
    need("torch", "training")
    from emhrnn.corpus import Columns, is_corpus
    from emhrnn.models.table import DEFAULT, MODELS
    from emhrnn.training.config import make_config
    from emhrnn.training.data import Named, learned_from
    from emhrnn.training.distributed import begun_by_this_job, joined
    from emhrnn.training.progress import TrainingContext
    from emhrnn.training.resume import followed_run, resumed_run
    from emhrnn.training.run import is_run, model_of
    from emhrnn.training.train import Opened, fit, new_run_at
    from emhrnn.training.updates import continue_run

    out = Path(out)
    if settings is not None and config is not None:
        raise ConfigError("settings and config were given; give one of them")
    if valid is not None and valid_split is not None:
        raise ConfigError("the validation data is given twice, as data and as a split; give one of them")
    if valid_split is not None and split in (None, valid_split):
        raise ConfigError(
            f"the rows of the split {valid_split!r} would be trained on, too; name those to train on with --split"
        )
    if resume and overwrite:
        raise ConfigError("resume and overwrite were both given; resume continues the run, overwrite replaces it")
    model = model_of(out) if resume and is_run(out) else DEFAULT
    chosen = config or make_config(settings=settings, model=model)
    columns = Columns(text=text_column, label=label_column)
    named = data if isinstance(data, Named) else None
    if isinstance(data, str | Path):
        weighed = replace(columns, weight=weight_column, spans=spans_column)
        named = Named(path=Path(data), format=format, columns=weighed, split=split, encoding=encoding)
    valid_data = None
    if valid_split is not None and named is not None:
        valid_data = replace(named, columns=columns, split=valid_split)
    elif valid is not None:  # what is said of the data holds for raw validation data too
        valid_data = Named(path=Path(valid))
        if not is_corpus(valid_data.path):
            valid_data = replace(valid_data, format=format, columns=columns, encoding=encoding)
    source = Path(vectors) if isinstance(vectors, str) else vectors
    if start is not None:
        if named is None or valid_data is not None or source is not None or resume:
            raise ConfigError("a run is continued with new data alone; leave out valid, vectors and resume")
        fixed = [
            f"{section}.{name}"
            for section in ("data", "model", "em")
            for name in sorted(getattr(chosen, section).model_fields_set - {"name"})
        ]
        if fixed:
            raise ConfigError(f"{fixed[0]} cannot be changed when a run is continued; leave it out, or train again")
        given = {f"training.{name}": value for name, value in chosen.training.model_dump(exclude_unset=True).items()}
        with ExitStack() as stack:
            context = TrainingContext(progress, on_epoch, on_step, say, trackers=_entered(stack, log, out))
            done = continue_run(located(start), named, out, given, context, overwrite=overwrite)
        return Trained(Model(done.run, out), done.fitted, out, done.train, done.valid)
    with joined() as job:
        quiet = TrainingContext(progress=False, say=lambda _: None, job=job)
        context = TrainingContext(progress, on_epoch, on_step, say, job) if job.first else quiet
        opening: AbstractContextManager[Opened]
        if not job.first:
            opening = nullcontext(followed_run(out, job))
        elif (resume or begun_by_this_job(out)) and is_run(out):
            opening = resumed_run(out, context, data=named, valid=valid_data, config=chosen, vectors=source)
        elif named is not None:
            opening = new_run_at(out, named, chosen, context, valid=valid_data, vectors=source, overwrite=overwrite)
        else:
            why = f"there is no run at {out} to resume" if resume else "no data was given"
            raise DataError(f"{why}; give the data to train on")
        with ExitStack() as stack:
            context = replace(context, trackers=_entered(stack, log if job.first else (), out))
            opened = stack.enter_context(opening)
            corpora = opened.train, opened.valid
            fitted = opened.finished or fit(opened.run, *corpora, context, folder=out, select=opened.select)
    remarks = MODELS[opened.run.config.model.name].remarks
    for remark in [] if remarks is None else remarks(opened.run.config, fitted, opened.valid):
        context.say(remark)
    if job.first and valid_data is not None and learned_from(out, valid_data):
        say(f"{valid_data.path} holds documents that were trained on, too: validation says little about new ones")
    return Trained(Model(opened.run, out), fitted, out, opened.train, opened.valid)


def _entered(stack: ExitStack, log: "Sequence[str | Tracker]", out: Path) -> "list[Tracker]":
    """The trackers that are asked for, until the stack is closed."""
    from emhrnn.training.progress import Tracker, tracker

    return [stack.enter_context(one if isinstance(one, Tracker) else tracker(one, out)) for one in log]
