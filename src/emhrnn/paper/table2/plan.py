"""The rows of table 2: what the paper prints, what the cited papers print where they differ (accuracies in per cent),
and what `compare` runs under these names; then rows of our own.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError
from emhrnn.models.pretrained import WANTED, check_source
from emhrnn.models.segmentation import PAPER_RATE
from emhrnn.paper.comparison.rows import SystemRow, parse_rows
from emhrnn.paper.models.rows import PRESET
from emhrnn.paper.table2.sets import COLUMNS, Family


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper: its numbers, those of the cited paper where they differ, and what we run."""

    name: str  # as the paper prints it
    row: str | None  # ours, as `emhrnn compare` takes it; None: only with weights that the user gives
    paper: dict[str, float]
    yelp: Family = "tang"
    published: dict[str, float] = field(default_factory=dict)
    note: str = ""

    def family(self, column: str) -> Family:
        return self.yelp if column.startswith("Yelp") else "zhang"


def _five(*numbers: float | None) -> dict[str, float]:
    return {column: number for column, number in zip(COLUMNS, numbers, strict=True) if number is not None}


def _windows(length: int, model: str = "em-hrnn") -> str:
    """Windows of 50 words in all, drawn again at each step: as many as the local bootstrap's ten blocks have. All
    windows at every step would cost five times as much on long documents."""
    return f"{model}[em.estep=blocks,em.block_length={length},em.windows={50 // length}]"


def _local(model: str = "em-hrnn") -> str:
    return f"{model}[em.estep=local,em.block_length=5]"


RATES = "0.3|0.1|0.03"  # of learning, from which the validation rows pick


def _preset(**other: Any) -> str:
    """The preset `paper`, but for some settings of EM. Algorithm 1's M is one step on each batch, its K the epochs."""
    settings = {**PRESET, "em": {**PRESET["em"], **other}, "training": {**PRESET["training"], "learning_rate": RATES}}
    told = [f"{section}.{name}={_toml(value)}" for section, one in settings.items() for name, value in one.items()]
    return f"em-hrnn[{','.join(told)}]"


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_ROWS = (
    PaperRow("Bag-of-means", "bag-of-means", _five(None, None, 52.5, 60.5, 44.1), "zhang"),
    PaperRow("SVM+SSWE", "sswe-svm", _five(53.5, 54.3, 55.4, None, None)),
    PaperRow("LSTM", "lstm", _five(None, None, 58.2, 70.8, 59.4), "zhang"),
    PaperRow("CNN-word", "cnn-word", _five(None, None, 60.5, 71.2, 57.6), "zhang"),
    PaperRow("Conv-GRNN", "conv-grnn", _five(63.7, 65.5, 66.0, None, None)),
    PaperRow("LSTM-GRNN", "lstm-grnn", _five(65.1, 67.1, 67.6, None, None)),
    PaperRow(
        "CMA", "cma", _five(66.4, 67.6, None, None, None), "tang-ids",
        note="on Tang's smaller sets with users and products, not on those of the other rows",
    ),
    PaperRow(
        "BiLSTM+linear-basis-cust", "basis-cust", _five(None, 67.1, None, None, None), "tang-ids",
        published=_five(67.1, None, None, None, None),
        note="67.1 is Kim et al.'s Yelp 2013 (with users and products), printed under Yelp'14",
    ),
    PaperRow(
        "HN-AVE", "hn-ave", _five(65.6, 67.3, 67.8, 71.8, 59.7),
        published=_five(67.0, 69.3, 69.9, 75.2, 62.9),
        note="cited to Yang et al., but a run of the authors' own; Yang et al.'s numbers were not checked again here",
    ),
    PaperRow(
        "HN-ATT", "hn-att", _five(66.0, 68.9, 69.4, 73.8, 60.7),
        published=_five(68.2, 70.5, 71.0, 75.8, 63.6),
        note="cited to Yang et al., but a run of the authors' own",
    ),
    PaperRow("HM-RNN", "hm-rnn", _five(64.0, 64.5, 64.9, 71.0, 59.0)),
    PaperRow("MHS-RNN", "mhs-rnn", _five(65.2, 67.5, 67.7, 72.3, 59.7)),
    PaperRow("MHS-RNN with attention", "mhs-rnn-att", _five(66.8, 69.3, 69.9, 74.1, 61.2)),
    PaperRow(
        "Bert-base", None, _five(None, None, 71.4, 75.4, 61.9),
        published=_five(None, None, None, 77.58, None),
        note="75.4 is cited to Sun et al., who report an error of 22.42 %; the other two are the authors' own runs",
    ),
    PaperRow("EM-HRNN with window size 1", _windows(1), _five(66.8, 69.2, 70.5, 74.4, 61.4)),
    PaperRow(
        "EM-HRNN with window size 2", _windows(2), _five(66.9, 68.3, 70.8, 74.7, 61.6),
        note="68.3 on Yelp'14 is below window size 1, probably a misprint of 69.3",
    ),
    PaperRow("EM-HRNN with window size 5", _windows(5), _five(67.1, 69.5, 71.2, 75.1, 61.9)),
    PaperRow(
        "EM-HRNN with local bootstrap", _local(), _five(67.7, 70.1, 71.6, 75.7, 62.2)
    ),
)  # fmt: skip
PAPER_ROWS: dict[str, PaperRow] = {row.name: row for row in _ROWS}

