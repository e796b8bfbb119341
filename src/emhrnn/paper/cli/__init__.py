"""`emhrnn paper ...`: the commands that exist because of the paper. `emhrnn.cli` mounts them."""

import typer

from emhrnn.paper.cli.check import check
from emhrnn.paper.cli.chunks import chunks
from emhrnn.paper.cli.compare import compare, table2
from emhrnn.paper.cli.evidence import evidence
from emhrnn.paper.cli.explanations import documents, faithfulness, rationales, units
from emhrnn.paper.cli.prepare import prepare
from emhrnn.paper.cli.segmentations import segmentations
from emhrnn.paper.cli.table1 import table1
from emhrnn.paper.cli.table3 import figures, table3

__all__ = ["COMMANDS", "app", "compare"]  # `compare` stands beside the product's commands

app = typer.Typer(
    name="paper", no_args_is_help=True, help="Reproduce the paper: its tables, simulation, figures and analyses."
)
COMMANDS = (
    (table1, "Table 1: recover simulated phrase ends."),
    (table2, "Table 2: accuracy of all systems on real data."),
    (table3, "Table 3: phrase lengths, attention and decisive words."),
    (figures, "Figures 4 and 5: one document read by two models."),
    (chunks, "Compare learned phrases with linguistic chunks (CoNLL-2000)."),
    (segmentations, "Score em-hrnn with other phrases than those it learned."),
    (evidence, "Report learned against fixed segmentations of phrase evidence."),
    (faithfulness, "Measure whether explanations are true of the model."),
    (rationales, "Compare explanations with evidence that people marked."),
    (units, "Compare phrases with other units of explanations."),
    (documents, "Write training data for rationales."),
    (check, "Check the figures of README and docs against the records."),
    (prepare, "Tokenise data once, for many uses."),
)
