"""What table 2 is made of: its rows and its sets.

A row has what the paper prints, what the cited papers print where they differ (accuracies in per cent), and what
`compare` runs under these names; then come rows of our own. The paper's sets have the names of their published files:

yelp-2013-train.txt.ss, -dev, -test     Tang's .ss: user, product, rating, text with <sssss> (likewise 2014, 2015)
yahoo_answers_csv/train.csv, test.csv   Zhang's csv: class, title, question, answer
amazon_review_full_csv/...              class, title, text; yelp_review_full_csv/... likewise
yelp_academic_dataset_review.json       the Yelp Open Dataset, all years: not the paper's set
reviews_*.json.gz, *_5.json.gz          Amazon reviews as JSON: not the paper's set
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from emhrnn.errors import ConfigError, DataError
from emhrnn.models.pretrained import check_source, read_config
from emhrnn.models.segmentation import PAPER_RATE
from emhrnn.paper.comparison.data import DataSet, name_of
from emhrnn.paper.comparison.rows import SystemRow, parse_rows
from emhrnn.paper.models.rows import PRESET

COLUMNS = ("Yelp'13", "Yelp'14", "Yelp'15", "Yahoo Answer", "Amazon")

# Whose documents a row's numbers for Yelp are on; the three kinds are different sets under one name.
#   tang: Tang, Qin and Liu, EMNLP 2015      tang-ids: their smaller sets with users and products, ACL 2015
#   zhang: Zhang, Zhao and LeCun 2015, "Yelp full", balanced
Family = Literal["tang", "tang-ids", "zhang"]


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
    if BERT_BASE.items() <= read_config(folder).items():
        name, tuned = printed, [SystemRow(printed, "transformer", (weights,))]
    else:
        name = _name_of(folder)
        tuned = [SystemRow(f"{name}, {how}", "transformer", (weights, *own)) for how, own in FINE_TUNED.items()]
    return [*tuned, SystemRow(f"{name}, frozen", "transformer", (weights, *FROZEN))]


def _name_of(folder: Path) -> str:
    if folder.name in {*PAPER_ROWS, *OTHER_ROWS}:
        raise ConfigError(f"{folder} holds another network than the row {folder.name!r}; give the folder another name")
    return folder.name


# Documents of the sets on which the printed numbers were made; what is this large and named so, is that set.
DOCUMENTS: dict[tuple[str, Family], int] = {
    ("Yelp'13", "tang"): 335_018,
    ("Yelp'14", "tang"): 1_125_457,
    ("Yelp'15", "tang"): 1_569_264,
    ("Yelp'13", "tang-ids"): 78_966,
    ("Yelp'14", "tang-ids"): 231_163,
    ("Yelp'15", "zhang"): 700_000,
    ("Yahoo Answer", "zhang"): 1_460_000,
    ("Amazon", "zhang"): 3_650_000,
}
TOLERANCE = 0.01
_ZHANG = {
    "yahoo_answers_csv": "Yahoo Answer",
    "amazon_review_full_csv": "Amazon",
    "yelp_review_full_csv": "Yelp'15",
}
_TANG = re.compile(r"yelp[-_]?(20)?(13|14|15)\b.*train.*\.ss", re.IGNORECASE)
_JSON = re.compile(r"(yelp_academic_dataset_review|reviews?_.*|.*_5)\.json(\.gz)?", re.IGNORECASE)
STAND_INS = {  # file: what it is, and the epochs of all rows that are trained by epochs: fewer where there is more text
    "yelp_recsys2013_10k.jsonl.gz": ("stands in for Yelp'13: 10,000 Yelp reviews of the 2013 challenge", 8),
    "imdb_5class_balanced_130k.jsonl.xz": ("stands in for the large star-rating sets: 130,000 film reviews", 3),
    "20newsgroups_raw_19997.jsonl.gz": ("stands in for the topics of Yahoo Answers: 20 newsgroups by date", 8),
    "ohsumed_single_23.jsonl.gz": ("a small set of many classes: medical abstracts, 23 diseases", 12),
    "imdb_user_product_85k.jsonl.xz": ("stands in for the sets with users and products: film reviews, rating 1-10", 3),
    "imdb_aclImdb_train.jsonl.gz": ("stands in for the review sets: film reviews, polarity", 4),
}


@dataclass(frozen=True)
class Found:
    """A set that is there. `column` of the paper it may belong to; None for a stand-in or other data."""

    data: DataSet
    what: str
    column: str | None = None
    tang: bool = False

    def family(self, documents: int) -> Family | None:
        """Which of the sets under the column's name this is, by its size; None: none of them, or a part of one."""
        if self.column is None:
            return None
        names: tuple[Family, ...] = ("tang", "tang-ids") if self.tang else ("zhang",)
        for name in names:
            expected = DOCUMENTS.get((self.column, name))
            if expected is not None and abs(documents - expected) <= TOLERANCE * expected:
                return name
        return None


