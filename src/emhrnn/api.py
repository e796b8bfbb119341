"""A trained classifier, ready to use: `emhrnn.load("run")`."""

from pathlib import Path
from typing import overload

import numpy as np
from jaxtyping import Float32

from emhrnn.corpus.encode import Names, Texts, checked_texts
from emhrnn.errors import DataError
from emhrnn.evaluation.predict import predict
from emhrnn.explain.counterfactual import LIMIT, Counterfactual, counterfactual
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.training.data import reads_ids
from emhrnn.training.run import Run, load_run

THRESHOLD = 0.5  # of a label among several


class Model:
    """Predicts and explains texts with a run.

    model = emhrnn.load("run")
    model.predict(["The soup was cold."])         # ["1"]
    model.explain("The soup was cold.")           # an Explanation
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names, in the order of the columns of `predict_proba`."""
        return self.run.classes

    def predict_proba(
        self,
        texts: Texts,
        *,
        users: Names = None,
        products: Names = None,
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
        if reads_ids(self.run.config) and (users is None or products is None):
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
    ) -> list[str] | list[tuple[str, ...]]:
        """The class of each text; where documents have several labels, all that are more likely than not."""
        return labels_of(self.run, self.predict_proba(texts, users=users, products=products))

    @overload
    def explain(
        self, texts: str, *, users: Names = None, products: Names = None, thorough: bool = False
    ) -> Explanation: ...
    @overload
    def explain(
        self, texts: Texts, *, users: Names = None, products: Names = None, thorough: bool = False
    ) -> list[Explanation]: ...
    def explain(
        self, texts: str | Texts, *, users: Names = None, products: Names = None, thorough: bool = False
    ) -> Explanation | list[Explanation]:
        """Which sentence, phrase and word decided: one Explanation for a text, a list of them for several. `users` and
        `products` as in `predict_proba`, but where they are left out, the average ones are meant. `thorough` effects
        look twice: truer, for the cost of about five predictions (docs/explanations.md). The evidence model takes none:
        its effects are exact."""
        many = [texts] if isinstance(texts, str) else checked_texts(texts)
        self._check_ids(users, products)
        explanations = explain_texts(self.run, many, users=users, products=products, thorough=thorough)
        return explanations[0] if isinstance(texts, str) else explanations

    def counterfactual(
        self, text: str, *, user: str | None = None, product: str | None = None, limit: int = LIMIT
    ) -> Counterfactual:
        """The smallest set of phrases without which the prediction is another, as far as up to `limit` are enough.
        `user` and `product` say who wrote it and about what; the average ones where they are left out."""
        self._check_ids([user], [product])
        explanation = explain_texts(self.run, checked_texts([text]), users=[user], products=[product])[0]
        return counterfactual(self.run, text, explanation, user=user, product=product, limit=limit)

    def _check_ids(self, users: Names, products: Names) -> None:
        named = any(name is not None for names in (users, products) for name in names or ())
        if named and not reads_ids(self.run.config):
            raise DataError(
                f"the model {self.run.config.model.name} does not read who wrote a text or about what; leave users and "
                "products out, or give a run that was trained with ids"
            )

    def __repr__(self) -> str:
        return f"<emhrnn {self.run.config.model.name}: {len(self.classes)} classes, {len(self.run.vocabulary)} words>"


def load(folder: str | Path) -> Model:
    """The trained classifier of a run folder, as `emhrnn train` or `EMHRNNClassifier.save` wrote it.

    Raises:
        CheckpointError: the folder is no run, is damaged, or of another version.
    """
    return Model(load_run(Path(folder)))


def labels_of(run: Run, probabilities: Float32[np.ndarray, "texts classes"]) -> list[str] | list[tuple[str, ...]]:
    if run.multi_label:
        return [tuple(run.classes[i] for i in np.flatnonzero(row > THRESHOLD)) for row in probabilities]
    return [run.classes[best] for best in probabilities.argmax(axis=1)]
