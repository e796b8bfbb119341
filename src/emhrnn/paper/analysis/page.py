"""An analysis as one self-contained page: no script, no request, light and dark, for a phone and for paper."""

from collections.abc import Sequence
from importlib.resources import files

from emhrnn.explain.escape import escape
from emhrnn.explain.explanation import as_tuple
from emhrnn.explain.html import html_section, legend
from emhrnn.explain.lexicon import Entry
from emhrnn.explain.page import page
from emhrnn.explain.svg import bar, column_chart, figure, shorten
from emhrnn.paper.analysis.analysis import Analysis, Example, ModelFacts
from emhrnn.paper.analysis.charts import Group, lift_chart
from emhrnn.paper.analysis.judging import PAGE
from emhrnn.paper.analysis.tally import Attention

DRAWN_LENGTHS = 24  # words of a phrase on the axis; longer ones are told in words
LISTED = 12  # disagreements
PHRASE_LETTERS, EXAMPLE_LETTERS = 70, 160


def render_html(analysis: Analysis) -> str:
    names = " and ".join(model.name for model in analysis.models)
    sections = (headline(analysis), lengths(analysis), attention(analysis), important(analysis), shown(analysis))
    lexicons = [lexicon(model) for model in analysis.models if model.phrases is not None]
    style = files("emhrnn.paper.analysis").joinpath("report.css").read_text(encoding="utf-8")
    return page(f"How {names} read", "\n".join([*sections, *lexicons, footer(analysis)]), style=style)


def headline(analysis: Analysis) -> str:
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


def lengths(analysis: Analysis) -> str:
    found = [model for model in analysis.models if model.phrases is not None]
    if not found:
        return ""
    charts = "".join(_length_chart(model) for model in found)
    return f'<section><h2>Phrase lengths</h2>\n<div class="charts">{charts}</div></section>'


def _length_chart(model: ModelFacts) -> str:
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


def attention(analysis: Analysis) -> str:
    names = [model.name for model in analysis.models]
    own, through = ([Group(word.word, []) for word in analysis.models[0].attention] for _ in range(2))
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


def _attention_table(model: ModelFacts) -> str:
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


def important(analysis: Analysis) -> str:
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


def shown(analysis: Analysis) -> str:
    """The paper's Figures 4 and 5: one document under each model."""
    articles = "\n".join(html_section(explanation) for explanation in analysis.shown.explanations)
    return f"<section><h2>One document, read by each</h2>\n{legend(analysis.shown.explanations)}\n{articles}</section>"


def lexicon(model: ModelFacts) -> str:
    tables = "".join(_lexicon_table(name, entries) for name, entries in model.lexicon)
    return f"""<section><h2>Phrases that move a class: {escape(model.name)}</h2>
<p class="muted">By how much the probability of the class falls, on average, when the phrase is taken out where it
occurs.</p>
<div class="charts">{tables}</div></section>"""


def _lexicon_table(name: str, entries: Sequence[Entry]) -> str:
    rows = "".join(_entry(entry, entries[0].effect) for entry in entries)
    empty = "" if entries else '<p class="muted">No phrase that occurs often enough raises it.</p>'
    table = f'<table class="scores lexicon"><tbody>{rows}</tbody></table>' if entries else ""
    return f'<div class="card"><h3>{escape(name)}</h3>{empty}{table}</div>'


def _entry(entry: Entry, largest: float) -> str:
    example = f'<p class="muted" dir="auto">{escape(shorten(entry.example, EXAMPLE_LETTERS))}</p>'
    return (
        f'<tr><th scope="row"><details><summary dir="auto">{escape(shorten(entry.phrase, PHRASE_LETTERS))}'
        f' <span class="muted">{entry.count:,}\u00d7</span></summary>{example}</details></th>'
        f'<td class="effect">{bar(entry.effect / largest if largest else 0)}</td>'
        f'<td class="number">{100 * entry.effect:+.1f}</td></tr>'
    )


def footer(analysis: Analysis) -> str:
    told = analysis.making
    return (
        f"<footer>{escape(told['command'])} \u00b7 seed {analysis.seed} \u00b7 commit {escape(told['commit'])} \u00b7 "
        f"{escape(told['machine'])}</footer>"
    )
