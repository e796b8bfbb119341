"""The pages that read one text: Read, What if and Compare."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from jaxtyping import Float32, Float64

from emhrnn.api import labels_of
from emhrnn.explain.explainer import batch_of, explain_read, read
from emhrnn.explain.explanation import Explanation, Phrase, Word
from emhrnn.explain.headline import Shading
from emhrnn.explain.html import Classwise
from emhrnn.explain.removal import logits_of, without
from emhrnn.models.table import EXPLAINING
from emhrnn.serve.corpus import jobs_of, row_of
from emhrnn.serve.engine import RequestText, ServedRun, columns, state_of
from emhrnn.serve.limits import RefusedError, check_aside, check_texts
from emhrnn.serve.pages import form_of, rendered
from emhrnn.training.run import Run

pages = APIRouter(include_in_schema=False)
STEPS = 20  # of the slider
UNSURE = 0.2  # a lead of less probability
SAMPLES = (
    "The room was not what we had hoped for. It was small, and it looked over the car park. But the staff could not "
    "have been kinder, and breakfast alone was worth the trip.",
    "A slow first hour, a plot that forgets itself twice, and yet I would see it again tomorrow. Wonderful music.",
    "I wanted to like it. The battery lasts a day at most, the screen scratches, and support never wrote back.",
)


@dataclass(frozen=True, eq=False)
class PlainPrediction:
    """What a run says of a text where it cannot say why."""

    model: str
    classes: tuple[str, ...]
    probabilities: Float32[np.ndarray, " classes"]
    predicted: str | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Omission:
    """What the model says without some phrases or words, whose `texts` are given."""

    texts: tuple[str, ...]
    probabilities: Float64[np.ndarray, " classes"]
    predicted: str | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DocumentView:
    """A document with its explanation. `dropped` are the numbers of phrases that a person left out, `without` is the
    prediction then; `reasons` is that without the two phrases, or words, that support the prediction most."""

    explanation: Explanation
    dropped: frozenset[int]
    without: Omission | None
    reasons: Omission | None
    threshold: float  # on pi
    own: float  # the model's threshold
    thresholds: tuple[float, ...]  # that make a difference in this document, from many phrases to few
    learned: bool  # whether the threshold has any effect
    strangers: tuple[str, ...]  # names that were given and that training has not seen

    @property
    def shown(self) -> tuple[int, ...]:
        """Classes, the likeliest first; ties in their own order."""
        return tuple(np.argsort(-self.explanation.probabilities, kind="stable").tolist())

    @property
    def unsure(self) -> bool:
        """Whether the decision was close: for one label, by its lead; for several, by the closest of them."""
        chances = np.sort(self.explanation.probabilities)
        if isinstance(self.explanation.predicted, str):
            return bool(chances[-1] - chances[-2] < UNSURE) if len(chances) > 1 else False
        return bool(np.abs(2 * chances - 1).min() < UNSURE)

    @property
    def turned(self) -> int:
        """The class whose probability the reasons are about."""
        return int(self.explanation.probabilities.argmax())

    @property
    def step(self) -> int:
        """Where the slider stands."""
        return int(np.argmin(np.abs(np.array(self.thresholds) - self.threshold)))

    @cached_property
    def shading(self) -> Shading:
        return Shading(self.explanation)

    @property
    def decided(self) -> int | None:
        """The sentence with what decided."""
        path = self.explanation.decisive_path()
        return None if path is None else path.sentence.index

    @cached_property
    def classwise(self) -> Classwise:
        return Classwise(self.explanation)


def view(run: Run, written: RequestText, threshold: float | None, dropped: frozenset[int]) -> DocumentView:
    """Explain a document, and predict it without the phrases that are dropped; in the thread of its model."""
    texts, users, products = columns([written])
    document = read(run, texts)[0]
    learned = run.model.segments
    explanation = explain_read(
        run, [document], threshold=threshold if learned else None, users=users, products=products, exact=True
    )[0]
    dropped = frozenset(k for k in dropped if 0 <= k < len(explanation.phrases))
    z = np.zeros(len(document), dtype=bool)
    z[explanation.phrase_offsets[1:] - 1] = True
    batch = batch_of(run, [document], users=users, products=products)

    def omit(nodes: Sequence[Phrase | Word]) -> Omission | None:
        if not nodes:
            return None
        starts = explanation.starts
        left_out = np.any([(starts >= node.start) & (starts < node.end) for node in nodes], axis=0)
        smaller, left = without(batch, z, ~left_out)
        chances = run.probabilities(logits_of(run, smaller, left))
        return Omission(tuple(node.text for node in nodes), chances[0].astype(np.float64), labels_of(run, chances)[0])

    own = _own_threshold(run)
    return DocumentView(
        explanation,
        dropped,
        omit([explanation.phrases[k] for k in sorted(dropped)]),
        omit(_reasons(explanation)),
        own if threshold is None else threshold,
        own,
        _thresholds(explanation, own),
        learned,
        tuple(_strangers(run, written)),
    )


def _strangers(run: Run, written: RequestText) -> Iterator[str]:
    for name, known in ((written.user, run.users), (written.product, run.products)):
        if known and name is not None and name not in known:
            yield name


def _reasons(explanation: Explanation) -> Sequence[Phrase | Word]:
    """The two phrases that support the prediction most; words for a model without phrases."""
    if explanation.has_phrases:
        return explanation.supporting(2)
    words = [word for word in explanation.words if (word.effect or 0.0) > 0 and any(map(str.isalnum, word.text))]
    return sorted(words, key=lambda word: -(word.effect or 0.0))[:2]


def _own_threshold(run: Run) -> float:
    own = run.model.boundary_threshold
    return 0.5 if own is None else round(own, 6)


def _thresholds(explanation: Explanation, own: float) -> tuple[float, ...]:
    """Quantiles of pi in this document, so that every step of a slider moves some boundary; and the model's own."""
    if explanation.pi is None:
        return (own,)
    quantiles = np.quantile(explanation.pi, np.linspace(0, 1, STEPS + 1)[1:-1])
    return tuple(sorted({0.0, 1.0, own, *(round(float(value), 6) for value in quantiles)}))


