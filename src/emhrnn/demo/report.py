"""What the demo found, as data, and the page that shows it: `demo/report.html`.

A page to look at rather than to read: the scores side by side, how learning went, where the errors are, how long the
phrases are, three documents explained, and what to type next. One file, no script, no request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from emhrnn.evaluation.scores import BoundaryAgreement, PhraseLengths
from emhrnn.explain.charts import bar, column_chart, confusion_table, figure
from emhrnn.explain.curves import history_charts
from emhrnn.explain.escape import escape
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import LEGEND, OPTIONS, attribute, html_section
from emhrnn.explain.page import page
from emhrnn.training.progress import Epoch

MAJORITY, TFIDF, OURS = "Majority class", "TF-IDF + logistic regression", "Phrase evidence"


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
            "history": [epoch.to_dict() for epoch in self.history],
            "explanations": [explanation.to_dict() for explanation in self.explanations],
        }


def render_html(report: DemoReport) -> str:
    """The whole page."""
    title = f"{OURS} reads reviews: {report.accuracy(OURS):.1%} right"
    sections = (
        headline(report),
        scores(report),
        charts(report),
        explanations(report),
        next_steps(report),
        footer(report),
    )
    return page(title, "\n".join(sections))


def headline(report: DemoReport) -> str:
    """Title and the four main figures."""
    gain = 100 * (report.accuracy(OURS) - report.accuracy(TFIDF))
    beside = f"random ends of the same rate: {report.chance_boundaries.f1:.2f}"
    facts = (
        ("Accuracy", f"{report.accuracy(OURS):.1%}", f"{gain:+.1f} points against TF-IDF"),
        ("Phrase ends, F1", f"{report.boundaries.f1:.2f}", beside),
        (
            "Words per phrase",
            f"{report.phrases.mean:.1f}",
            f"from {report.phrases.shortest} to {report.phrases.longest}",
        ),
        ("Time", duration(report.seconds), f"{report.documents.get('train', 0):,} documents to learn from"),
    )
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in facts
    )
    return f"""<header>
<h1>Words form phrases, phrases form sentences, sentences decide</h1>
<p class="muted">The demo trained {OURS} on generated reviews whose meaning lives in phrases, beside two simple systems.
Nobody told it where phrases end: it chose the ends that serve the labels.</p>
<dl class="facts">{cells}</dl>
</header>"""


def scores(report: DemoReport) -> str:
    """The table of systems."""
    rows = "".join(
        f'<tr{attribute("ours" if row.name == OURS else "")}><th scope="row">{escape(row.name)}{note(row)}</th>'
        f'<td class="track">{bar(row.accuracy, "chance")}</td><td class="number">{row.accuracy:.1%}</td>'
        f'<td class="number">{"–" if row.macro_f1 is None else f"{row.macro_f1:.3f}"}</td></tr>'
        for row in report.rows
    )
    return f"""<section>
<h2>Who is right, and how often</h2>
<div class="card"><table class="scores">
<thead><tr><th scope="col">System</th><td class="track"></td><th scope="col" class="number">Accuracy</th>
<th scope="col" class="number">Macro-F1</th></tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="muted">{report.documents.get("test", 0):,} test reviews that no system has seen.</p>
</section>"""


def note(row: ScoreRow) -> str:
    """The note of a system, under its name."""
    return f'<br><span class="muted">{escape(row.note)}</span>' if row.note else ""


def charts(report: DemoReport) -> str:
    """Learning curves, confusion matrix and phrase lengths."""
    learned = history_charts({OURS: report.history}, [("TF-IDF, test", report.accuracy(TFIDF))])
    return f"""<section>
<h2>How it learned, and where it errs</h2>
<div class="charts">{learned}{confusion(report)}{lengths(report)}</div>
</section>"""


def confusion(report: DemoReport) -> str:
    """True and predicted classes."""
    drawing = confusion_table(report.confusion, report.classes)
    return figure("Confusion", "Rows: the true class. Columns: what the model said", drawing)


def lengths(report: DemoReport) -> str:
    """How long learned phrases are, beside the true ones."""
    learned, true = report.phrases, report.true_phrases
    label = f"Phrase lengths: {learned.mean:.1f} words on average, true {true.mean:.1f}"
    drawing = column_chart(learned.histogram, true.histogram, label=label, x_name="words in a phrase")
    return figure("Phrase lengths", "Columns: learned phrases. Line: true phrases", drawing)


def explanations(report: DemoReport) -> str:
    """The explained test documents."""
    articles = "\n".join(html_section(explanation) for explanation in report.explanations)
    parts = f"{OPTIONS}\n{articles}\n{LEGEND}"
    return f"<section>\n<h2>Why: test reviews, explained</h2>\n{parts}\n</section>"


def next_steps(report: DemoReport) -> str:
    """Commands to try."""
    steps = "".join(f"<p>{escape(step.why)}</p><pre>{escape(step.command)}</pre>" for step in report.next_steps)
    return f"<section>\n<h2>What to type next</h2>\n{steps}</section>"


def footer(report: DemoReport) -> str:
    """Time and versions."""
    versions = " · ".join(f"{name} {version}" for name, version in report.versions.items())
    return f"<footer>Made in {escape(duration(report.seconds))}, offline. {escape(versions)}</footer>"


def duration(seconds: float) -> str:
    """`1 min 44 s` for 104.3 seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
