"""The paper's Table 3 and the numbers around it, beside those of two runs of ours; and its Figures 4 and 5: one
document under MHS-RNN and under EM-HRNN, `//` between phrases, colour by attention.

OUT/table3.md, table3.json      the table
OUT/figures.html                both as explanations that open, level by level
OUT/figures.txt                 as in a terminal without colour
OUT/figures.json                as data, with the command that made them
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError
from emhrnn.explain.escape import escape, visible
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import LEGEND, OPTIONS, html_section
from emhrnn.explain.lexicon import Entry
from emhrnn.explain.page import page
from emhrnn.files import write_json, write_text
from emhrnn.paper.analysis import Analysis, RunFacts, analyse
from emhrnn.paper.reports import making, markdown_table, plain
from emhrnn.training.config import validated
from emhrnn.training.data import Named
from emhrnn.training.run import load_run, read_description


def check_models(em: Path, mhs: Path) -> None:
    """Raise a ConfigError unless they are runs of EM-HRNN and MHS-RNN, whose names will stand above what is shown."""
    for folder, wanted in ((em, "em-hrnn"), (mhs, "mhs-rnn-att")):
        found = read_description(folder)["config"]["model"]["name"]
        if found != wanted:
            raise ConfigError(
                f"{folder} is a run of {found}, not of {wanted}; give a run of em-hrnn, then one of mhs-rnn-att"
            )


NAMES = ("EM-HRNN", "MHS-RNN")
CHANCE = """`weight` is the mean attention of a word in its softmax, `chance` the mean of 1 / items in that softmax,
`x chance` the mean of weight / chance. EM-HRNN's softmax runs over the words of a phrase, MHS-RNN's over all words and
phrases of a sentence: raw weights of the two cannot be compared, multiples of chance can. `x sentence` is the word's
share of its sentence, through its phrase, as a multiple of 1 / words of the sentence: the same scale for every model.
`alone`: how often the word is a phrase of its own, where its weight can only be 1."""
PAPER_LENGTHS = {"EM-HRNN": (4.31, 1, 11), "MHS-RNN": (4.72, 1, 17)}  # mean, shortest, longest
PAPER_ATTENTION = {  # mean weight in EM-HRNN and in MHS-RNN
    "good": (0.69, 0.62), "bad": (0.67, 0.57), "great": (0.56, 0.51), "sad": (0.54, 0.49), "excellent": (0.51, 0.44),
}  # fmt: skip
PAPER_SAME, PAPER_DRAWN = 176, 200
PAPER_JUDGED = (14, 3, 7)  # EM-HRNN's word is better, MHS-RNN's is better, cannot say
SHORT_PHRASE, PHRASES = 5, 10  # words of a phrase, and phrases of a class, that are passed on: data terms forbid more


@dataclass(frozen=True, eq=False)
class Table3:
    """`analysis.models` are EM-HRNN and MHS-RNN, in this order."""

    analysis: Analysis
    training: Sequence[Mapping[str, Any]]  # what each run was trained on

    def to_dict(self) -> dict[str, Any]:
        told = self.analysis.to_dict()
        for model, facts in zip(told["models"], self.analysis.models, strict=True):
            model["lexicon"] = {
                name: [{**entry.to_dict(), "example": None} for entry in short(entries)]
                for name, entries in facts.lexicon
            }
        return {
            "ours": told,
            "training": list(self.training),
            "paper": {
                "phrase_lengths": {name: dict(zip(("mean", "shortest", "longest"), row, strict=True))
                                   for name, row in PAPER_LENGTHS.items()},
                "attention": {word: dict(zip(NAMES, row, strict=True)) for word, row in PAPER_ATTENTION.items()},
                "same_word": PAPER_SAME,
                "documents": PAPER_DRAWN,
                "judged": dict(zip((*NAMES, "cannot say"), PAPER_JUDGED, strict=True)),
            },
        }  # fmt: skip


def short(entries: Sequence[Entry]) -> list[Entry]:
    """The entries whose phrases are short enough to be passed on."""
    return [entry for entry in entries if len(entry.phrase.split()) <= SHORT_PHRASE][:PHRASES]


def describe_training(folder: Path) -> dict[str, Any]:
    """Which data, settings and seed a run is of; files by their names alone."""
    told = read_description(folder)
    settings, data = told["config"], told["data"]["train"]
    vectors = told.get("vectors")
    return {
        "model": settings["model"]["name"],
        "data": Path(data["source"]).name,
        "documents": data["documents"],
        "epochs": settings["training"]["epochs"],
        "seed": settings["training"]["seed"],
        "vectors": None if not vectors else Path(vectors).name,
        "estep": settings["em"]["estep"] if settings["model"]["name"] == "em-hrnn" else None,
        "settings": validated(settings).changed_settings(),
    }


def render_table3(table: Table3) -> str:
    """table3.md."""
    analysis = table.analysis
    parts = [
        "# Table 3 of the paper\n",
        f"Ours: {analysis.documents:,} documents of {plain(analysis.data)}. The paper's numbers are of its five sets "
        "together, so that they stand beside ours but are not of the same data.\n",
        markdown_table(["", "accuracy", "trained on", "vectors", "epochs", "seed"], _runs(table)),
        *(_settings(name, told) for name, told in zip(NAMES, table.training, strict=True)),
        "## Phrase lengths, in words\n",
        markdown_table(["", "mean", "shortest", "longest", "paper: mean", "shortest", "longest"], _lengths(analysis)),
        _shapes(analysis),
        "## Mean attention of words\n",
        markdown_table(["word", "EM-HRNN", "paper", "MHS-RNN", "paper"], _beside(analysis)),
        "The same, with chance:\n",
        _attention_table(analysis.models),
        CHANCE + "\n",
        "## The most important word of a document\n",
        f"- The paper: the same word in {PAPER_SAME} of {PAPER_DRAWN} documents.",
        f"- {analysis.agreement} of {analysis.agreement.documents} documents drawn with seed {analysis.seed}.",
        f"- {analysis.agreement_of_all} of all {analysis.documents:,} documents.\n",
        "Where they differ, the paper's authors prefer EM-HRNN's word in {}, MHS-RNN's in {}, neither in {}. Ours have "
        "not been judged by people.\n".format(*PAPER_JUDGED),
        "## Phrases that move a class\n",
        f"Mean change of the probability of the class when the phrase is taken out, of phrases up to {SHORT_PHRASE} "
        "words.\n",
        *(_lexicon(model, name) for model, name in zip(analysis.models, NAMES, strict=True)),
        _making(analysis),
    ]
    return "\n".join(parts)


def _runs(table: Table3) -> list[list[str]]:
    rows = []
    for name, model, told in zip(NAMES, table.analysis.models, table.training, strict=True):
        estep = f" ({told['estep']})" if told["estep"] else ""
        accuracy = f"{100 * model.accuracy:.1f} %"
        data = f"{told['documents']:,} documents of {plain(told['data'])}"
        vectors = plain(told["vectors"] or "none")
        rows.append([name + estep, accuracy, data, vectors, str(told["epochs"]), str(told["seed"])])
    return rows


def _settings(name: str, told: Mapping[str, Any]) -> str:
    changed = ", ".join(f"{key}={value}" for key, value in told["settings"].items())
    return f"{name} was trained with {plain(changed) if changed else 'nothing'} set, all else by default.\n"


def _lengths(analysis: Analysis) -> list[list[str]]:
    rows = []
    for name, model in zip(NAMES, analysis.models, strict=True):
        mean, shortest, longest = PAPER_LENGTHS[name]
        found = model.phrases
        ours = [f"{found.mean:.2f}", str(found.shortest), str(found.longest)]
        rows.append([name, *ours, f"{mean:.2f}", str(shortest), str(longest)])
    return rows


def _shapes(analysis: Analysis) -> str:
    """The distribution of phrase lengths, which a mean does not show."""
    told = []
    for name, model in zip(NAMES, analysis.models, strict=True):
        shares = [count / model.phrases.phrases for count in model.phrases.histogram]
        told.append(
            f"{name}: {shares[0]:.0%} of the phrases have one word, {sum(shares[1:5]):.0%} two to five, "
            f"{sum(shares[5:10]):.0%} six to ten, {sum(shares[10:]):.0%} more."
        )
    return " ".join(told) + "\n"


def _attention_table(models: Sequence[RunFacts]) -> str:
    """Every word under every model, beside chance."""
    head = ["word", "run", "times", "weight", "chance", "x chance", "x sentence", "alone"]
    words = [*zip(*(model.attention for model in models), strict=True), [model.average for model in models]]
    rows = []
    for name, one in ((name, one) for word in words for name, one in zip(NAMES, word, strict=True)):
        values = (one.weight, one.chance, one.lift, one.in_sentence)
        shown = ["-" if value is None else f"{value:.2f}" for value in values]
        alone = "-" if one.alone is None else f"{100 * one.alone:.1f} %"
        rows.append([plain(one.word), name, f"{one.count:,}", *shown, alone])
    return markdown_table(head, rows, left=2)


def _beside(analysis: Analysis) -> list[list[str]]:
    rows = []
    for ours, theirs in zip(analysis.models[0].attention, analysis.models[1].attention, strict=True):
        paper = PAPER_ATTENTION.get(ours.word)
        printed = ["-", "-"] if paper is None else [f"{value:.2f}" for value in paper]
        em, mhs = ("-" if word.weight is None else f"{word.weight:.2f}" for word in (ours, theirs))
        rows.append([plain(ours.word), em, printed[0], mhs, printed[1]])
    return rows


def _lexicon(model: RunFacts, shown: str) -> str:
    parts = [f"### {shown}\n"]
    for name, entries in model.lexicon:
        rows = [
            [plain(visible(entry.phrase)), f"{entry.count:,}", f"{100 * entry.effect:+.1f}"] for entry in short(entries)
        ]
        parts.append(f"Class {plain(name)}:\n\n{markdown_table(['phrase', 'times', 'points'], rows)}")
    return "\n".join(parts)


def _making(analysis: Analysis) -> str:
    told = analysis.making
    return (
        f"- command: `{told['command']}`\n- commit: {told['commit']}\n- seed of the draw: {analysis.seed}\n"
        f"- machine: {told['machine']}\n"
    )


def reproduce_table3(
    em: Path, mhs: Path, data: Named, out: Path, *, words: Sequence[str], documents: int, seed: int, progress: bool
) -> Table3:
    """One analysis of two runs, as `analyse` explains it; table3.md and table3.json."""
    check_models(em, mhs)
    folders = dict(zip(NAMES, (em, mhs), strict=True))
    analysis = analyse(folders, data, words=words, documents=documents, seed=seed, progress=progress)
    table = Table3(analysis, [describe_training(folder) for folder in folders.values()])
    write_json(out / "table3.json", table.to_dict())
    write_text(out / "table3.md", render_table3(table))
    return table


@dataclass(frozen=True, eq=False)
class Figures:
    """`mhs` is Figure 4, `em` is Figure 5."""

    mhs: Explanation
    em: Explanation
    making: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        return {"making": dict(self.making), "figure4": self.mhs.to_dict(), "figure5": self.em.to_dict()}


REVIEW = files("emhrnn.paper.analysis").joinpath("review.txt")  # ours: texts of others may not be passed on


def draw_figures(em: Path, mhs: Path, out: Path, *, text: str | None = None) -> Figures:
    """Explain one text, by default our own review, under both runs, and write all files to `out`."""
    check_models(em, mhs)
    runs = [load_run(folder) for folder in (mhs, em)]
    text = REVIEW.read_text(encoding="utf-8").strip() if text is None else text
    first, second = (explain_texts(run, [text])[0] for run in runs)
    seeds = ", ".join(f"{run.config.model.name} seed {run.config.training.seed}" for run in runs)
    figures = Figures(first, second, making(runs=seeds))
    told = " \u00b7 ".join(f"{name}: {figures.making[name]}" for name in figures.making)
    title = "Figures 4 and 5: one document under two models"
    sections = "\n".join(html_section(explanation, attention=True) for explanation in (first, second))
    body = f"<h1>{title}</h1>\n{OPTIONS}\n{sections}\n{LEGEND}\n<footer>{escape(told)}</footer>"
    write_text(out / "figures.html", page(title, body))
    write_text(out / "figures.txt", f"{first}\n\n{second}\n\n{told}\n")
    write_json(out / "figures.json", figures.to_dict())
    return figures