# The paper's exact settings, and with what keeps phrases from becoming single words; n-grams beside networks,
# the same for all of them; then what people would use instead. The paper has no such rows.
OTHER_ROWS = {
    "EM-HRNN (paper preset)": _preset(),
    "EM-HRNN (paper preset with boundaries kept)": _preset(impute="rate", rate=PAPER_RATE),
    **{f"EM-HRNN + n-grams (window {length})": _windows(length, "em-hrnn+ngrams") for length in (1, 2, 5)},
    "EM-HRNN + n-grams (local)": _local("em-hrnn+ngrams"),
    "HN-ATT + n-grams": "hn-att+ngrams",
    "n-grams alone": "ngrams",
    "TF-IDF + logistic regression": "tfidf-lr",
    "TF-IDF + SVM": "tfidf-svm",
    "Log-count ratios + logistic regression": "nb-lr",
    "fastText": "fasttext",
    "Phrase evidence": "evidence",
}
REFERENCE = "HN-ATT"
YELP_15 = (
    "The column Yelp'15 mixes two sets: Zhang's Yelp full (650,000 + 50,000, balanced) in Bag-of-means, LSTM and "
    "CNN-word, and Tang's Yelp 2015 (1,569,264, skewed) in the rest."
)


BERT_BASE = {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768}
FROZEN = ("model.frozen=true", "model.head=32", "model.tail=96")  # as many as MiniLM was trained on
# Of encoders that stand in for Bert-base: small ones learn better at a higher rate, and sentence encoders were trained
# on the mean of their states. Two epochs of 256 pieces take about 60 times the CPU time of phrase evidence.
_TUNING = (
    "model.pooling=mean", "model.attention_dropout=0", "model.bfloat16=true", "training.learning_rate=1e-4",
    "training.batch_documents=16",
)  # fmt: skip
FINE_TUNED = {
    "fine-tuned": ("model.head=32", "model.tail=96", *_TUNING, "training.epochs=1"),
    "fine-tuned on 256 pieces, 2 epochs": ("model.head=128", "model.tail=126", *_TUNING, "training.epochs=2"),
}


def table2_rows(pretrained: Path | None = None) -> list[SystemRow]:
    """All of them. The row Bert-base, or what stands in its place, is there only with `pretrained` weights: fine-tuned,
    and frozen.

    Raises:
        ConfigError: the weights cannot be used.
    """
    rows: list[SystemRow] = []
    for printed in PAPER_ROWS.values():
        if printed.row is not None:
            rows += parse_rows([f"{printed.name}={printed.row}"])
        elif pretrained is not None:
            rows += _encoder_rows(printed.name, pretrained.resolve())
    return rows + parse_rows([f"{name}={text}" for name, text in OTHER_ROWS.items()])


def _encoder_rows(printed: str, folder: Path) -> list[SystemRow]:
    check_source(str(folder))
    weights = f"model.pretrained={folder}"
    if BERT_BASE.items() <= _configuration(folder).items():
        name, tuned = printed, [SystemRow(printed, "transformer", (weights,))]
    else:
        name = folder.name
        if name in {*PAPER_ROWS, *OTHER_ROWS}:
            raise ConfigError(f"{folder} holds another network than the row {name!r}; give the folder another name")
        tuned = [SystemRow(f"{name}, {how}", "transformer", (weights, *own)) for how, own in FINE_TUNED.items()]
    return [*tuned, SystemRow(f"{name}, frozen", "transformer", (weights, *FROZEN))]


def _configuration(folder: Path) -> dict[str, Any]:
    """What the folder says of its network, without loading transformers."""
    try:
        return dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise ConfigError(f"{folder / 'config.json'} cannot be read as JSON; {WANTED}") from None
