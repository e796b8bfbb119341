"""An analysis to read: report.md, and report.html, one self-contained page without script; with the judge page and all
data, the files of `emhrnn paper analyse`."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from emhrnn.cli.output import aligned, percent
from emhrnn.explain.escape import escape, visible
from emhrnn.explain.explanation import as_tuple
from emhrnn.explain.html import html_section, legend
from emhrnn.explain.lexicon import Entry
from emhrnn.explain.page import page
from emhrnn.explain.svg import WIDTH, bar, canvas, column_chart, figure, round_ticks, shorten, text
from emhrnn.files import write_json, write_text
from emhrnn.paper.analysis.analysis import Analysis, Example, RunFacts, WordAgreement
from emhrnn.paper.analysis.judge import KEY, PAGE, VERDICT, Judging, judging_page
from emhrnn.paper.analysis.words import Attention
from emhrnn.paper.markdown import markdown_table, plain

CHANCE = """`weight` is the mean attention of a word in its softmax, `chance` the mean of 1 / items in that softmax,
`x chance` the mean of weight / chance. EM-HRNN's softmax runs over the words of a phrase, MHS-RNN's over all words and
phrases of a sentence: raw weights of the two cannot be compared, multiples of chance can. `x sentence` is the word's
share of its sentence, through its phrase, as a multiple of 1 / words of the sentence: the same scale for every model.
`alone`: how often the word is a phrase of its own, where its weight can only be 1."""
LONGEST_PHRASE = 80  # characters shown


def render_markdown(analysis: Analysis) -> str:
    """report.md."""
    parts = [
        f"# How {' and '.join(plain(model.name) for model in analysis.models)} read {plain(analysis.data)}\n",
        f"{analysis.documents:,} documents, {analysis.words:,} words"
        + (f"; {analysis.skipped:,} rows without words were skipped" if analysis.skipped else "")
        + ".\n",
        markdown_table(["run", "model", "seed", "accuracy"], [_run(model) for model in analysis.models]),
        "## Phrase lengths\n",
        markdown_table(
            ["run", "phrases", "mean words", "shortest", "longest"], [_lengths(model) for model in analysis.models]
        ),
        "## Attention of words\n",
        *_tied(analysis),
        attention_table(analysis.models),
        CHANCE + "\n",
        "## The most important word of each document\n",
        *agreement_lines(analysis),
        *(_important(model) for model in analysis.models),
        "## Phrases that move a class\n",
        "Mean change of the probability of the class when the phrase is taken out, where it occurs.\n",
        *(_lexicon(model) for model in analysis.models),
        _making(analysis),
    ]
    return "\n".join(parts)


def _run(model: RunFacts) -> list[str]:
    return [plain(model.name), model.model, str(model.seed), _percent(model.accuracy)]


def _lengths(model: RunFacts) -> list[str]:
    found = model.phrases
    if found is None:
        return [plain(model.name), "none", "-", "-", "-"]
    return [plain(model.name), f"{found.phrases:,}", f"{found.mean:.2f}", str(found.shortest), str(found.longest)]


def _tied(analysis: Analysis) -> list[str]:
    if analysis.tied is None:
        return []
    told = "; ".join(f"{plain(name)}: {', '.join(map(plain, words))}" for name, words in analysis.tied.items())
    return [f"The words most tied to each class. {told}.\n"]


def attention_table(models: Sequence[RunFacts]) -> str:
    """Every word under every model, beside chance."""
    head = ["word", "run", "times", "weight", "chance", "x chance", "x sentence", "alone"]
    rows = []
    for k in range(len(models[0].attention)):
        rows += [_attention_cells(model.name, model.attention[k]) for model in models]
    rows += [_attention_cells(model.name, model.average) for model in models]
    return markdown_table(head, rows, left=2)


def _attention_cells(name: str, word: Attention) -> list[str]:
    values = [word.weight, word.chance, word.lift, word.in_sentence]
    shown = ["-" if value is None else f"{value:.2f}" for value in values]
    return [plain(word.word), plain(name), f"{word.count:,}", *shown, _percent(word.alone)]


def agreement_lines(analysis: Analysis) -> list[str]:
    """How often two models choose the same word, of the documents drawn and of all."""
    if analysis.agreement is None or analysis.agreement_of_all is None:
        return ["Give two runs to see how often they agree.\n"]
    return [
        f"- {_agreed(analysis.agreement)} of {analysis.agreement.documents} documents drawn with seed {analysis.seed}.",
        f"- {_agreed(analysis.agreement_of_all)} of all {analysis.agreement_of_all.documents:,} documents.\n",
    ]


def _agreed(agreement: WordAgreement) -> str:
    share = agreement.same_word / agreement.documents
    place = agreement.same_place / agreement.documents
    return (
        f"Both choose the same word in {agreement.same_word:,} ({share:.1%}), at the same place in "
        f"{agreement.same_place:,} ({place:.1%}; two words drawn blindly: {agreement.chance:.1%})"
    )


def _important(model: RunFacts) -> str:
    words = ", ".join(f"{plain(word)} ({count})" for word, count in model.important)
    return f"Most often chosen by {plain(model.name)}: {words}.\n"


def _lexicon(model: RunFacts) -> str:
    if model.phrases is None:
        return f"{plain(model.name)} has no phrases.\n"
    parts = [f"### {plain(model.name)}\n"]
    for name, entries in model.lexicon:
        parts.append(f"Class {plain(name)}:\n")
        parts.append(markdown_table(["phrase", "times", "effect"], [_entry(entry) for entry in entries]))
    return "\n".join(parts)


def _entry(entry: Entry) -> list[str]:
    return [
        plain(shorten(visible(entry.phrase), LONGEST_PHRASE)),
        f"{entry.count:,}",
        f"{100 * entry.effect:+.1f} points",
    ]


def _making(analysis: Analysis) -> str:
    told = analysis.making
    return f"Made by `{told['command']}`, seed {analysis.seed}, at commit {told['commit']}, on {told['machine']}.\n"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


LEFT, RIGHT, TOP, BAR, GAP = 96, 44, 26, 14, 10


@dataclass(frozen=True)
class _Bars:
    """The bars of one word, one for each model; None where it does not occur."""

    name: str
    values: list[float | None]


def lift_chart(groups: Sequence[_Bars], names: Sequence[str]) -> str:
    """Bars side by side: how many times chance each word weighs, under one model or two."""
    largest = max([1.0, *(value for group in groups for value in group.values if value is not None)])
    ticks = round_ticks(0, largest)
    scale = (WIDTH - LEFT - RIGHT) / ticks[-1]
    height = BAR * len(names) + GAP
    foot = TOP + height * len(groups)
    parts = [_legend(names)]
    for tick in ticks:
        x = LEFT + tick * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{foot}"/>')
        parts.append(text(x, foot + 16, f"{tick:g}"))
    chance = LEFT + scale
    parts.append(f'<line class="reference" x1="{chance:.1f}" x2="{chance:.1f}" y1="{TOP - 4}" y2="{foot}"/>')
    for row, group in enumerate(groups):
        parts.append(_group(group, TOP + row * height + GAP / 2, scale))
    told = "; ".join(
        f"{group.name} " + ", ".join("none" if value is None else f"{value:.2f}" for value in group.values)
        for group in groups
    )
    label = f"Attention as a multiple of chance ({', '.join(names)}): {told}"
    return canvas(label, "".join(parts), height=foot + 26)


def _legend(names: Sequence[str]) -> str:
    parts, x = [], float(LEFT)
    for name, kind in zip(names, ("first", "second"), strict=False):
        parts.append(f'<rect class="lift {kind}" x="{x:.1f}" y="2" width="12" height="12" rx="2"/>')
        parts.append(text(x + 17, 12, shorten(name, 20), anchor="start", kind="ink"))
        x += 17 + 7 * min(len(name), 20) + 18
    return "".join(parts)


def _group(group: _Bars, y: float, scale: float) -> str:
    middle = y + BAR * len(group.values) / 2 + 4
    parts = [text(LEFT - 10, middle, shorten(group.name, 12), anchor="end", kind="ink")]
    for value, kind in zip(group.values, ("first", "second"), strict=False):
        wide = 0.0 if value is None else value * scale
        parts.append(
            f'<rect class="lift {kind}" x="{LEFT}" y="{y + 1:.1f}" width="{wide:.1f}" height="{BAR - 2}" rx="2"/>'
        )
        shown = "does not occur" if value is None else f"\u00d7{value:.1f}"
        parts.append(text(LEFT + wide + 5, y + BAR - 3, shown, anchor="start", kind="halo"))
        y += BAR
    return "".join(parts)


DRAWN_LENGTHS = 24  # words of a phrase on the axis; longer ones are told in words
LISTED = 12  # disagreements
PHRASE_LETTERS, EXAMPLE_LETTERS = 70, 160


def render_html(analysis: Analysis) -> str:
    """report.html."""
    names = " and ".join(model.name for model in analysis.models)
    parts = (_headline, _lengths_section, _attention_section, _important_section, _shown_section)
    sections = [part(analysis) for part in parts]
    lexicons = [_lexicon_section(model) for model in analysis.models if model.phrases is not None]
    style = files("emhrnn.paper.analysis").joinpath("report.css").read_text(encoding="utf-8")
    return page(f"How {names} read", "\n".join([*sections, *lexicons, _footer(analysis)]), style=style)


def _headline(analysis: Analysis) -> str:
    facts = [("Documents", f"{analysis.documents:,}", f"{analysis.words:,} words")]
    for model in analysis.models:
        if model.phrases is not None:
            told = f"words a phrase, {model.phrases.shortest} to {model.phrases.longest}"
            facts.append((model.name, f"{model.phrases.mean:.2f}", told))
    if analysis.agreement is not None:
        same, total = analysis.agreement.same_word, analysis.agreement.documents
        facts.append(("Agreement", f"{same / total:.0%}", f"the same decisive word in {same} of {total} documents"))
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in facts
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(model.name)}<br>'
        f'<span class="muted">{escape(model.model)}, seed {model.seed}</span></th>'
        f'<td class="track">{bar(model.accuracy or 0, "chance")}</td>'
        f'<td class="number">{"not known" if model.accuracy is None else f"{model.accuracy:.1%}"}</td></tr>'
        for model in analysis.models
    )
    return f"""<header><h1>How {escape(" and ".join(model.name for model in analysis.models))} read</h1>
