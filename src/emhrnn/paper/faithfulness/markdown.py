"""The table for people."""

from emhrnn.explain.removal import LEVELS
from emhrnn.paper.faithfulness.job import METHODS
from emhrnn.paper.faithfulness.table import OURS, Difference, Table

INTRODUCTION = """
p is the probability of the predicted class. *Comprehensiveness*: how far p falls when the top 1, 5, 10, 20, 50 % of the
words (phrases, sentences) are taken out, mean of the five; the higher, the more the explanation names what was needed.
*Sufficiency*: how far p falls when only these are kept; the lower, the more they are enough. In brackets: 95 % of
bootstrap samples of documents. *Passes*: forward and backward passes of the model per document. *Time*: CPU time in
that of a plain prediction of the same documents (word ids to probabilities).
"""


def to_markdown(table: Table) -> str:
    lines = ["# How faithful explanations are", ""]
    lines += [f"- {name}: {value}" for name, value in table.header.items()]
    lines += INTRODUCTION.splitlines()
    for level in LEVELS:
        lines += [
            "", f"## By {level}s", "",
            "| explanation | comprehensiveness | sufficiency | passes | time |", "|---|--:|--:|--:|--:|",
        ]  # fmt: skip
        for row in (row for row in table.rows if row.level == level):
            name = f"**{METHODS[row.method]}**" if row.method in OURS else METHODS[row.method]
            passes = f"{row.forward:.0f} + {row.backward:.0f}"
            lines.append(f"| {name} | {row.comprehensiveness} | {row.sufficiency} | {passes} | {row.predictions:.1f} |")
    lines += ["", "## Weight x effect against the others", ""]
    lines += ["Differences of comprehensiveness on the same documents; *cost*: the other's CPU time over ours.", ""]
    lines += ["| level | explanation | against | difference | | cost |", "|---|---|---|--:|---|--:|"]
    lines += [_difference(difference) for difference in table.differences]
    return "\n".join(lines) + "\n"


def _difference(one: Difference) -> str:
    mean = one.difference
    verdict = "better" if mean.low > 0 else "worse" if mean.high < 0 else "no clear difference"
    cost = f"{one.cost:.1f}" if one.cost < 10 else f"{one.cost:.0f}"
    signed = f"{mean.value:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}]"
    return f"| {one.level} | {METHODS[one.ours]} | {METHODS[one.method]} | {signed} | {verdict} | {cost} |"
