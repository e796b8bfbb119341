"""The API that programs call: JSON in, JSON out, errors with a code and one sentence. And the Open Inference Protocol
v2, which KServe and its clients speak: predictions and readiness."""

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_json

from emhrnn.api import labels_of
from emhrnn.explain.explanation import Explanation
from emhrnn.serve.engine import RequestText, ServedRun, state_of
from emhrnn.serve.limits import RefusedError, ServerLimits, check_aside, check_explained, check_texts
from emhrnn.version import __version__

api = APIRouter()


class ErrorResponse(BaseModel):
    """Of every request that is refused."""

    error: str = Field(description="What is wrong and what to do, in one sentence; its wording may change.")
    code: str = Field(description="The same for programs; does not change.", examples=["no_words", "busy"])
    request_id: str | None = Field(description="That of the header x-request-id and of the server's log.")


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in (
        (400, "The body is not JSON"),
        (401, "The token is missing or wrong"),
        (408, "The request did not arrive in time"),
        (413, "The request is too large"),
        (
            422,
            "A text has no words or too many, there are too many texts or too many words in all, a field is not "
            "understood, or there is no such run",
        ),
        (429, "Too many wrong tokens from this address"),
        (431, "Request line and headers are too large"),
        (503, "Too many requests or connections, or there was no answer in time"),
    )
}


