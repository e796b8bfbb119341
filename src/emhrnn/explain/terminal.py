"""Explanations in the terminal, after the paper's Figures 4-5: `//` between phrases, colour by attention.

With colour, a phrase is tinted by its share of the document and a heavy word is underlined. Without colour (a pipe, a
file, NO_COLOR) the same is said in signs: `[the phrase]44%` and `*word*`.

Where phrases add up (evidence), the colour says for (blue) or against (orange) the prediction, and numbers are signed:
`[the phrase]+2.31`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.style import Style
from rich.table import Table
from rich.text import Text

from emhrnn.explain.counterfactual import Counterfactual
from emhrnn.explain.escape import visible, without_breaks
from emhrnn.explain.explanation import Explanation, Labels, Phrase, Sentence, as_tuple
from emhrnn.explain.headline import Fragment, Shading, balance, headline, ways
from emhrnn.explain.page import percent, signed
from emhrnn.explain.svg import level

# We cannot know whether the terminal is dark or light, and a ramp of backgrounds would run backwards on one of them. So
# light phrases get amber letters that read on both, heavy ones an amber ground: more ink for more weight, one hue.
AMBER = "#c47f00"
STYLES = (
    Style(),
    Style(),
    Style(color=AMBER),
    Style(color=AMBER, bold=True),
    Style(color="#1a1a1a", bgcolor="#ffc861"),
    Style(color="#1a1a1a", bgcolor="#ff9f1c"),
)
BLUE, ORANGE = "#3584d6", "#cc6a14"
FOR = (
    *STYLES[:2],
    Style(color=BLUE),
    Style(color=BLUE, bold=True),
    Style(color="#1a1a1a", bgcolor="#a9d1fb"),
    Style(color="#1a1a1a", bgcolor="#6fb3f7"),
)
AGAINST = (
    *STYLES[:2],
    Style(color=ORANGE),
    Style(color=ORANGE, bold=True),
    Style(color="#1a1a1a", bgcolor="#ffc694"),
    Style(color="#1a1a1a", bgcolor="#ff9d4d"),
)
HEAVY_PHRASE, HEAVY_WORD = 0.4, 0.5  # of the document's heaviest phrase and word
CLASSES_SHOWN = 6
NARROW = 60  # columns; below it the bars give way to the text
SIGNS = "+ is for the label, - against it; words add up to phrases, phrases to sentences, all to the sum."


def print_explanation(explanation: Explanation, console: Console | None = None) -> None:
    (console or Console(highlight=False)).print(TerminalView(explanation))


def print_counterfactual(counterfactual: Counterfactual, console: Console | None = None) -> None:
    console = console or Console(highlight=False)
    ink = Ink(colour=False, ascii_only=console.options.ascii_only, wide=True)
    quoted = [f'"{ink.safe(without_breaks(text))}"' for text in counterfactual.texts]
    console.print(Text(counterfactual.told(quoted, ink.safe)))


@dataclass(frozen=True)
class TerminalView:
    """A rich renderable: it adapts to the console's width, colours and encoding when it is printed."""

    explanation: Explanation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        ink = Ink(
            colour=console.color_system is not None and not console.no_color,
            ascii_only=options.ascii_only,
            wide=options.max_width >= NARROW,
        )
        yield prediction(self.explanation, ink)
        yield class_bars(self.explanation, ink)
        yield Text()
        yield sentences(self.explanation, ink)
        yield Text()
        yield decisive_path(self.explanation, ink)
        if (told := speaking(self.explanation, ink)) is not None:
            yield told
        if self.explanation.evidence is not None:
            yield written(balance(self.explanation), ink)
            yield Text(SIGNS, "dim")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(20, options.max_width), options.max_width)


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


def prediction(explanation: Explanation, ink: Ink) -> Text:
    line = Text()
    line.append(ink.safe(joined(explanation.predicted)), "bold")
    line.append(f"  {ink.safe(explanation.model)}", "dim")
    if explanation.label is not None:
        kind = ("correct", "green") if explanation.correct else ("wrong", "red")
        line.append(f"  {kind[0]}: labelled {ink.safe(joined(explanation.label))}", kind[1])
    return line


def class_bars(explanation: Explanation, ink: Ink) -> Table:
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


