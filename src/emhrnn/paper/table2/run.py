"""`reproduce_table2`: find the sets, compare all rows on them, write table2.md and table2.json."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from emhrnn.errors import ConfigError
from emhrnn.files import write_json, write_text
from emhrnn.paper.comparison.compare import Protocol, compare
from emhrnn.paper.table2.numbers import REFERENCE
from emhrnn.paper.table2.report import Table2, render_markdown
from emhrnn.paper.table2.rows import table2_rows
from emhrnn.paper.table2.sets import find_sets

QUICK_ROWS = 300  # of each part
QUICK = ("training.epochs=1", "em.warmup_epochs=0", "model.means=50", "model.max_features=5000", "model.fit_epochs=1")


def reproduce_table2(
    data: Path,
    out: Path,
    *,
    protocol: Protocol,
    work: Path | None = None,
    sets: Sequence[str] = (),
    rows: Sequence[str] = (),
    pretrained: Path | None = None,
    frozen: bool = False,
    quick: bool = False,
    processes: int = 1,
    report: bool = False,
    kept: Path | None = None,
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> Table2:
    """All rows of the paper, with TF-IDF and fastText, on the sets in the folder `data`. The runs are kept in `work`.

    Args:
        sets: names of some of the sets; by default the paper's own that are there, else the stand-ins.
        rows: names of some of the rows; by default all.
        pretrained: a folder with the weights of the row Bert-base, or of an encoder that stands in for it and is called
            by the folder's name; without, there is no such row.
        frozen: only fit a linear head on that encoder's features; its name then ends in ", frozen".
        quick: a few documents and one epoch, to see that everything works.
        report: only of the runs that are done.
        kept: an earlier table2.json, whose rows stay where this one has none.
    """
    found = find_sets(data, sets)
    chosen = table2_rows(pretrained, frozen=frozen)
    wanted = _known(rows, [row.name for row in chosen])
    chosen = [row for row in chosen if not wanted or row.name in wanted]
    if quick:
        found = [replace(one, data=replace(one.data, limit=QUICK_ROWS)) for one in found]
        protocol = replace(protocol, assignments=(*QUICK, *protocol.assignments))
    table = compare(
        [one.data for one in found],
        chosen,
        work or out,
        protocol=protocol,
        reference=REFERENCE if any(row.name == REFERENCE for row in chosen) else None,
        processes=processes,
        report=report,
        kept=kept,
        progress=progress,
        say=say,
    )
    result = Table2(table, found, quick)
    write_json(out / "table2.json", result.to_dict())
    write_text(out / "table2.md", render_markdown(result))
    return result


def _known(wanted: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    for name in wanted:
        if name not in names:
            raise ConfigError(f"{name!r} is no row of the table; give some of {', '.join(map(repr, names))}")
    return wanted
