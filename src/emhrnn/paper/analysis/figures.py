"""The paper's Figures 4 and 5: one document under MHS-RNN and under EM-HRNN, `//` between phrases, colour by attention.

OUT/figures.html                both as explanations that open, level by level
OUT/figures.txt                 as in a terminal without colour
OUT/figures.json                as data, with the command that made them
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from emhrnn.explain.escape import escape
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation
from emhrnn.explain.html import LEGEND, OPTIONS, html_section
from emhrnn.explain.page import page
from emhrnn.files import write_json, write_text
from emhrnn.paper.analysis.table3 import check_models
from emhrnn.paper.provenance import making
from emhrnn.training.run import load_run


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


def draw_figures(em: Path, mhs: Path, out: Path, *, text: str | None = None) -> Figures:
    """Explain one text, by default our own review, under both runs, and write all files to `out`."""
    check_models(em, mhs)
    runs = [load_run(folder) for folder in (mhs, em)]
    text = own_review() if text is None else text
    first, second = (explain_texts(run, [text])[0] for run in runs)
    seeds = ", ".join(f"{run.config.model.name} seed {run.config.training.seed}" for run in runs)
    figures = Figures(first, second, making(runs=seeds))
    write_figures(figures, out)
    return figures


def write_figures(figures: Figures, out: Path) -> None:
    """The page, the terminal text and the data."""
    told = " \u00b7 ".join(f"{name}: {figures.making[name]}" for name in figures.making)
    write_text(out / "figures.html", _page(figures, told))
    write_text(out / "figures.txt", f"{figures.mhs}\n\n{figures.em}\n\n{told}\n")
    write_json(out / "figures.json", figures.to_dict())


def _page(figures: Figures, told: str) -> str:
    title = "Figures 4 and 5: one document under two models"
    sections = "\n".join(html_section(explanation, attention=True) for explanation in (figures.mhs, figures.em))
    body = f"<h1>{title}</h1>\n{OPTIONS}\n{sections}\n{LEGEND}"
    return page(title, f"{body}\n<footer>{escape(told)}</footer>")
