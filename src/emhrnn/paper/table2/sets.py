"""The sets of table 2, by the names of their published files:

yelp-2013-train.txt.ss, -dev, -test     Tang's .ss: user, product, rating, text with <sssss> (likewise 2014, 2015)
yahoo_answers_csv/train.csv, test.csv   Zhang's csv: class, title, question, answer
amazon_review_full_csv/...              class, title, text; yelp_review_full_csv/... likewise
yelp_academic_dataset_review.json       the Yelp Open Dataset, all years: not the paper's set
reviews_*.json.gz, *_5.json.gz          Amazon reviews as JSON: not the paper's set

`PUBLISHED` says where their owners give them out; `put_in_place` checks what is there.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from emhrnn.corpus import Source
from emhrnn.errors import ConfigError, DataError
from emhrnn.files import sha256
from emhrnn.paper.comparison.data import DataSet, name_of

COLUMNS = ("Yelp'13", "Yelp'14", "Yelp'15", "Yahoo Answer", "Amazon")

# Whose documents a row's numbers for Yelp are on; the three kinds are different sets under one name.
#   tang: Tang, Qin and Liu, EMNLP 2015      tang-ids: their smaller sets with users and products, ACL 2015
#   zhang: Zhang, Zhao and LeCun 2015, "Yelp full", balanced
Family = Literal["tang", "tang-ids", "zhang"]


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


# ------------------------------------------------------------------ what to download, and what was put in place


@dataclass(frozen=True)
class Published:
    """A set as its owner gives it out. The archive's checksum is that of torchtext, where it has one."""

    name: str
    column: str
    family: Family
    owner: str
    address: str
    archive: str
    files: tuple[str, ...]  # to be taken from the archive
    md5: str = ""  # of the archive


def _of_tang(year: int) -> Published:
    return Published(
        f"yelp-{year}", f"Yelp'{year - 2000}", "tang", "Tang, Qin and Liu, EMNLP 2015",
        "http://ir.hit.edu.cn/~dytang/paper/emnlp2015/emnlp-2015-data.7z", "emnlp-2015-data.7z",
        tuple(f"yelp-{year}-{part}.txt.ss" for part in ("train", "dev", "test")),
    )  # fmt: skip


def _of_zhang(folder: str, number: str, md5: str) -> Published:
    return Published(
        folder.removesuffix("_csv").replace("_", "-"), _ZHANG[folder], "zhang", "Zhang, Zhao and LeCun, NIPS 2015",
        f"https://drive.google.com/uc?export=download&id={number}", f"{folder}.tar.gz",
        (f"{folder}/train.csv", f"{folder}/test.csv"), md5,
    )  # fmt: skip


PUBLISHED = (
    *map(_of_tang, (2013, 2014, 2015)),
    _of_zhang("yelp_review_full_csv", "0Bz8a_Dbh9QhbZlU4dXhHTFhZQU0", "f7ddfafed1033f68ec72b9267863af6c"),
    _of_zhang("yahoo_answers_csv", "0Bz8a_Dbh9Qhbd2JNdDBsQUdocVU", "f3f9899b997a42beb24157e62e3eea8d"),
    _of_zhang("amazon_review_full_csv", "0Bz8a_Dbh9QhbZVhsUnRWRDhETzA", "57d28bd5d930e772930baddf36641c7c"),
)


@dataclass(frozen=True)
class FileInPlace:
    """A file of a published set, as it is here."""

    name: str
    bytes: int
    sha256: str
    documents: int | None  # None: an archive


@dataclass(frozen=True)
class InPlace:
    """A published set, and what of it is here."""

    published: Published
    files: tuple[FileInPlace, ...]
    verdict: str
    whole: bool  # all of the documents that the printed numbers are of


def put_in_place(folder: Path) -> list[InPlace]:
    """Sizes, checksums and numbers of documents of the published files in `folder` and in its folders. Reads all of
    them once. A file that is damaged raises a DataError."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give the one that holds the data sets, or is to hold them")
    return [_in_place(folder, one) for one in PUBLISHED]


def _in_place(folder: Path, one: Published) -> InPlace:
    there = {name: next(iter([*folder.glob(name), *folder.glob(f"*/{name}")]), None) for name in one.files}
    archive = next(iter([*folder.glob(one.archive), *folder.glob(f"*/{one.archive}")]), None)
    found = [_file(name, path, one.family) for name, path in there.items() if path is not None]
    documents, wanted = sum(file.documents or 0 for file in found), DOCUMENTS[one.column, one.family]
    lacking = [name for name, path in there.items() if path is None]
    whole = not lacking and documents == wanted
    verdict = f"whole: {documents:,} documents, those of the printed numbers"
    if lacking:
        verdict = f"missing: {', '.join(lacking)}"
    elif not whole:
        verdict = f"another set or a part: {documents:,} documents, and the printed numbers are of {wanted:,}"
    if archive is not None:
        found.append(_file(one.archive, archive, None))
        if one.md5 and _md5(archive) != one.md5:
            verdict += f"; {one.archive} is damaged or another: its MD5 is not {one.md5}; download it again"
    return InPlace(one, tuple(found), verdict, whole)


def _file(name: str, path: Path, family: Family | None) -> FileInPlace:
    documents = None if family is None else sum(1 for _ in Source(path, format=family))
    return FileInPlace(name, path.stat().st_size, sha256(path), documents)


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