def sentences(explanation: Explanation, ink: Ink) -> Table:
    """The document, one sentence a row, its weight in the margin."""
    painter = _DocumentText(explanation, ink)
    shading = painter.shading
    table = Table.grid(padding=(0, 1), expand=True)
    if ink.wide:
        table.add_column(width=8, no_wrap=True)
    table.add_column(width=6 if shading.signed else 4, justify="right", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    if pushed := ink.wide and explanation.effects is not None and not shading.signed:
        table.add_column(width=6, justify="right", no_wrap=True)
    heaviest = explanation.decisive_path().sentence.index if explanation.supported else None
    for sentence in explanation.sentences:
        long = shading.bar(sentence)
        colour = AMBER if not shading.signed else BLUE if long > 0 else ORANGE
        bar = [Text(ink.bar(abs(long), 8), colour)] if ink.wide else []
        number = Text(ink.sign(shading.number(sentence)), "bold" if sentence.index == heaviest else "")
        effect = [Text(ink.signed(sentence.effect or 0), "dim")] if pushed else []
        table.add_row(*bar, number, painter.sentence(sentence), *effect)
    return table


def decisive_path(explanation: Explanation, ink: Ink) -> Text:
    if explanation.evidence is not None:
        return written(headline(explanation), ink)
    sentence, phrase, word = explanation.decisive_path()
    line = Text("Decided most by ")
    line.append(f"sentence {sentence.index + 1} ({percent(sentence.weight)}), in it ")
    if len(sentence.phrases) > 1:  # else the phrase is the sentence, and models without phrases have no other
        line.append(f'"{ink.safe(without_breaks(phrase.text))}"', "bold")
        line.append(f" ({percent(phrase.weight)}), in that ")
    line.append(f'"{ink.safe(word.text)}"', "bold")
    return line.append(f" ({percent(word.weight)}).")


def written(pieces: Sequence[Fragment], ink: Ink) -> Text:
    line = Text()
    for text, kind in pieces:
        if kind == "quote":
            line.append(f'"{ink.safe(without_breaks(text))}"', "bold")
        else:
            line.append(ink.sign(text) if kind == "number" else ink.safe(text))
    return line


def speaking(explanation: Explanation, ink: Ink) -> Text | None:
    """The phrases that pushed most, each way."""
    line, it = Text(), ink.safe(explanation.spoken_of)
    for way, phrases in ways(explanation):
        if phrases:
            line.append("\n" if line else "").append(f"{way} {it}: ")
        for number, phrase in enumerate(phrases):
            line.append(", " if number else "")
            line.append(f'"{ink.safe(without_breaks(phrase.text))}"', "bold")
            line.append(f" {ink.signed(phrase.effect or 0)}")
    return line or None


class _DocumentText:
    """Words and phrases of one document, marked relative to its heaviest ones."""

    def __init__(self, explanation: Explanation, ink: Ink) -> None:
        self.text, self.ink, self.shading = explanation.text, ink, Shading(explanation)

    def sentence(self, sentence: Sentence) -> Text:
        line = self.phrase(sentence.phrases[0])
        for before, after in pairwise(sentence.phrases):
            gap = self.ink.safe(without_breaks(self.text[before.end : after.start])).strip()
            line.append(f"{gap} ").append("//", "dim").append(" ").append_text(self.phrase(after))
        return line

    def phrase(self, phrase: Phrase) -> Text:
        relative = self.shading.phrase(phrase)
        if self.ink.colour:
            styles = STYLES if not self.shading.signed else FOR if relative > 0 else AGAINST
            return self.words(phrase, styles[level(abs(relative), len(styles) - 1)])
        line = self.words(phrase, Style())
        if abs(relative) < HEAVY_PHRASE:
            return line
        number = self.ink.signed(phrase.effect or 0.0) if self.shading.signed else percent(phrase.share)
        return Text.assemble("[", line, f"]{number}")

    def words(self, phrase: Phrase, style: Style) -> Text:
        line, place = Text(), phrase.start
        heavy = style + Style(bold=True, underline=True)
        for word in phrase.words:
            line.append(self.ink.safe(without_breaks(self.text[place : word.start])), style)
            marked = abs(self.shading.word(word, phrase)) >= HEAVY_WORD
            shown = self.ink.safe(word.text)
            line.append(f"*{shown}*" if marked and not self.ink.colour else shown, heavy if marked else style)
            place = word.end
        return line


def joined(labels: Labels) -> str:
    return ", ".join(as_tuple(labels)) or "no label"