@pages.get("/")
async def read_page(request: Request, job: str = "", row: int = 0) -> Response:
    """The first page; with a row of a file, where one is asked for."""
    if not job:
        return await _reading(request, "read.html", {})
    found = row_of(jobs_of(request).get(job), row)
    form = {"text": found.text, "user": found.user or "", "product": found.product or ""}
    return await _reading(request, "read.html", form, label=found.label)


@pages.post("/")
async def read_text(request: Request) -> Response:
    """The same for a text that was sent."""
    return await _reading(request, "read.html", await form_of(request))


@pages.post("/part/read")
async def read_part(request: Request) -> Response:
    """What the script puts in place of the last reading."""
    form = await form_of(request)
    return await _reading(request, "reading.html", form, label=form.get("label") or None)


@pages.get("/compare")
async def compare_page(request: Request) -> Response:
    """Two runs, no text yet."""
    return await _reading(request, "compare.html", {}, both=True)


@pages.post("/compare")
async def compare_texts(request: Request) -> Response:
    """Two runs on one text."""
    return await _reading(request, "compare.html", await form_of(request), both=True)


async def _reading(
    request: Request, name: str, form: dict[str, str], *, both: bool = False, label: str | None = None
) -> Response:
    """The page with the text read, or without one, or with what is wrong with it."""
    state = state_of(request)
    user, product = (form.get(name, "").strip() or None for name in ("user", "product"))
    written = RequestText(form.get("text", ""), user, product)
    trouble, views = "", list[DocumentView | PlainPrediction]()
    threshold, dropped = _number(form.get("threshold", "")), _numbers(form.get("dropped", ""))
    status = 200
    models = state.runs if both else state.runs[:1]
    if written.text or request.method == "POST":
        try:
            await check_aside(check_texts, [written.text], state.limits)
            views = [await _view(served, written, None if both else threshold, dropped) for served in models]
        except RefusedError as refusal:
            trouble, status = refusal.reason, refusal.status
    return await asyncio.to_thread(  # seconds for the longest text, in which nobody else would be answered
        rendered, request, name, status=status, written=written, trouble=trouble, views=views, samples=SAMPLES,
        label=label, differing=_differing(models, views), ids=any(served.reads_ids for served in models),
        explaining=EXPLAINING,
    )  # fmt: skip


async def _view(
    served: ServedRun, written: RequestText, threshold: float | None, dropped: frozenset[int]
) -> DocumentView | PlainPrediction:
    run = served.model.run
    if served.explains:
        return await served.submit(partial(view, run, written, threshold, dropped))
    table = await served.predict([written if served.reads_ids else RequestText(written.text)])
    return PlainPrediction(run.config.model.name, run.classes, table[0], labels_of(run, table)[0])


def _differing(models: Sequence[ServedRun], views: Sequence[DocumentView | PlainPrediction]) -> list[set[int] | None]:
    """For each view the places (characters) where it alone ends a phrase; None where a model has no phrases."""
    if not all(served.has_phrases for served in models):
        return [None for _ in views]
    ends = [{phrase.end for phrase in view.explanation.phrases} for view in views if isinstance(view, DocumentView)]
    return [own - set().union(*(other for other in ends if other is not own)) for own in ends]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part.isascii() and part.isdigit() and len(part) < 9)
