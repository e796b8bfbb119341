"""The pages that read one text: Read, What if and Compare.

A reading is kept for a while, so that a change of it sends and computes only the change. All of it runs in the thread
of the model."""

import asyncio
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from emhrnn.api import labels_of
from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.errors import EmhrnnError
from emhrnn.explain.counterfactual import Changes, with_change
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.explainer import explained_alone
from emhrnn.explain.explanation import Change, Explanation, Sentence
from emhrnn.explain.html import DocumentHtml, gauge, tint
from emhrnn.explain.page import percent
from emhrnn.explain.points import in_points
from emhrnn.models.table import explaining
from emhrnn.serve.corpus import filter_of, jobs_of, neighbours, row_of
from emhrnn.serve.engine import RequestText, ServedRun, columns, state_of
from emhrnn.serve.limits import RefusedError, check_aside, check_texts
from emhrnn.serve.pages import form_of, rendered
from emhrnn.shapes import Float32
from emhrnn.training.run import Run

pages = APIRouter(include_in_schema=False)
FEWEST, MOST = 25, 70  # words of a sample
SHOWN, LOOKED_AT = 3, 2000  # samples, and documents among which they are chosen
NO_BLANK_BEFORE = re.compile(r" (?=[.,;:!?)\]%…'’]|n't\b)|(?<=[(\[$#]) ")
DRAWN_WORDS = 1500  # of the sentences that are drawn with their phrases before they are scrolled to
ASKED_SENTENCES = 50  # that the script may ask for at once


KEPT, KEPT_WORDS = 32, 200_000  # readings, and words of them together
STEPS = 20  # of the slider


@dataclass(frozen=True, eq=False)
class KeptReading:
    """A text with its explanation."""

    key: str
    run: Run
    written: RequestText
    threshold: float  # on pi
    own: float  # the model's threshold
    explanation: Explanation
    batch: Batch

    @property
    def strangers(self) -> Iterator[str]:
        """Names that were given and that training has not seen."""
        for name, known in ((self.written.user, self.run.users), (self.written.product, self.run.products)):
            if known and name is not None and name not in known:
                yield name

    @property
    def learned(self) -> bool:
        """Whether the threshold has any effect."""
        return bool(self.run.model.segments)

    @cached_property
    def thresholds(self) -> tuple[float, ...]:
        """That make a difference in this document, from many phrases to few: quantiles of its pi, and the own one."""
        if self.explanation.pi is None:
            return (self.own,)
        quantiles = np.quantile(self.explanation.pi, np.linspace(0, 1, STEPS + 1)[1:-1])
        return tuple(sorted({0.0, 1.0, self.own, *(round(float(value), 6) for value in quantiles)}))

    @property
    def step(self) -> int:
        """Where the slider stands."""
        return int(np.argmin(np.abs(np.array(self.thresholds) - self.threshold)))

    @cached_property
    def html(self) -> DocumentHtml:
        """What draws it."""
        return DocumentHtml(self.explanation)

    def without(self, numbers: Iterable[int]) -> Change | None:
        """The prediction without some phrases; None without any."""
        return Changes(self.run, self.batch, self.explanation).without(numbers)

    def edited(self, text: str) -> Change:
        """The prediction of another text in its place."""
        _, users, products = columns([self.written])
        chances = self.run.predict(self.run.encoder.encode([text], users=users, products=products)).probabilities
        return Change((), (), chances[0].astype(np.float64), labels_of(self.run, chances)[0])


