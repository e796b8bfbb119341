"""Explanations in the terminal: `//` between phrases, colour by effect.

With colour, a phrase is tinted blue where it supports the prediction and orange where it opposes it, and a word with a
large effect is underlined. Without colour (a pipe, a file, NO_COLOR) the same is said in signs: `[the phrase]+2.31` and
`*word*`. For a model without phrases, words carry the tint and the number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from emhrnn.explain.charts import level
from emhrnn.explain.contrast import Contrast, label_lines
from emhrnn.explain.counterfactual import Counterfactual
from emhrnn.explain.escape import visible, without_breaks
from emhrnn.explain.explanation import Explanation, Phrase, Sentence, Word, as_tuple, is_spelled, joined
from emhrnn.explain.headline import Fragment, Shading, attention_line, balance, headline, note, sides
from emhrnn.explain.page import percent, signed

# We cannot know whether the terminal is dark or light, and a ramp of backgrounds would run backwards on one of them. So
# small effects get coloured letters that read on both, large ones a coloured ground: more ink for more effect, one hue.
BLUE, ORANGE = "#3584d6", "#cc6a14"
FOR = (
    Style(),
    Style(),
    Style(color=BLUE),
    Style(color=BLUE, bold=True),
    Style(color="#1a1a1a", bgcolor="#a9d1fb"),
    Style(color="#1a1a1a", bgcolor="#6fb3f7"),
)
AGAINST = (
    *FOR[:2],
    Style(color=ORANGE),
    Style(color=ORANGE, bold=True),
    Style(color="#1a1a1a", bgcolor="#ffc694"),
    Style(color="#1a1a1a", bgcolor="#ff9d4d"),
)
LARGE_PHRASE, LARGE_WORD = 0.4, 0.5  # of the document's largest effect of a phrase and of a word
CLASSES_SHOWN = 6
NARROW = 60  # columns; below it the bars give way to the text


def print_explanation(explanation: Explanation, console: Console | None = None, *, attention: bool = False) -> None:
    """Print an explanation; `attention` adds where the model looked."""
    console = console or Console(highlight=False)
    ink = _ink(console, colour=True)
    looked = attention_line(explanation) if attention else []
    lines = headline(explanation), *sides(explanation), *label_lines(explanation), balance(explanation), looked
    for part in (
        prediction(explanation, ink),
        class_bars(explanation, ink),
        Text(),
        sentences(explanation, ink, attention=attention),
        Text(),
        *(Text(f"Warning: {warning}", "bold red") for warning in explanation.warnings),
        *(written(line, ink) for line in lines if line),
        Text(ink.sign(note(explanation)), "dim"),
    ):
        console.print(part)


def print_counterfactual(counterfactual: Counterfactual, console: Console | None = None) -> None:
    """Print what would have had to be left out."""
    console = console or Console(highlight=False)
    ink = _ink(console)
    quoted = [f'"{ink.safe(without_breaks(text))}"' for text in counterfactual.texts]
    console.print(Text(counterfactual.told(quoted, ink.safe)))


def print_contrast(contrast: Contrast, console: Console | None = None) -> None:
    """Print why a text has one label and not another."""
    console = console or Console(highlight=False)
    ink = _ink(console)
    console.print(prediction(contrast.explanation, ink))
    console.print(class_bars(contrast.explanation, ink))
    for line in contrast.lines():
        console.print(written(line, ink))


@dataclass(frozen=True)
class Ink:
    """What the console can show."""

    colour: bool
    ascii_only: bool
    wide: bool

    def safe(self, text: str) -> str:
        shown = visible(text)
        return shown.encode("ascii", "backslashreplace").decode() if self.ascii_only else shown

    def signed(self, effect: float) -> str:
        return self.sign(signed(effect))

    def sign(self, number: str) -> str:
        return number.replace("\u2212", "-") if self.ascii_only else number

    def bar(self, fraction: float, width: int) -> str:
        """Filled to an eighth of a column, where the console has the signs for it."""
        if self.ascii_only:
            return ("#" * round(fraction * width)).ljust(width)
        eighths = round(fraction * width * 8)
        return ("\u2588" * (eighths // 8) + " \u258f\u258e\u258d\u258c\u258b\u258a\u2589"[eighths % 8].strip()).ljust(
            width
        )


def _ink(console: Console, *, colour: bool = False) -> Ink:
    colour = colour and console.color_system is not None and not console.no_color
    return Ink(colour, console.options.ascii_only, wide=console.width >= NARROW)


def prediction(explanation: Explanation, ink: Ink) -> Text:
    """The label, the model, and whether it is right where that is known."""
    line = Text()
    line.append(ink.safe(joined(explanation.predicted)), "bold")
    line.append(f"  model: {ink.safe(explanation.model)}", "dim")
    if explanation.label is not None:
        kind = ("correct", "green") if explanation.correct else ("wrong", "red")
        line.append(f"  {kind[0]}: labelled {ink.safe(joined(explanation.label))}", kind[1])
    return line


def class_bars(explanation: Explanation, ink: Ink) -> Table:
    """Probabilities of the classes as bars."""
    ranking, chosen = explanation.ranking(), as_tuple(explanation.predicted)
    rows = ranking[:CLASSES_SHOWN]
    if len(ranking) <= CLASSES_SHOWN:  # in their own order: one to five stars reads better than sorted
        rows = list(zip(explanation.classes, explanation.probabilities.tolist(), strict=True))
    table = Table.grid(padding=(0, 1))
    table.add_column(overflow="fold", max_width=24)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    width = 24 if ink.wide else 10
    for name, probability in rows:
        style = "bold" if name in chosen else ""
        bar = Text(ink.bar(probability, width), "blue")
        table.add_row(Text(ink.safe(name), style), bar, Text(percent(probability), style))
    if len(ranking) > len(rows):
        table.add_row(Text(f"{len(ranking) - len(rows)} more", "dim"), Text(), Text())
    return table


def sentences(explanation: Explanation, ink: Ink, *, attention: bool) -> Table:
    """The document, one sentence a row, its effect in the margin; its attention behind it, if asked for."""
    text, path = _DocumentText(explanation, ink), explanation.decisive_path()
    table = Table.grid(padding=(0, 1), expand=True)
    if ink.wide:
        table.add_column(width=8, no_wrap=True)
    table.add_column(width=6, justify="right", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    if attention := attention and explanation.evidence is None:
        table.add_column(width=14, justify="right", no_wrap=True)
    for sentence in explanation.sentences:
        long = text.shading.bar(sentence)
        bar = [Text(ink.bar(abs(long), 8), BLUE if long > 0 else ORANGE)] if ink.wide else []
        decided = path is not None and sentence.index == path.sentence.index
        number = Text(ink.signed(sentence.effect or 0.0), "bold" if decided else "")
        looked = [Text(f"attention {percent(sentence.weight)}", "dim")] if attention else []
        table.add_row(*bar, number, text.sentence(sentence), *looked)
    return table


def written(pieces: Sequence[Fragment], ink: Ink) -> Text:
    """A sentence for people as text of the terminal."""
    line = Text()
    for text, kind in pieces:
        if kind == "quote":
            line.append(f'"{ink.safe(without_breaks(text))}"', "bold")
        else:
            line.append(ink.sign(text) if kind == "number" else ink.safe(text))
    return line


class _DocumentText:
    """Words and phrases of one document, marked relative to its largest effects."""

    def __init__(self, explanation: Explanation, ink: Ink) -> None:
        self.text, self.ink, self.shading = explanation.text, ink, Shading(explanation)

    def sentence(self, sentence: Sentence) -> Text:
        line = self.phrase(sentence.phrases[0])
        for before, after in pairwise(sentence.phrases):
            gap = self.ink.safe(without_breaks(self.text[before.end : after.start])).strip()
            line.append(f"{gap} ").append("//", "dim").append(" ").append_text(self.phrase(after))
        return line

    def phrase(self, phrase: Phrase) -> Text:
        strength = self.shading.phrase(phrase)
        line = self.words(phrase, _style(strength) if self.ink.colour else Style())
        if self.ink.colour or abs(strength) < LARGE_PHRASE:
            return line
        return Text.assemble("[", line, f"]{self.ink.signed(phrase.effect or 0.0)}")

    def words(self, phrase: Phrase, style: Style) -> Text:
        line, place = Text(), phrase.start
        for word in phrase.words:
            line.append(self.ink.safe(without_breaks(self.text[place : word.start])), style)
            line.append_text(self.word(word, self.shading.word(word, phrase), style))
            place = word.end
        return line

    def word(self, word: Word, strength: float, style: Style) -> Text:
        shown, large = self.ink.safe(word.text), abs(strength) >= LARGE_WORD and is_spelled(word)
        if self.ink.colour:
            own = style if self.shading.has_phrases else _style(strength)
            return Text(shown, own + Style(bold=True, underline=True) if large else own)
        number = "" if self.shading.has_phrases else self.ink.signed(word.effect or 0.0)
        return Text(f"*{shown}*{number}" if large else shown)


def _style(strength: float) -> Style:
    styles = FOR if strength > 0 else AGAINST
    return styles[level(abs(strength), len(styles) - 1)]
