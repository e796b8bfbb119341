"""`reproduce_table3`: two runs, one analysis, table3.md and table3.json."""

from collections.abc import Callable
from pathlib import Path

from emhrnn.cores import cores
from emhrnn.files import write_json, write_text
from emhrnn.paper.analysis.analyse import analyse
from emhrnn.paper.analysis.pair import Pair, check_models
from emhrnn.paper.analysis.passing import Question
from emhrnn.paper.analysis.table3 import NAMES, Table3, describe_training, render_table3
from emhrnn.paper.analysis.votes import count_votes
from emhrnn.paper.analysis.writing import write_analysis
from emhrnn.training.data import Named


def reproduce_table3(
    pair: Pair,
    data: Named,
    out: Path,
    work: Path,
    *,
    question: Question,
    command: str,
    votes: Path | None = None,
    processes: int | None = None,
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> Table3:
    folders = pair.folders(work, processes=processes or cores(), progress=progress, say=say)
    check_models(folders)
    analysis = analyse(folders, data, question, command=command, names=NAMES, progress=progress)
    write_analysis(analysis, work / "analysis")
    verdict = None if votes is None else count_votes(votes, work / "analysis")
    table = Table3(analysis, [describe_training(folder) for folder in folders], verdict)
    write_json(out / "table3.json", table.to_dict())
    write_text(out / "table3.md", render_table3(table))
    return table