def find_sets(folder: Path, wanted: Sequence[str] = ()) -> list[Found]:
    """The paper's own sets in the folder and its folders; where there are none, the stand-ins. `wanted` picks by name,
    from all of them.

    Raises:
        DataError: there is nothing of the kind.
        ConfigError: a wanted set is not there.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the folder that holds the data sets")
    files = [folder, *sorted(folder.glob("*")), *sorted(folder.glob("*/*"))]
    own = [*_tang(files), *_zhang(files), *_json(files)]
    stand_ins = _stand_ins(files)
    if not own and not stand_ins:
        raise DataError(
            f"{folder} holds none of the paper's sets (yelp-2013-train.txt.ss, yahoo_answers_csv, "
            f"amazon_review_full_csv, ...) and no stand-in ({', '.join(STAND_INS)}); give another folder"
        )
    by_name = {found.data.name: found for found in [*stand_ins, *own]}
    for name in wanted:
        if name not in by_name:
            raise ConfigError(f"{folder} has no set {name!r}; give one of {', '.join(by_name)}")
    return [by_name[name] for name in wanted] if wanted else own or stand_ins


def _tang(files: Sequence[Path]) -> list[Found]:
    found = []
    for train in files:
        match = _TANG.search(train.name)
        if match is None or not train.is_file():
            continue
        test, valid = (path if (path := _renamed(train, part)).is_file() else None for part in ("test", "dev"))
        if test is None:
            raise DataError(f"{train} has no test file beside it; put {_renamed(train, 'test').name} there")
        data = DataSet(f"yelp-20{match[2]}", train, test=test, valid=valid, format="tang")
        found.append(Found(data, f"Tang's Yelp 20{match[2]}", f"Yelp'{match[2]}", tang=True))
    return found


def _renamed(train: Path, part: str) -> Path:
    return train.with_name(re.sub("train", part, train.name, flags=re.IGNORECASE))


def _zhang(files: Sequence[Path]) -> list[Found]:
    found = []
    for folder in files:
        column = _ZHANG.get(folder.name)
        train, test = folder / "train.csv", folder / "test.csv"
        if column is not None and train.is_file() and test.is_file():
            name = folder.name.removesuffix("_csv").replace("_", "-")
            data = DataSet(name, train, test=test, format="zhang")
            found.append(Found(data, f"Zhang's {name.replace('-', ' ')}", column))
    return found


def _json(files: Sequence[Path]) -> list[Found]:
    return [
        Found(DataSet(name_of(path), path, format="jsonl"), "reviews as JSON: another set than the paper's")
        for path in files
        if path.is_file() and _JSON.fullmatch(path.name)
    ]


def _stand_ins(files: Sequence[Path]) -> list[Found]:
    there = {path.name: path for path in files if path.is_file()}
    found = []
    for name, (what, epochs) in STAND_INS.items():
        path = there.get(name)
        if path is None:
            continue
        test = there.get(name.replace("_train.", "_test.")) if "_train." in name else None
        data = DataSet(name_of(path).removesuffix("_train"), path, test=test, settings=(f"training.epochs={epochs}",))
        found.append(Found(data, what))
    return found
