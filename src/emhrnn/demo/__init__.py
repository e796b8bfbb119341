"""The demo: the embedded review corpus from nothing to a trained, measured and explained classifier.

demo/data/{train,test}.jsonl    reviews of a seeded grammar (corpus/reviews), with their true phrase ends
demo/run/                       the trained run
demo/report.html                the page to look at rather than to read: one file, no script, no request
demo/report.json                the same as data
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from emhrnn.api import train
from emhrnn.corpus.reviews import Review, generate_reviews, write_reviews
from emhrnn.evaluation.baselines import MAJORITY, TFIDF, baselines
from emhrnn.evaluation.scores import BoundaryAgreement, PhraseLengths, boundary_agreement, count_phrase_lengths
from emhrnn.explain.charts import bar, column_chart, confusion_table, figure, history_charts
from emhrnn.explain.counterfactual import with_change
from emhrnn.explain.escape import escape
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import LEGEND, OPTIONS, html_section
from emhrnn.explain.page import page
from emhrnn.explain.removal import segmented
from emhrnn.files import write_json, write_text
from emhrnn.models import segmentation
from emhrnn.training.config import Config, make_config
from emhrnn.training.data import Named, other_corpus
from emhrnn.training.progress import Epoch
from emhrnn.training.run import Run, read_description
from emhrnn.training.validation import validate

TRAIN, TEST = 6000, 1000
EXAMPLES = 3  # test documents that the report explains
TEST_SEED = 1_000_003  # added to the seed of the training reviews, so that the two never share a stream
OURS = "Phrase evidence"  # beside MAJORITY and TFIDF


@dataclass(frozen=True)
class ScoreRow:
    """One system on the test split."""

    name: str
    accuracy: float
    macro_f1: float | None = None
    note: str = ""


@dataclass(frozen=True)
class NextStep:
    """A command and why one would type it."""

    why: str
    command: str


@dataclass(frozen=True)
class DemoReport:
    """`rows` are in the order of the table and hold MAJORITY, TFIDF and OURS. `boundaries` scores the learned phrase
    ends against the true ones of the review grammar, `chance_boundaries` random ends of the same rate."""

    rows: Sequence[ScoreRow]
    classes: Sequence[str]
    confusion: Sequence[Sequence[int]]
    history: Sequence[Epoch]
    phrases: PhraseLengths
    boundaries: BoundaryAgreement
    explanations: Sequence[Explanation]
    documents: Mapping[str, int]
    seconds: float
    versions: Mapping[str, str]
    true_phrases: PhraseLengths
    chance_boundaries: BoundaryAgreement
    next_steps: Sequence[NextStep]

    def accuracy(self, name: str) -> float:
        return next(row.accuracy for row in self.rows if row.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Flat headline numbers first, then everything behind them."""
        return {
            "accuracy": self.accuracy(OURS),
            "tfidf_accuracy": self.accuracy(TFIDF),
            "majority_accuracy": self.accuracy(MAJORITY),
            "phrase_f1": self.boundaries.f1,
            "seconds": self.seconds,
            **asdict(replace(self, history=(), explanations=())),
            "boundaries": self.boundaries.to_dict(),
            "chance_boundaries": self.chance_boundaries.to_dict(),
            "history": [epoch.to_dict() for epoch in self.history],
            "explanations": [explanation.to_dict() for explanation in self.explanations],
        }


