"""One document under one model as a drawing, after the paper's Figures 4-5: `//` between phrases, colour by attention.

Letters have one width, so that lines break and grounds fit without asking a browser; `textLength` holds every program
to it. A bar and a number stand before each sentence, the ground of a phrase is its share of the document, the line
under a word is its share.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from emhrnn.explain.escape import escape, visible, without_breaks
from emhrnn.explain.explanation import Explanation, Phrase, Sentence
from emhrnn.explain.html import TINTS, UNDERLINES, joined
from emhrnn.explain.page import percent
from emhrnn.explain.svg import level

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
class Piece:
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
    painter = Painter(explanation)
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


class Painter:
    """Tints and lines relative to the heaviest phrase and word of the document, as on the page."""

    def __init__(self, explanation: Explanation) -> None:
        self.text = explanation.text
        self.largest_phrase = float(explanation.phrase_shares.max()) or 1.0
        self.largest_word = float(explanation.word_shares.max()) or 1.0

    def pieces(self, sentence: Sentence) -> Iterator[Piece]:
        line = column = 0
        place = sentence.start
        for phrase in sentence.phrases:
            if phrase.index:
                if column + 4 > COLUMNS:
                    line, column = line + 1, 0
                yield Piece("//", line, column + bool(column), sign=True)
                column += 2 + bool(column)
            for number, (blank, shown, underline) in enumerate(self.words(phrase, place)):
                space = 1 if (blank or not number) and column else 0
                if column + space + len(shown) > COLUMNS and column:
                    line, column, space = line + 1, 0, 0
                tint = level(phrase.share / self.largest_phrase, TINTS)
                yield Piece(shown, line, column + space, tint, underline, joined=bool(number and column))
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


def _ground(piece: Piece, y: float) -> str:
    """Under the word, and under the blank before it where the phrase goes on."""
    reach = LETTER if piece.joined else 2.0
    x, top = LEFT + piece.column * LETTER - reach, y + LINE * piece.line - 15
    width = len(piece.text) * LETTER + reach + 2
    return f'<rect class="t{piece.tint}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="21"/>'


def _letters(piece: Piece, y: float) -> str:
    x, base, width = LEFT + piece.column * LETTER, y + LINE * piece.line, len(piece.text) * LETTER
    kind = ' class="muted"' if piece.sign else ' class="u4"' if piece.underline == UNDERLINES else ""
    letters = f'<text{kind} x="{x:.1f}" y="{base:.1f}" textLength="{width:.1f}">{escape(piece.text)}</text>'
    if not piece.underline:
        return letters
    return (
        f'{letters}<rect class="line" x="{x:.1f}" y="{base + 3:.1f}" width="{width:.1f}" height="{piece.underline}"/>'
    )
