"""What the pages and the API share: the models that are served, the limits, the files, the counters."""

from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from emhrnn.errors import EmhrnnError
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.products.model import Model
from emhrnn.products.serve.engine import Engine
from emhrnn.products.serve.limits import Limits, RefusedError
from emhrnn.products.serve.telemetry import Telemetry


@dataclass(frozen=True, eq=False)
class Served:
    """A run and the thread that its model runs in."""

    name: str
    folder: Path
    model: Model
    engine: Engine

    @property
    def explains(self) -> bool:
        """Whether there are phrases to show."""
        return isinstance(self.model.run.model, EMHRNN)

    async def explain(self, texts: list[str], threshold: float | None = None) -> list[Explanation]:
        if not self.explains:
            raise RefusedError(
                422, f"{self.model.run.config.model.name} has no phrases to explain with; serve an em-hrnn run"
            )
        try:
            if threshold is None:
                return await self.engine.explain(texts)
            run = self.model.run
            return await self.engine.run(lambda: explain_texts(run, texts, threshold=threshold))
        except EmhrnnError as error:
            raise RefusedError(422, str(error)) from None


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


def state_of(request: Request) -> State:
    state: State = request.app.state.emhrnn
    return state
