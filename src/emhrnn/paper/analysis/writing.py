"""All files of an analysis."""

from pathlib import Path

from emhrnn.files import write_json, write_text
from emhrnn.paper.analysis.analysis import Analysis
from emhrnn.paper.analysis.judging import KEY, PAGE, Judging, judging_page
from emhrnn.paper.analysis.markdown import render_markdown
from emhrnn.paper.analysis.page import render_html
from emhrnn.paper.analysis.votes import VERDICT


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