<p class="muted">{escape(analysis.data)}: what the phrases are, what attention falls on, and which word decided.</p>
<dl class="facts">{cells}</dl></header>
<div class="card"><table class="scores"><thead><tr><th scope="col">Run</th><th scope="col" class="track"></th>
<th scope="col" class="number">Accuracy</th></tr></thead><tbody>{rows}</tbody></table></div>"""


def _lengths_section(analysis: Analysis) -> str:
    found = [model for model in analysis.models if model.phrases is not None]
    if not found:
        return ""
    charts = "".join(_length_chart(model) for model in found)
    return f'<section><h2>Phrase lengths</h2>\n<div class="charts">{charts}</div></section>'


def _length_chart(model: RunFacts) -> str:
    phrases = model.phrases
    assert phrases is not None
    longer = sum(phrases.histogram[DRAWN_LENGTHS:]) / phrases.phrases
    told = (
        f"{phrases.phrases:,} phrases; mean {phrases.mean:.2f}, shortest {phrases.shortest}, longest {phrases.longest}"
    )
    told += f"; {longer:.1%} have more than {DRAWN_LENGTHS} words" if longer else ""
    chart = column_chart(
        phrases.histogram[:DRAWN_LENGTHS], label=f"Phrase lengths of {model.name}: {told}", x_name="words"
    )
    return figure(model.name, told, chart)


def _attention_section(analysis: Analysis) -> str:
    names = [model.name for model in analysis.models]
    own, through = ([_Bars(word.word, []) for word in analysis.models[0].attention] for _ in range(2))
    for model in analysis.models:
        for k, word in enumerate(model.attention):
            own[k].values.append(word.lift)
            through[k].values.append(word.in_sentence)
    charts = figure(
        "In its softmax",
        "Mean weight of a word, divided by what an indifferent softmax over the same items would give (dashed: 1)",
        lift_chart(own, names),
    ) + figure(
        "In its sentence",
        "Its share of the sentence, through its phrase, divided by an indifferent word's: one scale for all models",
        lift_chart(through, names),
    )
    tied = ""
    if analysis.tied is not None:
        told = "; ".join(f"{name}: {', '.join(words)}" for name, words in analysis.tied.items())
        tied = f"<p>The words most tied to each class. {escape(told)}.</p>"
    tables = "".join(_attention_table(model) for model in analysis.models)
    return f"""<section><h2>Attention of words, against chance</h2>{tied}<div class="charts">{charts}</div>
