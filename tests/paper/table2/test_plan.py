"""The printed numbers; every row can be run, and an encoder is called what it is. The published formats, made on the
spot, are found, read and split as published."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from emhrnn.corpus import Corpus
from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison.data import data_job, prepare_data
from emhrnn.paper.table2.plan import (
    COLUMNS,
    DOCUMENTS,
    FINE_TUNED,
    FROZEN,
    PAPER_ROWS,
    REFERENCE,
    Found,
    find_sets,
    table2_rows,
)
from emhrnn.training.config import make_config, with_settings


def test_the_rows_of_the_paper_are_all_there() -> None:
    assert len(PAPER_ROWS) == 18
    assert REFERENCE in PAPER_ROWS
    numbers = [number for row in PAPER_ROWS.values() for number in row.paper.values()]
    assert len(numbers) == 69  # cells of Table 2 that are no dash
    assert round(sum(numbers), 1) == 4547.6
    best = {column: max(row.paper.get(column, 0) for row in PAPER_ROWS.values()) for column in COLUMNS}
    assert list(best.values()) == [67.7, 70.1, 71.6, 75.7, 62.2]


def test_published_numbers_are_kept_where_they_differ() -> None:
    for name, row in PAPER_ROWS.items():
        assert all(row.paper.get(column) != number for column, number in row.published.items()), name
        assert bool(row.published) <= bool(row.note), name
    assert PAPER_ROWS["HN-ATT"].published["Amazon"] == 63.6
    assert PAPER_ROWS["Bert-base"].published == {"Yahoo Answer": 77.58}
    assert PAPER_ROWS["BiLSTM+linear-basis-cust"].published == {"Yelp'13": 67.1}


BERT = {"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "architectures": ["BertModel"]}


def encoder(folder: Path, **other: Any) -> Path:
    """A folder that looks like one with weights."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**BERT, **other}))
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).touch()
    return folder


def test_every_row_can_be_read() -> None:
    rows = table2_rows()
    assert len(rows) == 30  # 17 of the paper without Bert-base, two of its preset, six with n-grams, and five more
    assert "transformer" not in [row.model for row in rows]
    assert next(row for row in rows if row.name == "EM-HRNN with window size 2").settings == (
        "em.estep=blocks",
        "em.block_length=2",
        "em.windows=25",
    )
    with_ngrams = {row.name: row.model for row in rows if "n-grams" in row.name}
    assert set(with_ngrams.values()) == {"em-hrnn+ngrams", "hn-att+ngrams", "ngrams"}


def test_the_preset_of_the_paper_stands_in_two_rows() -> None:
    """As it is, but for the learning rate that is picked; and with the smallest change that keeps phrases alive."""
    preset = make_config("paper")
    as_it_is, alive = (
        make_config(assignments=["model.name=em-hrnn", *row.first]) for row in table2_rows() if "preset" in row.name
    )
    assert with_settings(as_it_is, {"training.learning_rate": 0.1}) == preset
    assert with_settings(alive, {"em.impute": "prior", "em.rate": 0.5}) == as_it_is
    assert (alive.em.impute, alive.em.rate) == ("rate", 0.23)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({}, "Bert-base"),
        ({"num_hidden_layers": 6}, "mine"),
        ({"hidden_size": 384}, "mine"),
        ({"model_type": "mpnet"}, "mine"),
    ],
)
def test_only_bert_base_is_called_so(tmp_path: Path, other: dict[str, Any], name: str) -> None:
    folder = encoder(tmp_path / "mine", **other)
    rows = table2_rows(folder)
    place = [row.model for row in rows].index("transformer")
    weights = f"model.pretrained={folder}"
    tuned = {f"{name}, {how}": (weights, *own) for how, own in FINE_TUNED.items()} if other else {name: (weights,)}
    wanted = {**tuned, f"{name}, frozen": (weights, *FROZEN)}
    assert {row.name: row.settings for row in rows[place : place + len(wanted)]} == wanted
    assert rows[place - 1].name == "MHS-RNN with attention"
    assert rows[place + len(wanted)].name == "EM-HRNN with window size 1"


def test_weights_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere: no such folder; give a folder with config.json"):
        table2_rows(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="another network than the row 'Bert-base'; give the folder another name"):
        table2_rows(encoder(tmp_path / "Bert-base", hidden_size=384))
    with pytest.raises(ConfigError, match="another network than the row 'fastText'"):
        table2_rows(encoder(tmp_path / "fastText", hidden_size=384))
    (encoder(tmp_path / "torn") / "config.json").write_text("{")
    with pytest.raises(ConfigError, match=r"config.json cannot be read as JSON; give a folder"):
        table2_rows(tmp_path / "torn")


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
