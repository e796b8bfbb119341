"""The printed numbers; every row can be run, and an encoder is called what it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from emhrnn.errors import ConfigError
from emhrnn.paper.table2.plan import FINE_TUNED, FROZEN, PAPER_ROWS, REFERENCE, table2_rows
from emhrnn.paper.table2.sets import COLUMNS
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
