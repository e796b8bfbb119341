"""The Open Inference Protocol v2, which KServe and its clients speak, beside our own API: predictions and readiness."""

import math
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from emhrnn.api import labels_of
from emhrnn.serve.api import REFUSALS
from emhrnn.serve.engine import RequestText, state_of
from emhrnn.serve.limits import RefusedError, check_aside, check_texts
from emhrnn.version import __version__

kserve = APIRouter(tags=["kserve"])


class InferInput(BaseModel):
    """The texts, as a tensor of strings."""

    name: Literal["text"]
    shape: list[int] = Field(min_length=1, max_length=2, description="[texts]; [texts, 1] is taken, too.")
    datatype: Literal["BYTES"]
    data: list[Any] = Field(description="Strings.")


class InferRequest(BaseModel):
    """As KServe sends it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["Not bad at all."]}]}]
        }
    )
    id: str | None = Field(None, max_length=200)
    inputs: list[InferInput] = Field(min_length=1, max_length=1)

    def texts(self) -> list[str]:
        """Raises a RefusedError (422) where data and shape do not agree."""
        (given,) = self.inputs
        texts = [text for row in given.data for text in (row if isinstance(row, list) else [row])]
        if not all(isinstance(text, str) for text in texts):
            raise RefusedError(422, "inputs.data holds something else than strings; give one string for each text")
        if math.prod(given.shape) != len(texts):
            raise RefusedError(422, f"the shape {given.shape} is not that of {len(texts)} strings")
        return texts


class InferOutput(BaseModel):
    """A tensor."""

    name: str
    shape: list[int]
    datatype: Literal["BYTES", "FP32"]
    data: list[Any]


class InferResponse(BaseModel):
    """`label`, one string for each text (several labels are joined by `|`), and `probabilities`, in the order of the
    classes that the metadata of the model lists."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferOutput]


class ModelMetadata(BaseModel):
    """Of a run, as KServe asks for it."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    parameters: dict[str, Any]


class Readiness(BaseModel):
    """That it can answer."""

    ready: bool


@kserve.get("/v2/health/live", summary="Whether the server is up (KServe)")
@kserve.get("/v2/health/ready", summary="Whether the server is ready (KServe)")
async def ready() -> Readiness:
    """Needs no token. Runs are loaded before the server listens."""
    return Readiness(ready=True)


@kserve.get("/v2/models/{name:path}/ready", responses=REFUSALS, summary="Whether a run is ready (KServe)")
async def model_ready(name: str, request: Request) -> Readiness:
    """422 for a run that is not served."""
    state_of(request).named(name)
    return Readiness(ready=True)


@kserve.post(
    "/v2/models/{name:path}/infer", responses=REFUSALS, summary="Classify texts (KServe)",
    response_model_exclude_none=True,
)  # fmt: skip
async def infer(name: str, tensors: InferRequest, request: Request) -> InferResponse:
    """Open Inference Protocol v2: a tensor `text` in, tensors `label` and `probabilities` out."""
    texts, state = tensors.texts(), state_of(request)
    served = state.named(name)
    await check_aside(check_texts, texts, state.limits)
    table = await served.predict([RequestText(text) for text in texts])
    served.metrics.documents.inc(len(texts))
    labels = [label if isinstance(label, str) else "|".join(label) for label in labels_of(served.model.run, table)]
    label = InferOutput(name="label", shape=[len(texts)], datatype="BYTES", data=labels)
    chances = InferOutput(name="probabilities", shape=list(table.shape), datatype="FP32", data=table.ravel().tolist())
    return InferResponse(model_name=name, model_version=__version__, id=tensors.id, outputs=[label, chances])


@kserve.get("/v2/models/{name:path}", responses=REFUSALS, summary="What a run takes and gives (KServe)")
async def model_metadata(name: str, request: Request) -> ModelMetadata:
    """Tensors and classes."""
    classes = list(state_of(request).named(name).model.classes)
    return ModelMetadata(
        name=name, versions=[__version__], platform="emhrnn",
        inputs=[{"name": "text", "datatype": "BYTES", "shape": [-1]}],
        outputs=[
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP32", "shape": [-1, len(classes)]},
        ],
        parameters={"classes": classes},
    )  # fmt: skip
