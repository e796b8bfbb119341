"""What the demo found, as data, and the page that shows it: `demo/report.html`.

A page to look at rather than to read: the scores side by side, how learning went, where the errors are, how long the
phrases are, three documents explained, and what to type next. One file, no script, no request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from emhrnn.evaluation.scores import BoundaryAgreement, PhraseLengths
from emhrnn.explain.escape import escape
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import attribute, html_section, legend
from emhrnn.explain.page import page
from emhrnn.explain.svg import Line, bar, column_chart, figure, heat_map, line_chart

MAJORITY, TFIDF, OURS = "Majority class", "TF-IDF + logistic regression", "EM-HRNN"


@dataclass(frozen=True)
class ScoreRow:
    """One system on the test split."""

    name: str
    accuracy: float
    macro_f1: float | None = None
    note: str = ""


@dataclass(frozen=True)
class CurvePoint:
    """One point of the learning curve."""

    epoch: int
    train_loss: float
    valid_loss: float
    valid_accuracy: float


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
    history: Sequence[CurvePoint]
    phrases: PhraseLengths
    boundaries: BoundaryAgreement
    explanations: Sequence[Explanation]
    documents: Mapping[str, int]
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
    true_phrases: PhraseLengths | None = None
    chance_boundaries: BoundaryAgreement | None = None
    next_steps: Sequence[NextStep] = ()

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
            "rows": [asdict(row) for row in self.rows],
            "classes": list(self.classes),
            "confusion": [list(row) for row in self.confusion],
            "history": [asdict(epoch) for epoch in self.history],
            "phrases": self.phrases.to_dict(),
            "true_phrases": None if self.true_phrases is None else self.true_phrases.to_dict(),
            "boundaries": self.boundaries.to_dict(),
            "chance_boundaries": None if self.chance_boundaries is None else self.chance_boundaries.to_dict(),
            "documents": dict(self.documents),
            "versions": dict(self.versions),
            "next_steps": [asdict(step) for step in self.next_steps],
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
    return page(title, "\n".join(section for section in sections if section))


def headline(report: DemoReport) -> str:
    """Title and the four main figures."""
    gain = 100 * (report.accuracy(OURS) - report.accuracy(TFIDF))
    chance = report.chance_boundaries
    beside = (
        f"random ends of the same rate: {chance.f1:.2f}" if chance else "1 would be every true phrase end, no other"
    )
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
<thead><tr><th scope="col">System</th><th scope="col" class="track"></th><th scope="col" class="number">Accuracy</th>
<th scope="col" class="number">Macro-F1</th></tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="muted">{report.documents.get("test", 0):,} test reviews that no system has seen.</p>
</section>"""


def note(row: ScoreRow) -> str:
    """The note of a system, under its name."""
    return f'<br><span class="muted">{escape(row.note)}</span>' if row.note else ""


def charts(report: DemoReport) -> str:
    """Learning curves, confusion matrix and phrase lengths."""
    figures = [confusion(report), lengths(report)]
    if report.history:
        figures = [accuracy_curve(report), loss_curve(report), *figures]
    return f"""<section>
<h2>How it learned, and where it errs</h2>
<div class="charts">{"".join(figures)}</div>
</section>"""


def accuracy_curve(report: DemoReport) -> str:
    """Validation accuracy by epoch, beside that of TF-IDF."""
    line = Line("", [(epoch.epoch, epoch.valid_accuracy) for epoch in report.history])
    best = max(epoch.valid_accuracy for epoch in report.history)
    drawing = line_chart(
        [line],
        label=f"Validation accuracy by epoch; best {best:.1%}",
        x_name="epoch",
        references=[("TF-IDF, test", report.accuracy(TFIDF))],
    )
    return figure("Accuracy", "On validation reviews, after each epoch", drawing)


def loss_curve(report: DemoReport) -> str:
    """Training and validation loss by epoch."""
    lines = [
        Line("validation", [(epoch.epoch, epoch.valid_loss) for epoch in report.history]),
        Line("training", [(epoch.epoch, epoch.train_loss) for epoch in report.history]),
    ]
    last = report.history[-1]
    label = f"Loss by epoch; at the end {last.train_loss:.2f} in training and {last.valid_loss:.2f} in validation"
    drawing = line_chart(lines, label=label, x_name="epoch", show=lambda loss: f"{loss:.2f}")
    return figure("Loss", "Solid: validation. Dashed: training", drawing)


def confusion(report: DemoReport) -> str:
    """The confusion matrix as a heat map."""
    right = sum(row[c] for c, row in enumerate(report.confusion))
    total = sum(sum(row) for row in report.confusion)
    label = f"Confusion matrix: {right} of {total} on the diagonal"
    drawing = heat_map(report.confusion, report.classes, label=label)
    return figure("Confusion", "Rows: the true class. Columns: what the model said", drawing)


def lengths(report: DemoReport) -> str:
    """How long learned phrases are, beside the true ones."""
    truth = report.true_phrases
    caption = "Columns: learned phrases." + (" Line: true phrases" if truth else "")
    drawing = column_chart(
        report.phrases.histogram,
        outline=None if truth is None else truth.histogram,
        label=f"Phrase lengths: {report.phrases.mean:.1f} words on average"
        + (f", true {truth.mean:.1f}" if truth else ""),
        x_name="words in a phrase",
    )
    return figure("Phrase lengths", caption, drawing)


def explanations(report: DemoReport) -> str:
    """The explained test documents; empty without any."""
    if not report.explanations:
        return ""
    articles = "\n".join(html_section(explanation) for explanation in report.explanations)
    return f"<section>\n<h2>Why: test reviews, explained</h2>\n{legend(report.explanations)}\n{articles}\n</section>"


def next_steps(report: DemoReport) -> str:
    """Commands to try; empty without any."""
    if not report.next_steps:
        return ""
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
