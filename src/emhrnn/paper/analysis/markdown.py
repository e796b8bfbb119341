"""An analysis as Markdown."""

from collections.abc import Sequence

from emhrnn.explain.escape import visible
from emhrnn.explain.lexicon import Entry
from emhrnn.explain.svg import shorten
from emhrnn.paper.analysis.analysis import Agreement, Analysis, ModelFacts
from emhrnn.paper.analysis.tally import Attention
from emhrnn.paper.comparison.markdown import plain

CHANCE = """`weight` is the mean attention of a word in its softmax, `chance` the mean of 1 / items in that softmax,
`x chance` the mean of weight / chance. EM-HRNN's softmax runs over the words of a phrase, MHS-RNN's over all words and
phrases of a sentence: raw weights of the two cannot be compared, multiples of chance can. `x sentence` is the word's
share of its sentence, through its phrase, as a multiple of 1 / words of the sentence: the same scale for every model.
`alone`: how often the word is a phrase of its own, where its weight can only be 1."""
LONGEST_PHRASE = 80  # characters shown


def render_markdown(analysis: Analysis) -> str:
    parts = [
        f"# How {' and '.join(plain(model.name) for model in analysis.models)} read {plain(analysis.data)}\n",
        f"{analysis.documents:,} documents, {analysis.words:,} words"
        + (f"; {analysis.skipped:,} rows without words were skipped" if analysis.skipped else "")
        + ".\n",
        lines(["run", "model", "seed", "accuracy"], [_run(model) for model in analysis.models]),
        "## Phrase lengths\n",
        lines(["run", "phrases", "mean words", "shortest", "longest"], [_lengths(model) for model in analysis.models]),
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
        making(analysis),
    ]
    return "\n".join(parts)


def _run(model: ModelFacts) -> list[str]:
    return [plain(model.name), model.model, str(model.seed), _percent(model.accuracy)]


def _lengths(model: ModelFacts) -> list[str]:
    found = model.phrases
    if found is None:
        return [plain(model.name), "none", "-", "-", "-"]
    return [plain(model.name), f"{found.phrases:,}", f"{found.mean:.2f}", str(found.shortest), str(found.longest)]


def _tied(analysis: Analysis) -> list[str]:
    if analysis.tied is None:
        return []
    told = "; ".join(f"{plain(name)}: {', '.join(map(plain, words))}" for name, words in analysis.tied.items())
    return [f"The words most tied to each class. {told}.\n"]


def attention_table(models: Sequence[ModelFacts]) -> str:
    head = ["word", "run", "times", "weight", "chance", "x chance", "x sentence", "alone"]
    rows = []
    for k in range(len(models[0].attention)):
        rows += [attention_row(model.name, model.attention[k]) for model in models]
    rows += [attention_row(model.name, model.average) for model in models]
    return lines(head, rows, left=2)


def attention_row(name: str, word: Attention) -> list[str]:
    values = [word.weight, word.chance, word.lift, word.in_sentence]
    shown = ["-" if value is None else f"{value:.2f}" for value in values]
    return [plain(word.word), plain(name), f"{word.count:,}", *shown, _percent(word.alone)]


def agreement_lines(analysis: Analysis) -> list[str]:
    if analysis.agreement is None or analysis.agreement_of_all is None:
        return ["Give two runs to see how often they agree.\n"]
    return [
        f"- {_agreed(analysis.agreement)} of {analysis.agreement.documents} documents drawn with seed {analysis.seed}.",
        f"- {_agreed(analysis.agreement_of_all)} of all {analysis.agreement_of_all.documents:,} documents.\n",
    ]


def _agreed(agreement: Agreement) -> str:
    share = agreement.same_word / agreement.documents
    place = agreement.same_place / agreement.documents
    return (
        f"Both choose the same word in {agreement.same_word:,} ({share:.1%}), at the same place in "
        f"{agreement.same_place:,} ({place:.1%}; two words drawn blindly: {agreement.chance:.1%})"
    )


def _important(model: ModelFacts) -> str:
    words = ", ".join(f"{plain(word)} ({count})" for word, count in model.important)
    return f"Most often chosen by {plain(model.name)}: {words}.\n"


def _lexicon(model: ModelFacts) -> str:
    if model.phrases is None:
        return f"{plain(model.name)} has no phrases.\n"
    parts = [f"### {plain(model.name)}\n"]
    for name, entries in model.lexicon:
        parts.append(f"Class {plain(name)}:\n")
        parts.append(lines(["phrase", "times", "effect"], [_entry(entry) for entry in entries]))
    return "\n".join(parts)


def _entry(entry: Entry) -> list[str]:
    return [
        plain(shorten(visible(entry.phrase), LONGEST_PHRASE)),
        f"{entry.count:,}",
        f"{100 * entry.effect:+.1f} points",
    ]


def making(analysis: Analysis) -> str:
    told = analysis.making
    return f"Made by `{told['command']}`, seed {analysis.seed}, at commit {told['commit']}, on {told['machine']}.\n"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def lines(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table; the first `left` columns are text."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows)) + "\n"