<details class="more"><summary>All numbers</summary>{tables}
<p class="muted">Weight: mean attention in the softmax that the word is in: over the words of its phrase, for MHS-RNN
over all words and phrases of its sentence. Chance: mean of 1 / items in that softmax. In the sentence: share of the
sentence through the phrase, against 1 / words of the sentence; the same scale for all models. Alone: how often the
word is a phrase of its own, where its weight can only be 1.</p></details></section>"""


def _attention_table(model: RunFacts) -> str:
    rows = "".join(_attention_row(word) for word in (*model.attention, model.average))
    heads = "".join(
        f'<th scope="col" class="number">{head}</th>'
        for head in ("times", "weight", "chance", "\u00d7 chance", "in the sentence", "alone")
    )
    return (
        f'<h3>{escape(model.name)}</h3><div class="scroll"><table class="scores values"><thead><tr>'
        f'<th scope="col">word</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _attention_row(word: Attention) -> str:
    values = [f"{word.count:,}"]
    values += ["\u2013" if value is None else f"{value:.2f}" for value in (word.weight, word.chance)]
    values += ["\u2013" if value is None else f"\u00d7{value:.2f}" for value in (word.lift, word.in_sentence)]
    values.append("\u2013" if word.alone is None else f"{word.alone:.0%}")
    cells = "".join(f'<td class="number">{escape(value)}</td>' for value in values)
    return f'<tr><th scope="row" dir="auto">{escape(word.word)}</th>{cells}</tr>'


def _important_section(analysis: Analysis) -> str:
    lists = "".join(
        f"<p><strong>{escape(model.name)}</strong> most often chooses "
        + ", ".join(f'{escape(word)} <span class="muted">{count}</span>' for word, count in model.important)
        + ".</p>"
        for model in analysis.models
    )
    return f"<section><h2>The most important word of each document</h2>\n{_agreement(analysis)}{lists}</section>"


def _agreement(analysis: Analysis) -> str:
    agreed, everywhere = analysis.agreement, analysis.agreement_of_all
    if agreed is None or everywhere is None:
        return ""
    found = analysis.disagreements
    rows = "".join(_disagreement(example) for example in found[:LISTED])
    heads = "".join(f'<th scope="col">{escape(model.name)}</th>' for model in analysis.models)
    judge = f'<p><a href="{PAGE}">Judge all {len(found)} of them, blind</a></p>' if found else ""
    table = f"""<details class="more"><summary>{len(found)} documents in which they differ</summary>
