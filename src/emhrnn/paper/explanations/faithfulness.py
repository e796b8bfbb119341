"""`emhrnn paper faithfulness`: remove what an explanation calls important, and see how far the prediction falls.

comprehensiveness   p - p without the top k % of the words (phrases, sentences)       high: they were needed
sufficiency         p - p of the top k % alone                                        low: they were enough

p is the probability of the class that the model predicts for the whole document; both are means over k = 1, 5, 10, 20
and 50 (the area over the perturbation curve of DeYoung et al. 2020). At least one unit is always removed. Phrases that
stay keep their boundaries (explain/removal.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.corpus import is_corpus
from emhrnn.corpus.readers.source import Source
from emhrnn.errors import DataError
from emhrnn.explain.explainer import explain_read, read_batches
from emhrnn.explain.removal import LEVELS, logits_of, logits_without, odds_of, units_of
from emhrnn.files import write_json, write_text
from emhrnn.paper.explanations.agreement import Bootstrap, Figure, Sums, share
from emhrnn.paper.explanations.methods import ReadTexts, UnitScores, prediction_seconds, read_groups
from emhrnn.paper.explanations.table import (
    HOW_TO_READ,
    SLOW,
    USUAL,
    MethodRow,
    about_run,
    as_section,
    check_methods,
    method_rows,
    section_markdown,
)
from emhrnn.paper.reports import check_plots, markdown_table, pyplot, save_svg
from emhrnn.paper.sampling import Reservoir
from emhrnn.shapes import Float, Float64
from emhrnn.text import read_document
from emhrnn.training.data import Named
from emhrnn.training.run import Run, load_run

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
FIGURES: Mapping[str, Figure] = {"comprehensiveness": share(0, 2), "sufficiency": share(1, 2)}
INTRODUCTION = f"""# How faithful explanations are

