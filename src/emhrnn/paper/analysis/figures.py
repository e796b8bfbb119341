"""The paper's Figures 4 and 5: one document under MHS-RNN and under EM-HRNN, `//` between phrases, colour by attention.

OUT/figure4.svg, figure5.svg    the drawings
OUT/figures.html                both as explanations that open, level by level
OUT/figures.txt                 as in a terminal without colour
OUT/figures.json                as data, with the command that made them

In the drawings letters have one width, so that lines break and grounds fit without asking a browser; `textLength` holds
every program to it. A bar and a number stand before each sentence, the ground of a phrase is its share of the document,
the line under a word is its share.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from emhrnn.explain.escape import escape, visible, without_breaks
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation, Phrase, Sentence, joined
from emhrnn.explain.html import OPTIONS, TINTS, UNDERLINES, html_section, legend
from emhrnn.explain.page import page, percent
from emhrnn.explain.svg import level
from emhrnn.files import write_json, write_text
from emhrnn.paper.analysis.table3 import check_models
from emhrnn.paper.provenance import commit, machine
from emhrnn.training.run import load_run

COLUMNS = 84  # letters in a line
LETTER, LINE = 8.4, 26.0  # px
LEFT, TOP, RIGHT, FOOT, GAP = 112.0, 84.0, 16.0, 4.0, 8.0
BAR = 56.0

STYLE = """
svg { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.page { fill: #ffffff; } text { fill: #1f2328; } .muted { fill: #59606a; } .title { font-weight: 600; }
.track { fill: #e3e0d9; } .weight, .line { fill: #b86a00; } .u4 { font-weight: 700; }
.t1 { fill: #fff7e6; } .t2 { fill: #ffedc8; } .t3 { fill: #ffdf9e; } .t4 { fill: #ffcd6e; } .t5 { fill: #fbb63c; }
@media (prefers-color-scheme: dark) {
  .page { fill: #1a1d23; } text { fill: #e9e7e3; } .muted { fill: #a6acb6; }
  .track { fill: #30353e; } .weight, .line { fill: #e3a23a; }
  .t1 { fill: #2a2519; } .t2 { fill: #3a301a; } .t3 { fill: #4c3d1b; } .t4 { fill: #604a1a; } .t5 { fill: #765916; }
}
"""


@dataclass(frozen=True)
class _Piece:
    """A word, or the sign between phrases, and where it stands: line and column of letters."""

    text: str
    line: int
    column: int
    tint: int = 0
    underline: int = 0
    joined: bool = False  # to the piece before it: the ground runs through
    sign: bool = False


def document_svg(explanation: Explanation, title: str) -> str:
    """A whole SVG file."""
    painter = _Painter(explanation)
    y, parts = TOP, []
    for sentence in explanation.sentences:
        pieces = list(painter.pieces(sentence))
        parts.append(_gauge(sentence.weight, y))
        parts += [_ground(piece, y) for piece in pieces if piece.tint]
        parts += [_letters(piece, y) for piece in pieces]
        y += LINE * (pieces[-1].line + 1) + GAP
    width, height = LEFT + COLUMNS * LETTER + RIGHT, y + FOOT
    verdict = f"{joined(explanation.predicted)} ({percent(float(explanation.probabilities.max()))})"
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">
<title>{escape(title)}</title><style>{STYLE}</style>
<rect class="page" width="100%" height="100%" rx="8"/>
<text class="title" x="16" y="28">{escape(title)}</text>
<text class="muted" x="16" y="48">predicted: {escape(verdict)}</text>
{"".join(parts)}
</svg>
"""


class _Painter:
    """Tints and lines relative to the heaviest phrase and word of the document, as on the page."""

    def __init__(self, explanation: Explanation) -> None:
        self.text = explanation.text
        self.largest_phrase = float(explanation.phrase_shares.max()) or 1.0
        self.largest_word = float(explanation.word_shares.max()) or 1.0

    def pieces(self, sentence: Sentence) -> Iterator[_Piece]:
        line = column = 0
        place = sentence.start
        for phrase in sentence.phrases:
            if phrase.index:
                if column + 4 > COLUMNS:
                    line, column = line + 1, 0
                yield _Piece("//", line, column + bool(column), sign=True)
                column += 2 + bool(column)
            for number, (blank, shown, underline) in enumerate(self.words(phrase, place)):
                space = 1 if (blank or not number) and column else 0
                if column + space + len(shown) > COLUMNS and column:
                    line, column, space = line + 1, 0, 0
                tint = level(phrase.share / self.largest_phrase, TINTS)
                yield _Piece(shown, line, column + space, tint, underline, joined=bool(number and column))
                column += space + len(shown)
            place = phrase.end

    def words(self, phrase: Phrase, place: int) -> Iterator[tuple[bool, str, int]]:
        """Whether a blank stands before the word; the word; its underline."""
        for word in phrase.words:
            gap = without_breaks(self.text[place : word.start])
            yield bool(gap), visible(word.text), level(word.share / self.largest_word, UNDERLINES)
            place = word.end


def _gauge(weight: float, y: float) -> str:
    bar = f'<rect class="{{}}" x="16" y="{y - 9:g}" width="{{:g}}" height="6" rx="3"/>'
    return (
        bar.format("track", BAR)
        + bar.format("weight", round(BAR * weight, 1))
        + f'<text class="muted" x="{LEFT - 8:g}" y="{y:g}" text-anchor="end">{escape(percent(weight))}</text>'
    )


def _ground(piece: _Piece, y: float) -> str:
    """Under the word, and under the blank before it where the phrase goes on."""
    reach = LETTER if piece.joined else 2.0
    x, top = LEFT + piece.column * LETTER - reach, y + LINE * piece.line - 15
    width = len(piece.text) * LETTER + reach + 2
    return f'<rect class="t{piece.tint}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="21"/>'


def _letters(piece: _Piece, y: float) -> str:
    x, base, width = LEFT + piece.column * LETTER, y + LINE * piece.line, len(piece.text) * LETTER
    kind = ' class="muted"' if piece.sign else ' class="u4"' if piece.underline == UNDERLINES else ""
    letters = f'<text{kind} x="{x:.1f}" y="{base:.1f}" textLength="{width:.1f}">{escape(piece.text)}</text>'
    if not piece.underline:
        return letters
    return (
        f'{letters}<rect class="line" x="{x:.1f}" y="{base + 3:.1f}" width="{width:.1f}" height="{piece.underline}"/>'
    )


MADE_BY = ("command", "commit", "machine", "runs")


@dataclass(frozen=True, eq=False)
class Figures:
    """`mhs` is Figure 4, `em` is Figure 5."""

    mhs: Explanation
    em: Explanation
    making: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        return {"making": dict(self.making), "figure4": self.mhs.to_dict(), "figure5": self.em.to_dict()}


def own_review() -> str:
    """A review written for these figures: texts of others may not be passed on."""
    return files("emhrnn.paper.analysis").joinpath("review.txt").read_text(encoding="utf-8").strip()


def draw_figures(em: Path, mhs: Path, out: Path, *, command: str, text: str | None = None) -> Figures:
    """Explain one text, by default our own review, under both runs, and write all files to `out`."""
    check_models(em, mhs)
    runs = [load_run(folder) for folder in (mhs, em)]
    text = own_review() if text is None else text
    first, second = (explain_texts(run, [text])[0] for run in runs)
    seeds = ", ".join(f"{run.config.model.name} seed {run.config.training.seed}" for run in runs)
    making = {"command": command, "commit": commit(), "machine": machine(), "runs": seeds}
    figures = Figures(first, second, making)
    write_figures(figures, out)
    return figures


def write_figures(figures: Figures, out: Path) -> None:
    """The two drawings, the page, the terminal text and the data."""
    told = " \u00b7 ".join(f"{name}: {figures.making[name]}" for name in MADE_BY)
    for number, name, explanation in ((4, "MHS-RNN with attention", figures.mhs), (5, "EM-HRNN", figures.em)):
        drawing = document_svg(explanation, f"Figure {number}: {name}")
        write_text(out / f"figure{number}.svg", drawing.replace("<title>", f"<desc>{escape(told)}</desc>\n<title>", 1))
    write_text(out / "figures.html", _page(figures, told))
    write_text(out / "figures.txt", f"{figures.mhs}\n\n{figures.em}\n\n{told}\n")
    write_json(out / "figures.json", figures.to_dict())


def _page(figures: Figures, told: str) -> str:
    title = "Figures 4 and 5: one document under two models"
    sections = "\n".join(html_section(explanation, attention=True) for explanation in (figures.mhs, figures.em))
    body = f"<h1>{title}</h1>\n{OPTIONS}\n{sections}\n{legend([figures.mhs, figures.em])}"
    return page(title, f"{body}\n<footer>{escape(told)}</footer>")
