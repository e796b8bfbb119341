"""An analysis as tables for the terminal."""

from emhrnn.cli.output import aligned, percent
from emhrnn.explain.escape import visible
from emhrnn.explain.svg import shorten
from emhrnn.paper.analysis.analysis import Agreement, Analysis
from emhrnn.paper.analysis.tally import Attention

LISTED, LETTERS = 5, 60


def analysis_tables(analysis: Analysis) -> str:
    parts = [_runs(analysis), _attention(analysis)]
    if analysis.agreement is not None and analysis.agreement_of_all is not None:
        parts.append(
            f"The most important word: {_agreed(analysis.agreement)} drawn, {_agreed(analysis.agreement_of_all)}"
        )
    for model in analysis.models:
        for name, entries in model.lexicon:
            rows = [
                [f"  {shorten(visible(entry.phrase), LETTERS)}", f"{entry.count:,}x", f"{100 * entry.effect:+.1f}"]
                for entry in entries[:LISTED]
            ]
            if rows:
                parts.append(f"{model.name}, phrases for {name} (points of probability)\n{aligned(rows)}")
    return "\n\n".join(parts)


def _runs(analysis: Analysis) -> str:
    rows = [["", "model", "accuracy", "phrases", "mean words", "shortest", "longest"]]
    for model in analysis.models:
        found = model.phrases
        lengths = ["-"] * 4
        if found is not None:
            lengths = [f"{found.phrases:,}", f"{found.mean:.2f}", str(found.shortest), str(found.longest)]
        rows.append([model.name, model.model, "-" if model.accuracy is None else percent(model.accuracy), *lengths])
    return f"{analysis.documents:,} documents of {analysis.data}\n{aligned(rows, {2, 3, 4, 5, 6})}"


def _attention(analysis: Analysis) -> str:
    rows = [["attention", *(head for model in analysis.models for head in (model.name, "x chance", "x sentence"))]]
    for k, word in enumerate(analysis.models[0].attention):
        rows.append([word.word, *(cell for model in analysis.models for cell in _cells(model.attention[k]))])
    rows.append(["(all words)", *(cell for model in analysis.models for cell in _cells(model.average))])
    return aligned(rows)


def _cells(word: Attention) -> list[str]:
    return ["-" if value is None else f"{value:.2f}" for value in (word.weight, word.lift, word.in_sentence)]


def _agreed(agreement: Agreement) -> str:
    return f"the same in {agreement.same_word:,} of {agreement.documents:,} documents"
