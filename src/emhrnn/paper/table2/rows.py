"""The rows of the table as `compare` takes them, in the paper's order, then those of our own."""

from pathlib import Path

from emhrnn.errors import ConfigError
from emhrnn.models.pretrained import check_source, read_config
from emhrnn.paper.comparison.rows import Row, parse_rows
from emhrnn.paper.table2.numbers import OTHER_ROWS, PAPER_ROWS

BERT_BASE = {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768}
FROZEN = ("model.frozen=true", "model.head=32", "model.tail=96")  # as many as MiniLM was trained on


def table2_rows(pretrained: Path | None = None, *, frozen: bool = False) -> list[Row]:
    """All of them. The row Bert-base, or what stands in its place, is there only with `pretrained` weights.

    Raises:
        ConfigError: the weights cannot be used.
    """
    if frozen and pretrained is None:
        raise ConfigError("--frozen is about pretrained weights, and none are given; add --pretrained FOLDER")
    rows: list[Row] = []
    for printed in PAPER_ROWS.values():
        if printed.row is not None:
            rows += parse_rows([f"{printed.name}={printed.row}"])
        elif pretrained is not None:
            rows.append(_encoder_row(printed.name, pretrained.resolve(), frozen))
    return rows + parse_rows([f"{name}={text}" for name, text in OTHER_ROWS.items()])


def _encoder_row(printed: str, folder: Path, frozen: bool) -> Row:
    check_source(str(folder))
    own = (f"model.pretrained={folder}", *(FROZEN if frozen else ()))
    name = printed if BERT_BASE.items() <= read_config(folder).items() else _name_of(folder)
    return Row(f"{name}, frozen" if frozen else name, "transformer", own)


def _name_of(folder: Path) -> str:
    if folder.name in {*PAPER_ROWS, *OTHER_ROWS}:
        raise ConfigError(f"{folder} holds another network than the row {folder.name!r}; give the folder another name")
    return folder.name