class Readings:
    """The last readings, by their keys."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, KeptReading] = OrderedDict()
        self._lock = threading.Lock()  # pages draw from readings in other threads

    def get(self, key: str) -> KeptReading:
        """Raises a RefusedError (404) where it is no longer kept."""
        with self._lock:
            if key not in self._kept:
                raise RefusedError(404, "this reading is no longer kept; read the text again")
            self._kept.move_to_end(key)
            return self._kept[key]

    def read(self, run: Run, name: str, written: RequestText, threshold: float | None) -> KeptReading:
        """The reading of a text by the run of this name; as it was, if it was read before."""
        learned = run.model.segments
        threshold = threshold if learned else None
        key = hashlib.sha256(repr((name, written, threshold)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with suppress(RefusedError):
            return self.get(key)
        explanation, batch = explained_alone(
            run, written.text, user=written.user, product=written.product, threshold=threshold, exact=True
        )
        explanation = with_change(run, batch, explanation)
        own = 0.5 if run.model.boundary_threshold is None else round(run.model.boundary_threshold, 6)
        reading = KeptReading(key, run, written, own if threshold is None else threshold, own, explanation, batch)
        with self._lock:
            self._kept[key] = reading
            while len(self._kept) > KEPT or sum(one.batch.n_words for one in self._kept.values()) > KEPT_WORDS:
                self._kept.popitem(last=False)
        return reading


@dataclass(frozen=True, eq=False)
class PlainPrediction:
    """What a run says of a text where it cannot say why."""

    model: str
    classes: tuple[str, ...]
    probabilities: Float32[np.ndarray, " classes"]
    predicted: str | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DocumentView:
    """A reading, as one request asks for it. `dropped` are the numbers of phrases that a person left out, and `change`
    is the prediction then, or of the text that a person is editing. `other` is the reading of the other run of a
    comparison: both are drawn on one scale."""

    reading: KeptReading
    dropped: frozenset[int] = frozenset()
    change: Change | None = None
    other: KeptReading | None = None
    prefix: str = "s"  # of the ids of sentences

    @property
    def explanation(self) -> Explanation:
        return self.reading.explanation

    @property
    def html(self) -> DocumentHtml:
        return self.reading.html

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """Points of the sentence and of the phrase with the most, of both readings."""
        both = [self.html, *([] if self.other is None else [self.other.html])]
        phrases = (one.most_phrase for one in both if one.explanation.has_phrases)
        return max(one.most for one in both), max(phrases, default=1.0)

    @cached_property
    def only(self) -> frozenset[tuple[int, int]]:
        """Spans of phrases that the other run does not have; none where it has no phrases at all."""
        if self.other is None or not self.other.explanation.has_phrases or not self.explanation.has_phrases:
            return frozenset()
        own, others = ({(p.start, p.end) for p in one.explanation.phrases} for one in (self.reading, self.other))
        return frozenset(own - others)

    def _tint(self, k: int) -> str:
        """By points. Without phrases, words are tinted."""
        return tint(float(self.html.phrase_points[k]) / self._scale[1] if self.explanation.has_phrases else 0.0)

    def document(self) -> Markup:
        """All sentences; those far down are plain text, until the script asks for them."""
        words = np.cumsum(np.diff(self.explanation.phrase_offsets[self.explanation.sentence_offsets]))
        near = max(int(np.searchsorted(words, DRAWN_WORDS, side="right")), 1)
        return self.sentences(0, near) + self.sentences(near, len(words), far=True)

    def sentences(self, first: int, last: int, *, far: bool = False) -> Markup:
        """Some sentences as list items."""
        return Markup("\n".join(self._sentence(sentence, far) for sentence in self.explanation.sentences[first:last]))

    def _sentence(self, sentence: Sentence, far: bool) -> str:
        bar = gauge(float(self.html.points[sentence.index]), self._scale[0])
        looked = ""
        if self.explanation.attention is not None:
            looked = f'<span class="attention">attention {escape(percent(sentence.weight))}</span>'
        text = escape(without_breaks(sentence.text)) if far else self._phrases(sentence)
        return (
            f'<li class="sentence{" far" if far else ""}" id="{self.prefix}{sentence.index}">{bar}'
            f'<span class="prose" dir="auto">{text}</span>{looked}</li>'
        )

    def _phrases(self, sentence: Sentence) -> str:
        pieces, place = list[str](), sentence.start
        first = int(self.explanation.sentence_offsets[sentence.index])
        for k, phrase in enumerate(sentence.phrases, start=first):
            kinds = self._tint(k) + (" dropped" if k in self.dropped else "")
            kinds += " only" if (phrase.start, phrase.end) in self.only else ""
            pieces.append(escape(without_breaks(self.explanation.text[place : phrase.start])))
            pieces.append(f'<span class="phrase {kinds}" data-k="{k}" data-span="{phrase.start} {phrase.end}">')
            pieces.append(f"{self.html.phrase_words(phrase)}</span>")
            place = phrase.end
        return "".join(pieces)

    def words(self, k: int) -> Markup:
        """The words of a phrase, with what each adds, for the box that opens at it."""
        if not 0 <= k < len(self.explanation.phrases):
            raise RefusedError(404, "there is no such phrase; read the text again")
        value, effects = float(self.html.phrase_points[k]), self.explanation.effects
        told, many = "Hardly counts.", in_points(abs(value))[1:]
        if many and effects is not None:
            side = "for" if value > 0 else "against"
            told = f"{many} point{'' if many == '1' else 's'} {side} {escape(effects.label)}."
        return Markup(f'<p class="told">{told}</p>{self.html.inside(self.explanation.phrases[k])}')


def readings_of(request: Request) -> Readings:
    """What is kept."""
    kept: Readings = request.app.state.readings
    return kept


@pages.get("/")
async def read_page(request: Request, job: str = "", row: int = 0) -> Response:
    """The first page; with a row of a file, where one is asked for."""
    if not job:
        return await _reading(request, "read.html", {})
    opened = jobs_of(request).get(job).snapshot()
    if not opened.documents:  # its page says so, or reads the file again
        return RedirectResponse(f"/corpus/{job}", status_code=303)
    found = row_of(opened, row)
    form = {"text": found.text, "user": found.user or "", "product": found.product or "", "run": opened.served.name}
    shown = filter_of(request, opened)
    before, after = neighbours(shown.of(opened.rows), row)
    place = {"job": opened, "row": row, "before": before, "after": after, "query": shown.query()}
    return await _reading(request, "read.html", form, label=found.label, place=place)


@pages.post("/")
async def read_text(request: Request) -> Response:
    """The same for a text that was sent."""
    return await _reading(request, "read.html", await form_of(request))


@pages.post("/part/read")
async def read_part(request: Request) -> Response:
    """What the script puts in place of the last reading."""
    form = await form_of(request)
    name = "verdict.html" if form.get("part") == "verdict" else "reading.html"
    return await _reading(request, name, form, label=form.get("label") or None)


@pages.get("/part/{key}/sentences")
async def sentences(request: Request, key: str, first: int = 0, last: int = 0, dropped: str = "") -> Response:
    """Sentences of a long document, drawn when they are scrolled to."""
    reading, last = readings_of(request).get(key), min(last, first + ASKED_SENTENCES)
    view = DocumentView(reading, _numbers(dropped))
    return HTMLResponse(await asyncio.to_thread(view.sentences, max(first, 0), last))


@pages.get("/part/{key}/phrase")
async def phrase(request: Request, key: str, k: int = 0) -> Response:
    """What is known of a phrase."""
    return HTMLResponse(DocumentView(readings_of(request).get(key)).words(k))


@pages.get("/compare")
@pages.post("/compare")
async def compare_page(request: Request) -> Response:
    """Two runs on one text, if one was sent."""
    return await _reading(request, "compare.html", await form_of(request), both=True)


async def _reading(
    request: Request,
    name: str,
    form: dict[str, str],
    *,
    both: bool = False,
    label: str | None = None,
    place: dict[str, Any] | None = None,
) -> Response:
    """The page with the text read, or without one, or with what is wrong with it."""
    state = state_of(request)
    user, product = (form.get(name, "").strip() or None for name in ("user", "product"))
    written = RequestText(form.get("text", ""), user, product)
    trouble, views = "", list[DocumentView | PlainPrediction]()
    status = 200
    models = state.runs if both else (state.named(form.get("run") or None),)
    if written.text or request.method == "POST":
        try:
            for text in ([] if "key" in form else [written.text]) + ([form["edited"]] if form.get("edited") else []):
                await check_aside(check_texts, [text], state.limits)
            views = [await _view(served, readings_of(request), written, form) for served in models]
        except RefusedError as refusal:
            if refusal.status == 404:
                raise
            trouble, status = refusal.reason, refusal.status
    return await asyncio.to_thread(  # seconds for the longest text, in which nobody else would be answered
        rendered, request, name, status=status, written=written, trouble=trouble, views=_paired(views),
        samples=samples_of(models[0].folder, models[0].model.classes), label=label,
        ids=any(served.reads_ids for served in models), explaining=explaining(), place=place,
        chosen=models[0],
    )  # fmt: skip


async def _view(
    served: ServedRun, readings: Readings, written: RequestText, form: dict[str, str]
) -> DocumentView | PlainPrediction:
    run = served.model.run
    if served.explains:
        return await served.submit(partial(_view_of, served, readings, written, form))
    table = await served.predict([written if served.reads_ids else RequestText(written.text)])
    return PlainPrediction(run.config.model.name, run.classes, table[0], labels_of(run, table)[0])


def _view_of(served: ServedRun, readings: Readings, written: RequestText, form: dict[str, str]) -> DocumentView:
    """In the thread of the model."""
    if "key" in form:
        reading = readings.get(form["key"])
    else:
        reading = readings.read(served.model.run, served.name, written, _number(form.get("threshold", "")))
    dropped = frozenset(k for k in _numbers(form.get("dropped", "")) if k < len(reading.explanation.phrases))
    edited = form.get("edited", "")
    return DocumentView(reading, dropped, reading.edited(edited) if edited else reading.without(dropped))


def _paired(views: Sequence[DocumentView | PlainPrediction]) -> list[DocumentView | PlainPrediction]:
    """Each of two views with the reading of the other."""
    readings = [view.reading for view in views if isinstance(view, DocumentView)]
    if len(readings) < 2:
        return list(views)
    return [DocumentView(reading, other=readings[1 - k], prefix="st"[k]) for k, reading in enumerate(readings)]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _numbers(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part.isascii() and part.isdigit() and len(part) < 9)


# ---------------------------------------------------------------------- documents to start with


class Sample(NamedTuple):
    """A text, and its label where it has one."""

    text: str
    label: str = ""


OTHERS = (
    Sample(
        "The room was not what we had hoped for. It was small, and it looked over the car park. But the staff could "
        "not have been kinder, and breakfast alone was worth the trip."
    ),
    Sample("A slow first hour, a plot that forgets itself twice, and yet I would see it again. Wonderful music."),
    Sample("I wanted to like it. The battery lasts a day at most, the screen scratches, and support never wrote back."),
)


@cache
def samples_of(folder: Path, classes: tuple[str, ...]) -> tuple[Sample, ...]:
    """A few of the run's own training data, of different classes, put together again from their words; general ones
    where the run folder was copied without its data."""
    try:
        corpus = Corpus.open(folder / "corpus" / "train", verify=False)
    except (EmhrnnError, OSError, ImportError):
        return OTHERS
    rows = np.flatnonzero((corpus.lengths[:LOOKED_AT] >= FEWEST) & (corpus.lengths[:LOOKED_AT] <= MOST))
    found = dict[str, Sample]()
    for row in rows.tolist():
        batch = corpus.batch(np.array([row]))
        if batch.labels is None or not (batch.words > 0).all():  # a word that is not in the vocabulary
            continue
        label = corpus.classes[int(np.argmax(batch.labels[0]) if batch.labels.ndim > 1 else batch.labels[0])]
        words = [corpus.vocabulary.words[k] for k in batch.words.tolist()]
        offsets = batch.sentence_offsets.tolist()
        sentences = (" ".join(words[a:b]) for a, b in pairwise(offsets))
        text = " ".join(s[:1].upper() + s[1:] for s in sentences)
        found.setdefault(label, Sample(NO_BLANK_BEFORE.sub("", text), label))
    spread = [found[name] for name in classes if name in found]
    places = np.linspace(0, len(spread) - 1, min(SHOWN, len(spread))).round().astype(int)
    return tuple(spread[k] for k in places.tolist()) or OTHERS