<table class="scores"><thead><tr><th scope="col">row</th>{heads}<th scope="col">label</th></tr></thead>
<tbody>{rows}</tbody></table>
</details>"""
    return f"""<p>Both runs choose the same word in {agreed.same_word} of {agreed.documents} documents drawn with seed
{analysis.seed} ({agreed.same_word / agreed.documents:.1%}), at the same place in {agreed.same_place}; of all
{everywhere.documents:,} documents in {everywhere.same_word / everywhere.documents:.1%}, at the same place in
{everywhere.same_place / everywhere.documents:.1%}. Two words drawn blindly would be the same in
{agreed.chance:.1%}.</p>
{table if found else ""}{judge}"""


def _disagreement(example: Example) -> str:
    words = "".join(f'<td dir="auto">{escape(word.text)}</td>' for word in example.choices)
    label = "" if example.label is None else ", ".join(as_tuple(example.label))
    return f'<tr><th scope="row">{example.row:,}</th>{words}<td>{escape(label)}</td></tr>'


def _shown_section(analysis: Analysis) -> str:
    """The paper's Figures 4 and 5: one document under each model."""
    articles = "\n".join(html_section(explanation, attention=True) for explanation in analysis.shown.explanations)
    return f"<section><h2>One document, read by each</h2>\n{legend(analysis.shown.explanations)}\n{articles}</section>"


def _lexicon_section(model: RunFacts) -> str:
    tables = "".join(_lexicon_table(name, entries) for name, entries in model.lexicon)
    return f"""<section><h2>Phrases that move a class: {escape(model.name)}</h2>
<p class="muted">By how much the probability of the class falls, on average, when the phrase is taken out where it
occurs.</p>
<div class="charts">{tables}</div></section>"""


