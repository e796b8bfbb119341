"""What the pages and the API share: the models that are served, the limits, the files, the counters."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from fastapi import Request
from jaxtyping import Float32

from emhrnn.api import Model
from emhrnn.errors import EmhrnnError
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.table import MODELS
from emhrnn.serve.engine import Engine
from emhrnn.serve.limits import Limits, RefusedError
from emhrnn.serve.telemetry import Telemetry
from emhrnn.serve.written import Written, columns_of
from emhrnn.training.data import reads_ids


@dataclass(frozen=True, eq=False)
class Served:
    """A run and the thread that its model runs in."""

    name: str
    folder: Path
    model: Model
    engine: Engine

    @property
    def explains(self) -> bool:
        """Whether there are weights to show."""
        return "words" in self._shows

    @property
    def has_phrases(self) -> bool:
        return "phrases" in self._shows

    @property
    def _shows(self) -> tuple[str, ...]:
        name = self.model.run.config.model.name
        return MODELS[name].shows if name in MODELS else ()

    @property
    def reads_ids(self) -> bool:
        """Whether who wrote a text, and about what, makes a difference."""
        return reads_ids(self.model.run.config)

    async def predict(self, documents: list[Written]) -> Float32[np.ndarray, "documents classes"]:
        self._check_ids(documents)
        try:
            return await self.engine.predict(documents)
        except EmhrnnError as error:
            raise RefusedError(422, str(error)) from None

    async def explain(self, documents: list[Written], threshold: float | None = None) -> list[Explanation]:
        self._check_ids(documents)
        name = self.model.run.told_model
        if not self.explains:
            raise RefusedError(
                422, f"{name} has no weights of words and sentences to explain with; serve a run of evidence or em-hrnn"
            )
        if threshold is not None and not isinstance(self.model.run.model, EMHRNN):
            raise RefusedError(
                422,
                f"{name} has no threshold for the ends of phrases; leave it out, or serve em-hrnn with one level",
            )
        try:
            if threshold is None:
                return await self.engine.explain(documents)
            run, texts = self.model.run, columns_of(documents).texts
            return await self.engine.run(lambda: explain_texts(run, texts, threshold=threshold))
        except EmhrnnError as error:
            raise RefusedError(422, str(error)) from None

    def _check_ids(self, documents: list[Written]) -> None:
        if not self.reads_ids and any((d.user, d.product) != (None, None) for d in documents):
            raise RefusedError(
                422,
                f"{self.model.run.told_model} does not read who wrote a text, or about what; leave users and products "
                "out, or serve a run that was trained with ids",
            )


@dataclass(frozen=True, eq=False)
class State:
    served: tuple[Served, ...]
    limits: Limits
    data: Path | None
    token: str | None
    telemetry: Telemetry = field(default_factory=Telemetry)

    @property
    def first(self) -> Served:
        return self.served[0]

    def named(self, name: str | None) -> Served:
        if name is None:
            return self.first
        for served in self.served:
            if served.name == name:
                return served
        names = " or ".join(dict.fromkeys(repr(served.name) for served in self.served))
        raise RefusedError(422, f"run {name[:80]!r} is not served; give {names}, or leave it out for the first one")


def state_of(request: Request) -> State:
    state: State = request.app.state.emhrnn
    return state