class PredictRequest(BaseModel):
    """One text, or a list of them.

    For models that read who wrote a text, and about what: `user` and `product` of the one, `users` and `products` of
    the list, null where it is not known. A name that is left out or new is read as the average.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"text": "The soup was not bad at all."}],
            "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
        },
    )
    text: str | None = None
    texts: list[str] | None = None
    user: str | None = None
    product: str | None = None
    users: list[str | None] | None = None
    products: list[str | None] | None = None
    run: str | None = Field(
        None, description="Which run answers, by its name in /v1/model; the first one served if left out."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> "PredictRequest":
        if (self.text is None) == (self.texts is None):
            raise ValueError("give either text or texts")
        for one, many in (("user", "users"), ("product", "products")):
            if self.texts is not None and getattr(self, one) is not None:
                raise ValueError(f"texts go with {many}, a list; {one} is for a single text")
            names = getattr(self, many)
            if self.texts is None and names is not None:
                raise ValueError(f"text goes with {one}; {many} is for a list of texts")
            if names is not None and len(names) != len(self.texts or []):
                raise ValueError(f"{len(names)} {many} for {len(self.texts or [])} texts; give one for each, or null")
        return self

    def listed(self) -> list[RequestText]:
        """The texts, each with its names."""
        if self.text is not None:
            return [RequestText(self.text, self.user, self.product)]
        texts = self.texts or []
        nobody: list[str | None] = [None] * len(texts)
        return list(map(RequestText, texts, self.users or nobody, self.products or nobody))


class ExplainRequest(PredictRequest):
    """As for a prediction, with the threshold on pi."""

    threshold: Annotated[float | None, Field(ge=0, le=1)] = Field(
        None, description="Phrases end where pi is larger; the model's own threshold if left out."
    )


class Prediction(BaseModel):
    """Of one text."""

    label: str | list[str] = Field(description="The class; for multi-label models a list of classes.")
    probabilities: dict[str, float] = Field(description="Calibrated, by class.")


class PredictResponse(BaseModel):
    """In the order of the texts."""

    predictions: list[Prediction]


class Span(BaseModel):
    """A part of the text."""

    text: str
    start: int = Field(description="The first character, counted from 0.")
    end: int = Field(description="The character after the last.")
    weight: float = Field(description="Attention among its siblings; for evidence, the share of absolute effects.")
    share: float = Field(description="The product of the weights down to it.")
    lift: float = Field(description="The weight divided by chance.")
    effect: float | None = Field(description="How far the log-odds of the label would fall without it.")


class WordSpan(Span):
    """A word."""

    known: bool = Field(description="Whether it is in the vocabulary.")
    boundary: float | None = Field(description="The probability that a phrase ends here.")


class PhraseSpan(Span):
    """A phrase."""

    evidence: dict[str, float] | None = Field(None, description="What it adds to the logit of each class.")
    words: list[WordSpan]


class SentenceSpan(Span):
    """A sentence."""

    evidence: dict[str, float] | None = Field(None, description="What it adds to the logit of each class.")
    phrases: list[PhraseSpan]


class Decided(BaseModel):
    """The path to what supports the label most."""

    sentence: Span
    phrase: Span
    word: Span


class Explained(BaseModel):
    """Why a text has its label: sentences, phrases, words."""

    format: Literal["emhrnn.explanation/1"]
    model: str
    predicted: str | list[str]
    label: str | list[str] | None = Field(description="The true label; null, since requests have none.")
    probabilities: dict[str, float]
    decided_by: Literal["evidence", "removal", "estimate"] | None = Field(description="Where effects come from.")
    effects_on: str | None = Field(description="The class that effects are on.")
    headline: str = Field(description="What decided, in one sentence.")
    warnings: list[str]
    decided: Decided | None
    text: str
    sentences: list[SentenceSpan]
    prior: float | None = Field(None, description="Log-odds of the label without any text, where effects add up.")
    evidence: dict[str, dict[str, float]] | None = Field(None, description="bias and logits of each class.")
    nearby: list[float] | None = Field(None, description="Of each word: the support for the label around it.")
    direct: list[float] | None = Field(None, description="Weights of words where phrases and words share a softmax.")


class ExplainResponse(BaseModel):
    """In the order of the texts."""

    explanations: list[Explained]


class RunResponse(BaseModel):
    """A run that is served."""

    name: str = Field(description="Of the run folder; what run takes in a request.")
    model: str
    classes: list[str]
    multi_label: bool
    vocabulary: int
    parameters: int | None = Field(description="Null for models fitted at once, which count none.")
    explains: bool
    ids: bool = Field(description="Whether it reads users and products.")
    version: str


class HealthResponse(BaseModel):
    """That the server is up."""

    status: str


@api.post("/v1/predict", responses=REFUSALS, summary="Classify one text or several", tags=["model"])
async def predict(documents: PredictRequest, request: Request) -> PredictResponse:
    """Labels and probabilities."""
    served, asked = await _checked(request, documents, check_texts)
    run = served.model.run
    table = await served.predict(asked)
    served.metrics.documents.inc(len(asked))
    return PredictResponse.model_construct(
        predictions=[
            Prediction.model_construct(
                label=label if isinstance(label, str) else list(label),
                probabilities=dict(zip(run.classes, row, strict=True)),
            )
            for label, row in zip(labels_of(run, table), table.tolist(), strict=True)
        ]
    )


@api.post(
    "/v1/explain",
    responses=REFUSALS,
    response_model=ExplainResponse,
    summary="Show which sentence, phrase and word decided",
    tags=["model"],
)
async def explain(documents: ExplainRequest, request: Request) -> Response:
    """Trees of sentences, phrases and words."""
    served, asked = await _checked(request, documents, check_explained)
    explanations = await served.explain(asked, documents.threshold)
    served.metrics.documents.inc(len(asked))
    return Response(await asyncio.to_thread(_encoded, explanations), media_type="application/json")


@api.get("/v1/model", summary="What is served", tags=["model"])
async def model(request: Request) -> list[RunResponse]:
    """The runs, the first of which answers where none is named."""
    return [
        RunResponse(
            name=served.name,
            model=served.model.run.config.model.name,
            classes=list(served.model.classes),
            multi_label=served.model.run.multi_label,
            vocabulary=len(served.model.run.vocabulary),
            parameters=served.model.run.model.parameter_count or None,
            explains=served.explains,
            ids=served.reads_ids,
            version=__version__,
        )
        for served in state_of(request).runs
    ]


@api.get("/healthz", summary="Whether the server is up", tags=["operation"])
async def health() -> HealthResponse:
    """Needs no token."""
    return HealthResponse(status="ok")


async def _checked(
    request: Request, documents: PredictRequest, check: Callable[[Sequence[str], ServerLimits], None]
) -> tuple[ServedRun, list[RequestText]]:
    state, asked = state_of(request), documents.listed()
    served = state.named(documents.run)
    await check_aside(check, [document.text for document in asked], state.limits)
    return served, asked


def _encoded(explanations: Sequence[Explanation]) -> bytes:
    """`ExplainResponse` as JSON, for a thread. It takes seconds for the most words, so that it is made in pieces: while
    one is encoded, nothing else runs."""
    pieces = (to_json(explanation.to_dict(), inf_nan_mode="null") for explanation in explanations)
    return b'{"explanations":[' + b",".join(pieces) + b"]}"


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
