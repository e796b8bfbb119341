"""`emhrnn paper ...`: the commands that exist because of the paper. `emhrnn.cli.app` mounts them."""

from emhrnn.paper.cli.explanations import documents, faithfulness, rationales, units
from emhrnn.paper.cli.records import check, chunks, data, evidence, prepare, segmentations
from emhrnn.paper.cli.tables import figures, table1, table2, table3

COMMANDS = (
    (table1, "Table 1: recover simulated phrase ends."),
    (table2, "Table 2: accuracy of all systems on real data."),
    (data, "What to download for table 2, and whether it is whole."),
    (table3, "Table 3: phrase lengths, attention and decisive words."),
    (figures, "Figures 4 and 5: one document read by two models."),
    (chunks, "Compare learned phrases with linguistic chunks (CoNLL-2000)."),
    (segmentations, "Score evidence by the shown phrases alone."),
    (evidence, "Report learned against fixed segmentations of phrase evidence."),
    (faithfulness, "Measure whether explanations are true of the model."),
    (rationales, "Compare explanations with evidence that people marked."),
    (units, "Compare phrases with other units of explanations."),
    (documents, "Write training data for rationales."),
    (check, "Check the figures of README and docs against the records."),
    (prepare, "Tokenise data once, for many uses."),
)