def run_demo(
    folder: Path,
    *,
    seed: int = 0,
    documents: int = TRAIN,
    assignments: Sequence[str] = (),
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> DemoReport:
    """Write the corpus, train, measure beside majority and TF-IDF, explain three test documents, write the report."""
    began = time.perf_counter()
    reviews = list(generate_reviews(documents, seed))
    tests = list(generate_reviews(TEST, seed + TEST_SEED))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_reviews(folder / "data" / "train.jsonl", reviews)
    write_reviews(folder / "data" / "test.jsonl", tests)
    say(f"{len(reviews):,} reviews to learn from and {len(tests):,} to test on are in {folder / 'data'}.")
    config = demo_config(seed, assignments)
    trained = train(folder / "data" / "train.jsonl", folder / "run", config=config, progress=progress, say=say)
    run = trained.model.run
    place = folder / "run" / "corpus" / "test"
    test = other_corpus(Named(path=folder / "data" / "test.jsonl"), place, run, progress=False)
    scores = validate(run, test)
    boundaries, chance, lengths, true_lengths = phrase_recovery(run, tests)
    assert scores.confusion is not None
    report = DemoReport(
        rows=[
            *(ScoreRow(name, one.accuracy, one.macro_f1) for name, one in baselines(trained.train, test).items()),
            ScoreRow(OURS, scores.accuracy, scores.macro_f1, "and says why"),
        ],
        classes=run.classes,
        confusion=scores.confusion,
        history=trained.fitted.epochs,
        phrases=lengths,
        true_phrases=true_lengths,
        boundaries=boundaries,
        chance_boundaries=chance,
        explanations=examples(run, tests),
        documents={"train": len(trained.train), "valid": len(trained.valid), "test": len(tests)},
        seconds=time.perf_counter() - began,
        versions=read_description(folder / "run")["versions"],
        next_steps=commands_after(folder),
    )
    write_text(folder / "report.html", render_html(report))
    write_json(folder / "report.json", report.to_dict())
    return report


def demo_config(seed: int, assignments: Sequence[str] = ()) -> Config:
    """The default model with its default settings: on one thread, so that the same seed gives the same demo."""
    return make_config(assignments=["training.threads=1", f"training.seed={seed}", *assignments])


def phrase_recovery(
    run: Run, reviews: Sequence[Review]
) -> tuple[BoundaryAgreement, BoundaryAgreement, PhraseLengths, PhraseLengths]:
    """Learned phrase ends against the grammar's; random ones of the same rate against them; lengths, and true ones."""
    documents, batch = run.encoder.locate([review.text for review in reviews])
    true = np.concatenate(
        [np.isin(document.ends, review.phrase_ends) for document, review in zip(documents, reviews, strict=True)]
    )
    predicted = segmented(run, batch)[1]
    assert predicted is not None
    free = ~batch.sentence_final
    rate = float(predicted[free].mean())
    chance = segmentation.random(batch, rate, np.random.default_rng(0))
    return (
        boundary_agreement(batch, true, predicted),
        boundary_agreement(batch, true, chance),
        PhraseLengths.of(count_phrase_lengths(predicted)),
        PhraseLengths.of(count_phrase_lengths(true | batch.sentence_final)),
    )


def examples(run: Run, reviews: Sequence[Review]) -> list[Explanation]:
    """Short test documents of different classes, the first of each."""
    chosen: dict[str, Review] = {}
    for review in sorted(reviews[:200], key=lambda review: len(review.text)):
        chosen.setdefault(review.label, review)
    picked = [chosen[label] for label in sorted(chosen)]
    picked = picked[:: max(1, (len(picked) - 1) // (EXAMPLES - 1))][:EXAMPLES]
    explained = explain_texts(run, [review.text for review in picked], [review.label for review in picked], exact=True)
    return [with_change(run, run.encoder.encode([one.text]), one) for one in explained]


def commands_after(folder: Path) -> list[NextStep]:
    """Commands to try after the demo."""
    run, data = folder / "run", folder / "data"
    return [
        NextStep("Explain a text of your own", f"emhrnn explain {run} 'The soup was not bad at all.'"),
        NextStep("Make a page of it", f"emhrnn explain {run} 'The soup was not bad at all.' --html why.html"),
        NextStep("Score a file", f"emhrnn predict {run} {data / 'test.jsonl'} --out predictions.csv"),
        NextStep("Train on your own data", "emhrnn train YOUR_FILE.csv --out my-run"),
    ]


def render_html(report: DemoReport) -> str:
    """The whole page: report.html, with charts and explanations."""
    gain = 100 * (report.accuracy(OURS) - report.accuracy(TFIDF))
    learned, true = report.phrases, report.true_phrases
    curves = history_charts({OURS: report.history}, [("TF-IDF, test", report.accuracy(TFIDF))])
    matrix = confusion_table(report.confusion, report.classes)
    named = f"Phrase lengths: {learned.mean:.1f} words on average, true {true.mean:.1f}"
    lengths = column_chart(learned.histogram, true.histogram, label=named, x_name="words in a phrase")
    charts = (
        curves,
        figure("Confusion", "Rows: the true class. Columns: what the model said", matrix),
        figure("Phrase lengths", "Columns: learned phrases. Line: true phrases", lengths),
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters.update(shown=lambda text: Markup(escape(text)), bar=lambda share: Markup(bar(share, "chance")))
    template = environment.from_string(files("emhrnn.demo").joinpath("report.html").read_text(encoding="utf-8"))
    body = template.render(
        report=report, ours=OURS, duration=duration, charts=Markup("".join(charts)),
        explained=Markup("\n".join([OPTIONS, *map(html_section, report.explanations), LEGEND])),
        facts=[
            ("Accuracy", f"{report.accuracy(OURS):.1%}", f"{gain:+.1f} points against TF-IDF"),
            ("Phrase ends, F1", f"{report.boundaries.f1:.2f}",
             f"random ends of the same rate: {report.chance_boundaries.f1:.2f}"),
            ("Words per phrase", f"{learned.mean:.1f}", f"from {learned.shortest} to {learned.longest}"),
            ("Time", duration(report.seconds), f"{report.documents.get('train', 0):,} documents to learn from"),
        ],
    )  # fmt: skip
    return page(f"{OURS} reads reviews: {report.accuracy(OURS):.1%} right", body)


def duration(seconds: float) -> str:
    """`1 min 44 s` for 104.3 seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