def _lexicon_table(name: str, entries: Sequence[Entry]) -> str:
    rows = "".join(_entry_row(entry, entries[0].effect) for entry in entries)
    empty = "" if entries else '<p class="muted">No phrase that occurs often enough raises it.</p>'
    table = f'<table class="scores lexicon"><tbody>{rows}</tbody></table>' if entries else ""
    return f'<div class="card"><h3>{escape(name)}</h3>{empty}{table}</div>'


def _entry_row(entry: Entry, largest: float) -> str:
    example = f'<p class="muted" dir="auto">{escape(shorten(entry.example, EXAMPLE_LETTERS))}</p>'
    return (
        f'<tr><th scope="row"><details><summary dir="auto">{escape(shorten(entry.phrase, PHRASE_LETTERS))}'
        f' <span class="muted">{entry.count:,}\u00d7</span></summary>{example}</details></th>'
        f'<td class="effect">{bar(entry.effect / largest if largest else 0)}</td>'
        f'<td class="number">{100 * entry.effect:+.1f}</td></tr>'
    )


def _footer(analysis: Analysis) -> str:
    told = analysis.making
    return (
        f"<footer>{escape(told['command'])} \u00b7 seed {analysis.seed} \u00b7 commit {escape(told['commit'])} \u00b7 "
        f"{escape(told['machine'])}</footer>"
    )


def write_analysis(analysis: Analysis, folder: Path) -> None:
    """report.md, report.json and report.html; with two runs that differ somewhere, judge.html and its key. What an
    analysis before left of judging goes: it is of other documents."""
    for stale in (PAGE, KEY, VERDICT):
        (folder / stale).unlink(missing_ok=True)
    write_json(folder / "report.json", analysis.to_dict())
    write_text(folder / "report.md", render_markdown(analysis))
    write_text(folder / "report.html", render_html(analysis))
    if len(analysis.models) == 2 and analysis.disagreements:
        judging = Judging.of(analysis)
        write_json(folder / KEY, judging.key())
        write_text(folder / PAGE, judging_page(judging))


TERMINAL_PHRASES, TERMINAL_LETTERS = 5, 60


def terminal_tables(analysis: Analysis) -> str:
    """The analysis as tables for the terminal."""
    parts = [_terminal_runs(analysis), _terminal_attention(analysis)]
    if analysis.agreement is not None and analysis.agreement_of_all is not None:
        drawn, every = map(_terminal_agreed, (analysis.agreement, analysis.agreement_of_all))
        parts.append(f"The most important word: {drawn} drawn, {every}")
    for model in analysis.models:
        for name, entries in model.lexicon:
            rows = [
                [
                    f"  {shorten(visible(entry.phrase), TERMINAL_LETTERS)}",
                    f"{entry.count:,}x",
                    f"{100 * entry.effect:+.1f}",
                ]
                for entry in entries[:TERMINAL_PHRASES]
            ]
            if rows:
                parts.append(f"{model.name}, phrases for {name} (points of probability)\n{aligned(rows)}")
    return "\n\n".join(parts)


def _terminal_runs(analysis: Analysis) -> str:
    rows = [["", "model", "accuracy", "phrases", "mean words", "shortest", "longest"]]
    for model in analysis.models:
        found = model.phrases
        lengths = ["-"] * 4
        if found is not None:
            lengths = [f"{found.phrases:,}", f"{found.mean:.2f}", str(found.shortest), str(found.longest)]
        rows.append([model.name, model.model, "-" if model.accuracy is None else percent(model.accuracy), *lengths])
    return f"{analysis.documents:,} documents of {analysis.data}\n{aligned(rows, {2, 3, 4, 5, 6})}"


def _terminal_attention(analysis: Analysis) -> str:
    rows = [["attention", *(head for model in analysis.models for head in (model.name, "x chance", "x sentence"))]]
    for k, word in enumerate(analysis.models[0].attention):
        rows.append([word.word, *(cell for model in analysis.models for cell in _terminal_cells(model.attention[k]))])
    rows.append(["(all words)", *(cell for model in analysis.models for cell in _terminal_cells(model.average))])
    return aligned(rows)


def _terminal_cells(word: Attention) -> list[str]:
    return ["-" if value is None else f"{value:.2f}" for value in (word.weight, word.lift, word.in_sentence)]


def _terminal_agreed(agreement: WordAgreement) -> str:
    return f"the same in {agreement.same_word:,} of {agreement.documents:,} documents"