p is the probability of the predicted class. *Comprehensiveness*: how far p falls when the top 1, 5, 10, 20, 50 % of the
words (phrases, sentences) are removed, mean of the five; the higher, the more the explanation names what was needed.
*Sufficiency*: how far p falls when only these are kept; the lower, the more they are enough. {HOW_TO_READ}"""


HEADLINES = """*headline*: share of the documents where the probability falls more without the phrase that
`emhrnn explain` names ("decided most by") than without any other phrase. *largest effect*: the same for the phrase
with the largest effect, which explanations of many texts name. *largest gap of the sums*: of prior and
effects to the log-odds that are shown.
"""
ROUNDING = 1e-6  # of a probability


def measure_faithfulness(
    folders: Sequence[Path],
    data: Named,
    out: Path,
    *,
    methods: Sequence[str] = USUAL,
    documents: int = 500,
    seed: int = 0,
    figure: bool = True,
) -> dict[str, Any]:
    """Writes faithfulness.md, .json and .svg (the curves of the first run) to `out`, and gives back the data.

    Raises:
        DataError: the data has no texts.
        ConfigError: a method is unknown, or there are too few documents for intervals.
    """
    check_methods(methods, documents)
    if figure:
        check_plots()
    runs = [load_run(folder) for folder in folders]
    texts = drawn_texts(data, documents, seed)
    rows, about = list[MethodRow](), list[dict[str, Any]]()
    plain = 0.0
    for run, folder in zip(runs, folders, strict=True):
        allowed = [name for name in methods if folder is folders[0] or name not in SLOW]
        read = read_groups(run, texts)
        plain = plain or prediction_seconds(read)
        rows += method_rows(folder.name, read, allowed, _measure, seed)
        about.append(about_run(run, folder))
    words = np.mean([len(read_document(text)) for text in texts])
    told = f"{len(texts)} documents of {data.path.name}, {words:.0f} words on average"
    section = as_section(rows, FIGURES, about, plain=plain, data=told, seed=seed, by_level=True)
    for row, one in zip(rows, section["rows"], strict=True):
        curve = row.sums.mean(axis=0)[3:].reshape(2, -1)
        one |= {f"{name} by share": values.tolist() for name, values in zip(FIGURES, curve, strict=True)}
    checks = [headline_check(run, texts, seed) for run in runs]
    section = {**section, "shares": SHARES, "headlines": dict(zip((one.name for one in folders), checks, strict=True))}
    write_json(out / "faithfulness.json", section)
    parts = [INTRODUCTION, section_markdown(data.path.name, section), headline_markdown(section["headlines"])]
    write_text(out / "faithfulness.md", "\n".join(parts))
    if figure:
        draw_curves([one for one in section["rows"] if one["run"] == folders[0].name], out / "faithfulness.svg")
    return section


def headline_check(run: Run, texts: Sequence[str], seed: int) -> dict[str, Any] | None:
    """Is the phrase that the headline names the one without which the probability falls most, of all phrases of its
    document? And how far are sums of effects from the shown log-odds? None for a model without phrases."""
    falls_most, largest_falls_most, gaps = list[bool](), list[bool](), list[float]()
    for _, documents, batch in read_batches(run, texts, apart=True):
        (explanation,) = explain_read(run, documents, batch, exact=True)
        effects, path = explanation.effects, explanation.decisive_path()
        if effects is None or not explanation.has_phrases or run.multi_label:
            return None
        z = np.zeros(batch.n_words, dtype=bool)
        z[explanation.phrase_offsets[1:] - 1] = True
        phrases = len(explanation.phrases)
        if effects.prior is not None and len(run.classes) == 2:
            (odds,) = odds_of(run, logits_of(run, batch, z), np.array([run.classes.index(effects.label)]))
            gaps.append(abs(effects.total - float(odds)))
        if path is None or phrases < 2:
            continue
        keep = (np.cumsum(z) - z) != np.arange(phrases)[:, None]
        p = run.probabilities(logits_without(run, batch, z, keep))[:, run.classes.index(effects.label)]
        named = [phrase.start for phrase in explanation.phrases].index(path.phrase.start)
        falls_most.append(bool(p[named] <= p.min() + ROUNDING))
        largest_falls_most.append(bool(p[int(effects.phrases.argmax())] <= p.min() + ROUNDING))
    bootstrap = Bootstrap.of(len(falls_most), seed)
    columns = np.stack([falls_most, largest_falls_most, np.ones(len(falls_most))], axis=1).astype(np.float64)
    return {
        "documents": len(falls_most),
        "headline": asdict(bootstrap.mean(share(0, 2), columns)),
        "largest effect": asdict(bootstrap.mean(share(1, 2), columns)),
        "sums": max(gaps, default=None),
    }


def headline_markdown(checks: Mapping[str, Mapping[str, Any] | None]) -> str:
    """A table of `headline_check`."""
    shown = "{value:.3f} [{low:.3f}, {high:.3f}]"
    rows = [
        [
            name,
            str(one["documents"]),
            shown.format(**one["headline"]),
            shown.format(**one["largest effect"]),
            "" if one["sums"] is None else f"{one['sums']:.1e}",
        ]
        for name, one in checks.items()
        if one is not None
    ]
    head = ["run", "documents", "headline", "largest effect", "largest gap of the sums"]
    return f"## Headlines\n\n{HEADLINES}\n{markdown_table(head, rows)}"


def drawn_texts(data: Named, count: int, seed: int) -> list[str]:
    """`count` texts, each set of them as likely as any other; all texts where there are fewer. Those without words are
    left out, after the drawing, since finding them means reading all."""
    if is_corpus(data.path):
        raise DataError(f"{data.path} is a prepared corpus, which has no texts; give the data that it was made from")
    reservoir = Reservoir[str](count, seed)
    for record in Source(data.path, format=data.format, columns=data.columns, split=data.split):
        if record.text.strip():
            reservoir.offer(record.text)
    texts = [text for text in reservoir.drawn if len(read_document(text))]  # a text may be all `<br>`
    if not texts:
        raise DataError(f"{data.path} has no text with words; give data with documents")
    return texts


def _measure(texts: Sequence[ReadTexts], scores: Sequence[UnitScores]) -> dict[str, Sums]:
    """Columns: both means, 1, then both at every share."""
    by_level: dict[str, list[np.ndarray]] = {}
    for group, found in zip(texts, scores, strict=True):
        for level, values in found.levels.items():
            falls = probability_falls(group, level, values)  # (2, shares, documents)
            columns = [*falls.mean(axis=1), np.ones(falls.shape[2]), *falls.reshape(-1, falls.shape[2])]
            by_level.setdefault(level, []).append(np.stack(columns, axis=1))
    return {level: np.concatenate(parts) for level, parts in by_level.items()}


@torch.inference_mode()
def probability_falls(
    texts: ReadTexts, level: str, scores: Float[np.ndarray, " units"], shares: Sequence[float] = SHARES
) -> Float64[np.ndarray, "2 shares documents"]:
    """How far the probability of the predicted class falls without the top units, and with them alone."""
    run, batch = texts.run, texts.batch
    units = units_of(batch, texts.z, level)
    top = np.stack([units.top(scores, one)[units.of_word] for one in shares])  # (shares, words)
    keep = np.concatenate([np.ones((1, batch.n_words), dtype=bool), ~top, top])
    p = run.probabilities(logits_without(run, batch, texts.z, keep))  # (copies x documents, classes)
    chosen = np.tile(texts.chosen.numpy(), len(keep))
    values = p[np.arange(len(p)), chosen].astype(np.float64).reshape(len(keep), batch.n_documents)
    falls: np.ndarray = (values[0] - values[1:]).reshape(2, len(shares), batch.n_documents)
    return falls


TITLES = {
    "comprehensiveness": "fall of p when these are removed",
    "sufficiency": "fall of p when only these are kept",
}


def draw_curves(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """How far p falls, by share, as SVG."""
    plt = pyplot()
    figure, axes = plt.subplots(2, len(LEVELS), figsize=(11, 6.4), sharex=True, sharey="row", squeeze=False)
    places = range(len(SHARES))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for row in rows:
        number = methods.index(row["method"])
        for axis_row, what in zip(axes, TITLES, strict=True):
            axis_row[LEVELS.index(row["level"])].plot(
                places, row[f"{what} by share"], color=f"C{number}", marker="osv^DxP*"[number % 8], markersize=4,
                linestyle=("-", "--", "-.", ":")[number % 4], linewidth=2.2 if row["default"] else 1.2,
                label=row["method"],
            )  # fmt: skip
    for axis, level in zip(axes[0], LEVELS, strict=True):
        axis.set_title(f"{level}s")
    for axis in axes[1]:
        axis.set_xticks(list(places), [f"{one:.0%}" for one in SHARES])
        axis.set_xlabel("top share by the explanation")
    for axis_row, title in zip(axes, TITLES.values(), strict=True):
        axis_row[0].set_ylabel(title)
        for axis in axis_row:
            axis.axhline(0, color="0.6", linewidth=0.8)
            axis.grid(visible=True, alpha=0.3)
    axes[0][-1].legend(fontsize=8, loc="upper left")  # where the curves leave room
    save_svg(figure, path)
