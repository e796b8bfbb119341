"""The published formats, made on the spot, are found, read and split as published; what is put in place is checked."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from emhrnn.corpus import Corpus
from emhrnn.errors import ConfigError, DataError
from emhrnn.files import sha256
from emhrnn.paper.comparison.data import data_job, prepare_data
from emhrnn.paper.table2 import sets
from emhrnn.paper.table2.sets import COLUMNS, DOCUMENTS, PUBLISHED, Found, find_sets
from emhrnn.training.config import make_config
from tests.behaviour.commands import Cli


def tang(folder: Path, year: int) -> None:
    for part, count in (("train", 12), ("dev", 3), ("test", 4)):
        lines = [
            f"user{i % 3}\t\tshop{i % 2}\t\t{1 + i % 5}\t\ta -lrb- {i} -rrb- was cold . <sssss> never again ! <sssss>"
            for i in range(count)
        ]
        (folder / f"yelp-{year}-{part}.txt.ss").write_text("\n".join(lines) + "\n")


def zhang(folder: Path, name: str, fields: int, classes: int) -> None:
    (folder / name).mkdir()
    for part, count in (("train", 40), ("test", 10)):
        with (folder / name / f"{part}.csv").open("w", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerows(
                [str(1 + i % classes), *[f'field {k} of "{i}"\\nmore' for k in range(fields)]] for i in range(count)
            )


def prepared(found: Found, folder: Path) -> dict[str, Corpus]:
    folder.mkdir(parents=True)
    result = prepare_data(data_job(found.data, make_config()).given, folder)
    assert set(result["parts"]) == {"train", "valid", "test"}
    return {part: Corpus.open(folder / part) for part in result["parts"]}


def test_tangs_yelp(tmp_path: Path) -> None:
    tang(tmp_path, 2013)
    tang(tmp_path, 2014)
    first, second = find_sets(tmp_path)
    assert (first.data.name, first.column, second.column) == ("yelp-2013", "Yelp'13", "Yelp'14")
    corpora = prepared(first, tmp_path / "out")
    assert [len(corpora[part]) for part in ("train", "valid", "test")] == [12, 3, 4]
    assert corpora["train"].classes == ("1", "2", "3", "4", "5")
    assert (len(corpora["train"].users), len(corpora["train"].products)) == (3, 2)
    assert corpora["train"].report.sentences == 24  # as marked


def test_zhangs_sets(tmp_path: Path) -> None:
    zhang(tmp_path, "yahoo_answers_csv", fields=3, classes=10)
    zhang(tmp_path, "amazon_review_full_csv", fields=2, classes=5)
    found = {one.column: one for one in find_sets(tmp_path)}
    assert set(found) == {"Yahoo Answer", "Amazon"}
    corpora = prepared(found["Yahoo Answer"], tmp_path / "out")
    assert [len(corpora[part]) for part in ("train", "valid", "test")] == [36, 4, 10]
    assert len(corpora["test"].classes) == 10
    assert len(prepared(found["Amazon"], tmp_path / "out2")["train"].classes) == 5


def test_json_of_yelp_and_amazon(tmp_path: Path) -> None:
    yelp = [
        {"review_id": str(i), "user_id": f"u{i % 3}", "business_id": "b", "stars": 1.0 + i % 5, "useful": 0, "funny": 0,
         "cool": 0, "text": f"Soup {i}.", "date": "2018-07-07 22:09:11"}
        for i in range(50)
    ]  # fmt: skip
    (tmp_path / "yelp_academic_dataset_review.json").write_text("".join(json.dumps(row) + "\n" for row in yelp))
    amazon = [
        {"reviewerID": f"u{i % 3}", "asin": "p", "reviewerName": "A", "helpful": [0, 0], "reviewText": f"Strings {i}.",
         "overall": 1.0 + i % 5, "summary": "good", "unixReviewTime": 1393545600, "reviewTime": "02 28, 2014"}
        for i in range(50)
    ]  # fmt: skip
    with gzip.open(tmp_path / "reviews_Musical_Instruments_5.json.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in amazon)
    for number, (found, product) in enumerate(zip(find_sets(tmp_path), "pb", strict=True)):
        corpora = prepared(found, tmp_path / f"out{number}")
        assert [len(corpora[part]) for part in ("train", "valid", "test")] == [40, 5, 5]
        assert corpora["train"].classes == ("1", "2", "3", "4", "5")
        assert (len(corpora["train"].users), corpora["train"].products) == (3, (product,))
        assert found.column is None


def test_stand_ins_are_used_only_without_the_papers_sets(tmp_path: Path) -> None:
    for name in ("yelp_recsys2013_10k.jsonl.gz", "imdb_aclImdb_train.jsonl.gz", "imdb_aclImdb_test.jsonl.gz"):
        (tmp_path / name).touch()
    yelp, imdb = find_sets(tmp_path)
    assert (yelp.data.name, yelp.data.test, yelp.column) == ("yelp_recsys2013_10k", None, None)
    assert imdb.data.name == "imdb_aclImdb"
    assert imdb.data.test == tmp_path / "imdb_aclImdb_test.jsonl.gz"
    tang(tmp_path, 2015)
    assert [found.column for found in find_sets(tmp_path)] == ["Yelp'15"]
    assert [found.data.name for found in find_sets(tmp_path, ["imdb_aclImdb"])] == ["imdb_aclImdb"]
    with pytest.raises(
        ConfigError, match="has no set 'imdb'; give one of yelp_recsys2013_10k, imdb_aclImdb, yelp-2015"
    ):
        find_sets(tmp_path, ["imdb"])


def test_a_set_is_the_papers_only_if_it_has_its_size(tmp_path: Path) -> None:
    tang(tmp_path, 2013)
    (found,) = find_sets(tmp_path)
    assert found.family(DOCUMENTS["Yelp'13", "tang"] - 100) == "tang"
    assert found.family(78_900) == "tang-ids"
    assert found.family(19) is None


def test_nothing_to_work_with(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds none of the paper's sets"):
        find_sets(tmp_path)
    with pytest.raises(DataError, match="is not a folder; give the folder that holds the data sets"):
        find_sets(tmp_path / "none")
    tang(tmp_path, 2013)
    (tmp_path / "yelp-2013-test.txt.ss").unlink()
    with pytest.raises(DataError, match=r"has no test file beside it; put yelp-2013-test.txt.ss there"):
        find_sets(tmp_path)


def test_every_column_of_the_table_can_be_had() -> None:
    assert {one.column for one in PUBLISHED} == set(COLUMNS)
    for one in PUBLISHED:
        assert (one.column, one.family) in DOCUMENTS
        assert len(one.md5) == 32 or one.family == "tang"


@pytest.mark.usefixtures("in_this_process")
def test_what_was_put_in_place_is_checked(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sets.DOCUMENTS, ("Yelp'13", "tang"), 12 + 3 + 4)
    tang(tmp_path, 2013)
    tang(tmp_path, 2014)
    (tmp_path / "in").mkdir()
    zhang(tmp_path / "in", "yahoo_answers_csv", fields=3, classes=10)
    (tmp_path / "in" / "yahoo_answers_csv.tar.gz").write_bytes(b"half of it")
    told = cli.ok("paper", "data", tmp_path, "--json").json["sets"]
    by_name = {one["published"]["name"]: one for one in told}  # type: ignore[index,union-attr]
    first, second, yahoo, amazon = (
        by_name[name] for name in ("yelp-2013", "yelp-2014", "yahoo-answers", "amazon-review-full")
    )
    assert (first["whole"], second["whole"], yahoo["whole"], amazon["whole"]) == (True, False, False, False)
    train = first["files"][0]
    assert (train["name"], train["documents"]) == ("yelp-2013-train.txt.ss", 12)
    assert train["sha256"] == sha256(tmp_path / train["name"])
    assert "19 documents, and the printed numbers are of 1,125,457" in second["verdict"]
    assert [file["documents"] for file in yahoo["files"]] == [40, 10, None]
    assert "yahoo_answers_csv.tar.gz is damaged or another" in yahoo["verdict"]
    assert amazon["verdict"].startswith("missing: amazon_review_full_csv/train.csv")
    shown = cli.ok("paper", "data", tmp_path).out
    assert "download amazon_review_full_csv.tar.gz from https://" in shown
    assert "is not a folder" in cli.error("paper", "data", tmp_path / "none")
