"""The paper's sets by the names of their published files, and the stand-ins.

yelp-2013-train.txt.ss, -dev, -test     Tang's .ss: user, product, rating, text with <sssss> (likewise 2014, 2015)
yahoo_answers_csv/train.csv, test.csv   Zhang's csv: class, title, question, answer
amazon_review_full_csv/...              class, title, text; yelp_review_full_csv/... likewise
yelp_academic_dataset_review.json       the Yelp Open Dataset, all years: not the paper's set
reviews_*.json.gz, *_5.json.gz          Amazon reviews as JSON: not the paper's set
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison.data import DataSet, name_of
from emhrnn.paper.table2.rows import Family

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
